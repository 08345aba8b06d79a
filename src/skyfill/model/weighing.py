"""Doubtful counterparts: each object's associations are scored and weighed by their probabilities.

``P(class) = sum over associations of p(association) P(class | its values)``; filled values are
mixed the same way. The input is what ``skyfill match --probability --all`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Reason, Role, Table, filled_names
from skyfill.classify.gap_draws import entropy_bits
from skyfill.errors import CatalogError
from skyfill.model import results
from skyfill.model.applying import Scoring, check_results, classify_table, scorer_of, tree_columns
from skyfill.model.filling import Filling, fill_table
from skyfill.model.pipeline import Model
from skyfill.sky import BASE_ROW, PROBABILITY

Array = NDArray[np.float64]
# Values that differ by less than this share of themselves are the same.
SAME = 1e-12


def are_associations(names: Sequence[str]) -> bool:
    """Tell whether a table holds all associations of its objects, with their probabilities.

    Examples
    --------
    >>> are_associations(["ra", "base_row", "prob_association"]), are_associations(["ra", "dec"])
    (True, False)
    """
    return BASE_ROW in names and PROBABILITY in names


def classify_associations(model: Model, table: Table, scoring: Scoring | None = None) -> Table:
    """Classify every association and mix the class probabilities of each object's.

    Returns
    -------
    Table
        A row for each object: the columns of its most probable association, the mixed
        probabilities, their ``sf_entropy``, and ``sf_counterpart_share``, the part of it that would
        vanish if the counterpart were known.
    """
    how, scorer = scoring or Scoring(), scorer_of(model)
    table = check_results(table, scorer, how.prefix, [results.COUNTERPART_SHARE])
    weights = Weights.of(table)
    scored = classify_table(model, table, how)
    columns = {name: how.prefix + results.probability_name(name) for name in scorer.classes}
    P = scored.numbers(*columns.values())
    mixed = weights.mean(P)
    entropy = entropy_bits(mixed)
    best = Table(scored.arrow.take(weights.best))
    for k, name in enumerate(columns.values()):
        best = best.with_column(name, mixed[:, k], scored.info(name))
    names = np.array(list(columns), dtype=object)[mixed.argmax(axis=1)]
    share = position_bits(P, weights) / np.maximum(entropy, 1e-300)
    facts = {
        results.CLASS: pa.array(names, pa.string()),
        results.ENTROPY: pa.array(entropy),
        results.COUNTERPART_SHARE: pa.array(np.clip(share, 0.0, 1.0)),
    }
    facts |= tree_columns(scorer, mixed, how.sure)
    for name, values in facts.items():
        best = best.with_column(how.prefix + name, values, results.result_info(name))
    new = [name for name in best.names if name not in table.names]
    return results.after_identifier(best, new)


def fill_associations(model: Model, table: Table, prefix: str = "") -> Table:
    """Fill every association and mix the values of each object's; `prefix` is that of `Filling`.

    Returns
    -------
    Table
        A row for each object: the columns of its most probable association, in which each feature
        that is not certain is the mean over associations, with its standard deviation.
    """
    weights = Weights.of(table)
    filled = fill_table(model, table, Filling(prefix=prefix))
    best = Table(filled.arrow.take(weights.best))
    companions = {str(filled.info(n).of): n for n in filled.names_with(Role.REASON)}
    for feature in model.features:
        name, spread = feature.name, prefix + filled_names.filled_name(feature.name)
        both = filled.numbers(name, spread)
        values, sd = both[:, 0], np.nan_to_num(both[:, 1])
        mean, variance = weights.moments(values, sd)
        certain = variance <= (SAME * np.abs(mean)) ** 2
        kept = best.numbers(name)[:, 0]
        shown = pa.array(np.where(certain, kept, mean))
        best = best.with_column(name, shown, filled.info(name))
        noise = pa.array(np.where(certain, np.nan, np.sqrt(variance)), from_pandas=True)
        best = best.with_column(spread, noise, filled.info(spread))
        words = pc.if_else(pa.array(certain), pa.scalar(None, pa.string()), str(Reason.FILLED))
        best = best.with_column(companions[name], words, filled.info(companions[name]))
    return best


def position_bits(probabilities: Array, weights: Weights) -> Array:
    """Bits about the class to be gained from knowing the counterpart, through better positions.

    Parameters
    ----------
    probabilities : array of shape (m, c)
        Class probabilities of all associations.
    """
    within = weights.mean(entropy_bits(probabilities)[:, None])[:, 0]
    return np.maximum(entropy_bits(weights.mean(probabilities)) - within, 0.0)


class Weights:
    """Which rows of a table of associations belong to which object, and their probabilities.

    Attributes
    ----------
    owner : integer array of shape (m,)
        Object of each row, from 0, in the order in which they first appear.
    p : array of shape (m,)
        Probabilities; those of an object sum to one.
    best : integer array of shape (n,)
        Most probable row of each object.
    """

    def __init__(self, owner: NDArray[np.int64], p: Array) -> None:
        self.owner, self.p = owner, p
        self.n = int(owner.max(initial=-1)) + 1
        order = np.lexsort((-p, owner))
        first = np.searchsorted(owner[order], np.arange(self.n))
        self.best = order[first]

    @classmethod
    def of(cls, table: Table) -> Weights:
        """Read the weights of a table; probabilities that do not sum to one are refused."""
        rows, p = table.numbers(BASE_ROW, PROBABILITY).T
        known, owner = np.unique(rows, return_inverse=True)
        total = np.bincount(owner, weights=p, minlength=len(known))
        wrong = np.flatnonzero(~(np.abs(total - 1) < 1e-6))
        if wrong.size:
            raise CatalogError(
                f"column {PROBABILITY!r}: the associations of {BASE_ROW} {known[wrong[0]]:g} sum "
                f"to {total[wrong[0]]:.6g}, not to 1 ({wrong.size} such objects); use the table as "
                "skyfill match --all wrote it"
            )
        return cls(owner, p)

    def mean(self, values: Array) -> Array:
        """Mean over the associations of each object, of values of shape (m, c)."""
        columns = [np.bincount(self.owner, self.p * v, self.n) for v in values.T]
        return np.stack(columns, axis=1)

    def moments(self, values: Array, sd: Array) -> tuple[Array, Array]:
        """Mean and variance of each object's mixture, about its best value lest digits cancel."""
        middle = values[self.best]
        apart = values - middle[self.owner]
        shift, square = self.mean(np.stack([apart, apart**2 + sd**2], axis=1)).T
        return middle + shift, np.maximum(square - shift**2, 0.0)
