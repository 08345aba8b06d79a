"""Purity and completeness to expect of a list of candidates, for every threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit

from skyfill.catalog import Table
from skyfill.classify.likeness import LEAST_OBJECTS, NOTABLE_UNLIKE
from skyfill.errors import DataError
from skyfill.report.candidates import probability_of

Array = NDArray[np.float64]
# Thresholds: every hundredth, and steps of 0.05 in the log odds out to one in ten million.
THRESHOLDS: Array = np.unique(
    np.concatenate([[0.0], np.linspace(0.01, 0.99, 99), expit(np.arange(-16, 16, 0.05))]).round(9)
)
LEVELS = (0.05, 0.95)
# Odds that a hand-checked sample may correct, and how much is likely beforehand: standard
# deviations of the shift of the log odds and of the logarithm of their slope.
SHIFTS, SLOPES = np.linspace(-8, 8, 81), np.exp(np.linspace(-1.5, 1.5, 31))
SD_SHIFT, SD_SLOPE = 2.0, 0.5
LEAST = 1e-9
# A number that is whole but for rounding.
WHOLE = 1e-6


class Reliability(NamedTuple):
    """Corrections of log odds, ``shift + slope * log odds``, and the probability of each."""

    shift: Array
    slope: Array
    weight: Array

    def __call__(self, p: Array) -> Array:
        """Return corrected probabilities, of shape (corrections, n)."""
        odds = logit(np.clip(p, LEAST, 1 - LEAST))
        return np.asarray(expit(self.shift[:, None] + self.slope[:, None] * odds))


AS_STATED = Reliability(np.zeros(1), np.ones(1), np.ones(1))


def learn_reliability(p: Array, member: NDArray[np.bool_]) -> Reliability:
    """Find how stated probabilities are to be corrected, from objects that were checked.

    They may have been chosen by their probability in any way: the most probable ones, say. Few
    objects correct little.

    Parameters
    ----------
    p : array of shape (n,)
        Stated probabilities of the class.
    member : bool array of shape (n,)
        Whether the object turned out to be of the class.

    Examples
    --------
    >>> found = learn_reliability(np.full(100, 0.9), np.arange(100) < 50)
    >>> float(found.weight @ found(np.array([0.9]))[:, 0])    # half of them were right
    0.50...
    """
    shift, slope = (each.ravel() for each in np.meshgrid(SHIFTS, SLOPES))
    q = Reliability(shift, slope, np.ones(len(shift)))(p)
    logs = np.log(np.clip(np.where(member, q, 1 - q), 1e-300, 1)).sum(axis=1)
    logs -= 0.5 * ((shift / SD_SHIFT) ** 2 + (np.log(slope) / SD_SLOPE) ** 2)
    weight = np.exp(logs - logs.max())
    return Reliability(shift, slope, weight / weight.sum())


class ProbabilityCounts:
    """Count the objects of a table of results by their probability of a class, batch by batch.

    Parameters
    ----------
    name : str
        The class.
    prefix : str
        Before the names of the results.
    more : sequence of float
        Thresholds of interest besides `THRESHOLDS`.
    """

    def __init__(self, name: str, prefix: str = "", more: Sequence[float] = ()) -> None:
        self.name, self.prefix = name, prefix
        self.thresholds = np.unique(np.concatenate([THRESHOLDS, more]))
        self.n, self.sums = np.zeros((2, len(self.thresholds)))

    def add(self, batch: Table) -> None:
        """Count the objects of a batch; those without a probability do not count."""
        p = probability_of(batch, self.name, self.prefix)
        p = p[~np.isnan(p)]
        place = np.searchsorted(self.thresholds, p, side="right") - 1
        self.n += np.bincount(place, minlength=len(self.n))
        self.sums += np.bincount(place, p, minlength=len(self.n))


class ExpectedList(NamedTuple):
    """What to expect of the list of objects above each threshold.

    `purity` is the share of the list that is of the class, `completeness` the share of all objects
    of the class that is in the list; each has the columns expected, 5 % and 95 %. NaN where nothing
    is listed, or where no object of the class is expected.
    """

    threshold: Array
    listed: Array
    purity: Array
    completeness: Array

    def at(self, threshold: float) -> dict[str, float | int | None]:
        """Describe the list above a threshold, or above the next higher one that was counted."""
        i = min(int(np.searchsorted(self.threshold, threshold - LEAST)), len(self.threshold) - 1)
        facts: dict[str, float | int | None]
        facts = {"threshold": float(self.threshold[i]), "candidates": int(self.listed[i])}
        for name in ("purity", "completeness"):
            values = getattr(self, name)[i]
            for end, value in zip(("", "_low", "_high"), values.tolist(), strict=True):
                facts[name + end] = None if np.isnan(value) else value
        return facts

    def threshold_for(self, purity: float) -> float:
        """Return the lowest threshold at which a purity is expected."""
        reached = np.flatnonzero(self.purity[:, 0] >= purity - LEAST)
        if reached.size:
            return float(self.threshold[reached[0]])
        best = np.nan_to_num(self.purity[:, 0]).max()
        raise DataError(
            f"no list has an expected purity of {purity:g}: it is {best:.2g} at most; ask for less "
            "(--purity), or for a threshold (--min-probability)"
        )


def expect_list(counts: ProbabilityCounts, how: Reliability = AS_STATED) -> ExpectedList:
    """Compute expected purity and completeness for every threshold, with 90 % intervals.

    The number of objects of the class in a list is a sum of independent events with the (corrected)
    probabilities; the intervals hold its scatter and the doubt about the correction, and end at
    whole objects. Of one object, nothing or all may be of the class.

    Examples
    --------
    >>> counts = ProbabilityCounts("QSO")
    >>> counts.add(Table.from_columns({"p_QSO": [0.9] * 10 + [0.1] * 10}))
    >>> found = expect_list(counts).at(0.5)
    >>> found["candidates"], round(found["purity"], 3), round(found["completeness"], 3)
    (10, 0.9, 0.9)
    """
    mean = np.divide(counts.sums, counts.n, out=np.full(len(counts.n), 0.5), where=counts.n > 0)
    q = how(mean)
    listed, members, scatter = (_above(x) for x in (counts.n, counts.n * q, counts.n * q * (1 - q)))
    with np.errstate(invalid="ignore", divide="ignore"):
        purity = _interval(members / listed, scatter / listed**2, how.weight, listed)
        found, rest = members / members[:, :1], scatter[:, :1] - scatter
        variance = ((1 - found) ** 2 * scatter + found**2 * rest) / members[:, :1] ** 2
        completeness = _interval(found, variance, how.weight, how.weight @ members[:, :1])
    return ExpectedList(counts.thresholds, listed, purity, completeness)


def _above(values: Array) -> Array:
    """Sum over each threshold's bin and all higher ones."""
    return np.asarray(values[..., ::-1].cumsum(axis=-1)[..., ::-1])


