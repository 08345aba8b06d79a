"""Names and descriptions of the columns that filling and classifying add to a table.

No other file spells them out. Rooms below this one are given the names that they need.
"""

from __future__ import annotations

from collections.abc import Iterable

from skyfill.catalog import ColumnInfo, Role, Table

CLASS, OUTLIER = "class", "outlier"
ENTROPY, GAP_SHARE, OUTLIER_SCORE = "entropy", "gap_share", "outlier_score"
COUNTERPART_SHARE = "counterpart_share"
# Results that are numbers, apart from the probabilities of the classes.
NUMBERS = (ENTROPY, GAP_SHARE, OUTLIER_SCORE)

_PROBABILITY, _BEFORE, _SD = "p_", "_was", "sd"
# Probabilities of counterparts, not of classes.
_OF_COUNTERPARTS = ("p_any", "p_i")
# Beside a value seen with an error: what it would be without it, and how well that is known.
DENOISED = ("denoised", "denoised_sd")
_INFOS = {
    CLASS: ColumnInfo(None, "src.class", "Most probable class", Role.LABEL),
    ENTROPY: ColumnInfo("bit", "stat.param", "Entropy of the class probabilities"),
    GAP_SHARE: ColumnInfo(
        None, "stat.param", "Share of the entropy that would vanish if the gaps were measured"
    ),
    COUNTERPART_SHARE: ColumnInfo(
        None, "stat.param", "Share of the entropy that would vanish if the counterpart were known"
    ),
    OUTLIER: ColumnInfo(
        None, "meta.code.qual", "Whether it is less likely than 99.9 % of the training objects"
    ),
    OUTLIER_SCORE: ColumnInfo(
        None, "stat.param", "Minus log10 of the share of training objects that are less likely"
    ),
}


def probability_name(name: str) -> str:
    """Name the column that holds the probability of a class.

    Examples
    --------
    >>> probability_name("QSO")
    'p_QSO'
    """
    return f"{_PROBABILITY}{name}"


def probability_columns(names: Iterable[str]) -> dict[str, str]:
    """Find the classes among the columns of a table of results, and their probabilities.

    Examples
    --------
    >>> probability_columns(["id", "class", "p_QSO", "p_RRL"])
    {'QSO': 'p_QSO', 'RRL': 'p_RRL'}
    """
    own = (n for n in names if n.startswith(_PROBABILITY) and n not in _OF_COUNTERPARTS)
    found = {n.removeprefix(_PROBABILITY): n for n in own}
    return {name: column for name, column in found.items() if name}


def result_info(name: str) -> ColumnInfo | None:
    """Describe a column that classifying adds; None for any other name.

    Examples
    --------
    >>> result_info("p_QSO").description
    'Probability of class QSO'
    """
    for kind in probability_columns([name]):
        return ColumnInfo(None, "stat.probability;src.class", f"Probability of class {kind}")
    return _INFOS.get(name)


def before_name(name: str) -> str:
    """Name the column that keeps what `name` held before a result took its place.

    Examples
    --------
    >>> before_name("class")
    'class_was'
    """
    return name + _BEFORE


def without_before(name: str) -> str:
    """Return the name that a column had before a result took its place."""
    return name.removesuffix(_BEFORE)


def filled_parts(quantiles: Iterable[float], n_draws: int) -> list[str]:
    """Name the columns written for a filled value; see `filled_name`.

    Examples
    --------
    >>> filled_parts([0.16, 0.5], 2)
    ['sd', 'q16', 'q50', 'draw1', 'draw2']
    """
    levels = [f"q{100 * q:g}" for q in quantiles]
    return [_SD, *levels, *(f"draw{t}" for t in range(1, n_draws + 1))]


def filled_name(name: str, part: str = _SD) -> str:
    """Name a column that belongs to a filled one, such as ``J_sd``."""
    return f"{name}_{part}"


def filled_info(info: ColumnInfo, name: str, part: str) -> ColumnInfo:
    """Describe a column that belongs to a filled one, whose own description is `info`."""
    what = "Standard deviation" if part == _SD else part
    # All of them express its spread: none may be taken for a feature of its own.
    return ColumnInfo(info.unit, None, f"{what} of {name} where it was filled", Role.ERROR, name)


def denoised_info(info: ColumnInfo, name: str, part: str) -> ColumnInfo:
    """Describe a column of `DENOISED` beside a column whose own description is `info`."""
    start = "Standard deviation of" if part == DENOISED[1] else "Mean of"
    return ColumnInfo(info.unit, None, f"{start} {name} without its error", Role.ERROR, name)


def is_filled_part(table: Table, column: str) -> bool:
    """Whether a model wrote a column beside a filled or denoised one; see `filled_parts`.

    Examples
    --------
    >>> mag, error = ColumnInfo("mag"), ColumnInfo("mag", role=Role.ERROR, of="J")
    >>> info = {"J": mag, "J_sd": filled_info(mag, "J", "sd"), "e_J": error}
    >>> table = Table.from_columns({name: [1.0] for name in info}, info=info)
    >>> [is_filled_part(table, name) for name in table.names]
    [False, True, False]
    """
    info = table.info(column)
    name = str(info.of)
    part = column.removeprefix(f"{name}_")
    if info.role is not Role.ERROR or part == column or name not in table.names:
        return False
    describe = denoised_info if part in DENOISED else filled_info
    return info == describe(table.info(name), name, part)


def before_info(name: str) -> ColumnInfo:
    """Describe the column that keeps the reasons why cells of a filled column were missing."""
    return ColumnInfo(description=f"Why {name} was missing before it was filled")


def filled_columns(table: Table) -> set[str]:
    """Name the columns of a filled table that mark which of its cells were filled."""
    reasons = table.names_with(Role.REASON)
    return {name for name in reasons if filled_name(str(table.info(name).of)) in table.names}
