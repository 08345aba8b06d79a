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
    """Give the name that a column had before a result took its place."""
    return name.removesuffix(_BEFORE)


def filled_parts(quantiles: Iterable[float], n_draws: int) -> list[str]:
    """Name what is written beside a filled value; see `filled_name`.

    Examples
    --------
    >>> filled_parts([0.16, 0.5], 2)
    ['sd', 'q16', 'q50', 'draw1', 'draw2']
    """
    levels = [f"q{100 * q:g}" for q in quantiles]
    return [_SD, *levels, *(f"draw{t}" for t in range(1, n_draws + 1))]


def filled_name(name: str, part: str = _SD) -> str:
    """Name a column beside a filled one, such as ``J_sd``."""
    return f"{name}_{part}"


def filled_info(info: ColumnInfo, name: str, part: str) -> ColumnInfo:
    """Describe a column beside a filled one, whose own description is `info`."""
    what = "Standard deviation" if part == _SD else part
    # All of them express its spread: none may be taken for a feature of its own.
    return ColumnInfo(info.unit, None, f"{what} of {name} where it was filled", Role.ERROR, name)


def before_info(name: str) -> ColumnInfo:
    """Describe the column that keeps the reasons why cells of a filled column were missing."""
    return ColumnInfo(description=f"Why {name} was missing before it was filled")


def filled_columns(table: Table) -> set[str]:
    """Name the columns of a filled table that tell which of its cells were filled."""
    reasons = table.names_with(Role.REASON)
    return {name for name in reasons if filled_name(str(table.info(name).of)) in table.names}