def _interval(mean: Array, variance: Array, weight: Array, n: Array) -> Array:
    """Mean and quantiles of shares, from the beta distribution with their mean and variance.

    The quantiles are shares of `n` objects that are whole, to the outside.
    """
    center = np.minimum(weight @ mean, 1.0)  # but for rounding
    spread = np.maximum(weight @ (variance + mean**2) - center**2, 1e-12)
    size = np.maximum(center * (1 - center) / spread - 1, 1e-3)
    low, high = (betaincinv(center * size, (1 - center) * size, level) for level in LEVELS)
    low, high = np.floor(low * n + WHOLE) / n, np.ceil(high * n - WHOLE) / n
    ends = [np.minimum(low, center), np.clip(high, center, 1.0)]
    # A share of exactly 0 or 1 has no beta distribution.
    ends = [np.where((center <= 0) | (center >= 1), center, end) for end in ends]
    return np.column_stack([center, *ends])


def unlike_words(likeness: Mapping[str, Any] | None, name: str | None = None) -> str:
    """Say how many objects are unlike the training set, where more than a tenth is; else nothing.

    Parameters
    ----------
    likeness : mapping, optional
        A `Likeness`, as in the record of a table that was classified (`record_of`).
    name : str, optional
        A class: of the objects taken for it.

    Examples
    --------
    >>> unlike_words({"rows": 900, "unlike": 0.62, "feature": "V", "classes": {"QSO": 0.02}})
    'at least 62 % of the objects are unlike the training set, first of all in V'
    >>> unlike_words({"rows": 900, "unlike": 0.62, "feature": "V", "classes": {"QSO": 0.02}}, "QSO")
    ''
    """
    if likeness is None:
        return ""
    # Any program may have changed what a file says of itself.
    facts = likeness if isinstance(likeness, Mapping) else {}
    classes = facts.get("classes")
    own = classes.get(name) if isinstance(classes, Mapping) else None
    share, n = facts.get("unlike") if own is None else own, facts.get("rows")
    if isinstance(share, int | float) and share <= NOTABLE_UNLIKE:
        return ""
    if not isinstance(share, int | float):
        few = isinstance(n, int) and n < LEAST_OBJECTS
        why = f"only {n} rows" if few else "its model has no histograms of the classes"
        return f"whether the objects are like the training set could not be checked ({why})"
    what = "the objects" if own is None else f"the objects taken for {name}"
    column = "" if own is not None else f", first of all in {facts.get('feature')}"
    return f"at least {100 * share:.0f} % of {what} are unlike the training set{column}"
