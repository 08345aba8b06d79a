"""missForest: random forests, iterated on the training set and kept for new rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from skyfill.impute._inputs import Array
from skyfill.impute.base import Imputer, Scale

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestRegressor

# R's randomForest, for which missForest was written, splits nodes of more than five rows.
MIN_SPLIT = 6
# Where the columns of a survey are missing together, they predict one another and converge slowly;
# on SAGE-Spec the error of new rows falls until about the tenth round.
MIN_ROUNDS = 10

Forests = dict[int, "RandomForestRegressor"]


class ForestImputer(Imputer):
    """Fill gaps by random forests of each column on all others (Stekhoven & Bühlmann 2012).

    On the training set: start with column means; for one column after another, fewest gaps first,
    grow a forest on the rows that have the column and predict it for the others; repeat until the
    filled values change more than in the previous round, and keep the previous round. New rows,
    which the original cannot fill, start with the same means and go through the same number of
    rounds (at least ten) with the kept forests. Columns are in standard units, so that all of them
    count equally and the forests' single precision suffices.

    Parameters
    ----------
    n_estimators : int
        Trees per forest.
    max_iter : int
        Largest number of rounds.
    max_features : int, float or "sqrt"
        Columns tried per split.
    n_jobs : int or None
        Threads of the forests.
    random_state : int, RandomState or None
        Seed of the forests.

    Attributes
    ----------
    scale_ : Scale
        Center, where the filling starts, and spread of the columns.
    forests_ : dict of int to RandomForestRegressor
        One for each column, by its index, in the order in which they are applied.
    n_iter_ : int
        Rounds that were kept.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)
    >>> imputer = ForestImputer(20, random_state=0).fit(np.column_stack([x, x**2]))
    >>> imputer.transform([[0.5, float("nan")]]).round(2)
    array([[0.5 , 0.25]])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_iter: int = 10,
        max_features: Any = "sqrt",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        self.scale_ = Scale.of(X)
        Z, lost = self.scale_.standard(X), np.isnan(X)
        seed = check_random_state(self.random_state)
        order = np.argsort(lost.sum(axis=0), kind="stable")
        columns: list[int] = order.tolist() if X.shape[1] > 1 else []
        start = np.where(lost, 0.0, Z)
        filled, forests, self.n_iter_ = self._iterate(start, lost, columns, seed)
        for j in columns:
            if j not in forests:
                forests[j] = self._grow(filled, ~lost[:, j], j, seed)
        self.forests_: Forests = {j: forests[j] for j in columns}

    def _iterate(
        self, filled: Array, lost: np.ndarray, columns: list[int], seed: Any
    ) -> tuple[Array, Forests, int]:
        """Repeat until the change increases; give the table and forests of the best round."""
        forests: Forests = {}
        gappy = [j for j in columns if lost[:, j].any()]
        last = np.inf
        for n_iter in range(1, self.max_iter + 1):
            new, grown = filled.copy(), {}
            for j in gappy:
                grown[j] = self._grow(new, ~lost[:, j], j, seed)
                new[lost[:, j], j] = _predict(grown[j], new[lost[:, j]], j)
            change = _change(new, filled)
            if change > last or not gappy:
                return filled, forests, max(n_iter - 1, 1)
            filled, forests, last = new, grown, change
        return filled, forests, self.max_iter

    def _grow(self, filled: Array, rows: np.ndarray, j: int, seed: Any) -> RandomForestRegressor:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            self.n_estimators,
            max_features=self.max_features,
            min_samples_split=MIN_SPLIT,
            n_jobs=self.n_jobs,
            random_state=seed.randint(2**31),
        )
        return forest.fit(_others(filled[rows], j), filled[rows, j])

    def _fill(self, X: Array) -> Array:
        lost = np.isnan(X)
        filled = np.where(lost, 0.0, self.scale_.standard(X))
        for _ in range(max(self.n_iter_, MIN_ROUNDS)):
            for j, forest in self.forests_.items():
                if lost[:, j].any():
                    filled[lost[:, j], j] = _predict(forest, filled[lost[:, j]], j)
        return self.scale_.restored(filled)


def _others(X: Array, j: int) -> Array:
    """Drop column j."""
    return np.delete(X, j, axis=1)


def _predict(forest: RandomForestRegressor, X: Array, j: int) -> Array:
    return np.asarray(forest.predict(_others(X, j)))


def _change(new: Array, old: Array) -> float:
    """Squared change of the table, relative to its squares (the paper's stopping criterion)."""
    return float(((new - old) ** 2).sum() / max((new**2).sum(), np.finfo(float).tiny))
