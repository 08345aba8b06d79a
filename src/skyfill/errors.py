"""Errors and warnings that skyfill raises: one root, built-in types beneath it."""

from collections.abc import Iterable

__all__ = [
    "CatalogError",
    "ConvergenceWarning",
    "DataError",
    "DeviceError",
    "EmptyColumnWarning",
    "GraphError",
    "LimitWarning",
    "MissingLimitsWarning",
    "ModelError",
    "RegularizationWarning",
    "SentinelWarning",
    "SkyfillError",
    "SkyfillWarning",
    "SmallTableWarning",
    "counted",
    "shortened",
]


class SkyfillError(Exception):
    """Root of all errors that a user of skyfill can cause."""


class DataError(SkyfillError, ValueError):
    """A table of numbers that cannot be learned from or filled."""


class GraphError(SkyfillError, ValueError):
    """A graph that is not a directed acyclic graph over the given names."""


class SkyfillWarning(UserWarning):
    """Root of all warnings: what was taken for granted about a table, and what may be wrong."""


class ConvergenceWarning(SkyfillWarning):
    """An iteration stopped at its limit; the result is usable but has not converged."""


class RegularizationWarning(SkyfillWarning):
    """The data do not determine the model; the stated regularization did."""


class SentinelWarning(SkyfillWarning):
    """Numbers that surely mean gaps, such as -999 among magnitudes, are used as values."""


class EmptyColumnWarning(SkyfillWarning):
    """A column without any value was left out."""


class LimitWarning(SkyfillWarning):
    """Limits that say nothing, as those below zero of what is positive."""


class SmallTableWarning(SkyfillWarning):
    """A table with few rows, or a column with few values: its intervals are rough."""


class MissingLimitsWarning(SkyfillWarning):
    """An estimator learned from limits or errors and was not given those of new rows."""


class CatalogError(SkyfillError, ValueError):
    """A table file, column, unit or role that cannot be used as requested."""


class ModelError(SkyfillError, ValueError):
    """A model file that is damaged, malicious or of an unknown version."""


class DeviceError(SkyfillError, RuntimeError):
    """No GPU can be used as requested."""


def counted(**things: int) -> str:
    """Count things.

    Examples
    --------
    >>> counted(row=1, suspicious_value=0)
    '1 row, 0 suspicious values'
    """
    return ", ".join(
        f"{n} {thing.replace('_', ' ')}{'' if n == 1 else 'es' if thing[-1] == 's' else 's'}"
        for thing, n in things.items()
    )


def shortened(names: Iterable[str], most: int, between: str = ", ") -> str:
    """List names in about `most` characters, and count those that do not fit.

    Examples
    --------
    >>> shortened(["J", "H", "K"], 4)
    'J, H and 1 more'
    """
    known, shown = list(map(str, names)), 1
    if len(between.join(known)) <= most:
        return between.join(known)
    longest = max(most, 80)
    known = [f"{name[: longest - 3]}..." if len(name) > longest else name for name in known]
    while shown < len(known) and len(between.join(known[: shown + 1])) <= most:
        shown += 1
    rest = len(known) - shown
    return between.join(known[:shown]) + (f" and {rest} more" if rest > 0 else "")
