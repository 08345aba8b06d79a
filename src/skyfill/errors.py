"""Errors and warnings that skyfill raises: one root, built-in types beneath it."""

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
