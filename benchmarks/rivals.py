"""Rivals of the imputation benchmark, each run as its authors mean it, with one contract.

``fit(X)``, ``transform(X)`` and, where the method has a distribution, ``posterior(X)`` or
``sample(X, n_draws, random_state=)``; arrays with NaN for gaps. `RIVALS` names them all.
"""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from skyfill.impute import ForestImputer, GaussianMixtureImputer, MeanImputer, NeighborsImputer
from skyfill.network import learn_network

# Draws of methods that give completed tables; a mean of m draws costs sqrt(1 + 1/m) in NRMSE.
N_DRAWS = 20
TREES = 100
# Columns of one block predict one another, so chained equations settle slowly. On SAGE-Spec with
# blocks hidden BayesianRidge has an NRMSE of 0.78 after 10 rounds (the default) and 0.63 after 300,
# extra trees 0.78 after 4, 0.69 after 30. With cells hidden trees gain nothing after 4; ridge has
# settled after 30 rounds on two tables of four, gains 0.02 until 100 on SAGE, loses 0.1 on Chandra.
RIDGE_ROUNDS = {"cells": 30, "blocks": 300, "faint": 30}
TREE_ROUNDS = {"cells": 4, "blocks": 15, "faint": 4}


class AbsentError(Exception):
    """A rival that is not installed; the message says what to do."""


class PaperNetwork(BaseEstimator):
    """One Gaussian network by Algorithm 1 of Pichara & Protopapas (2013)."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X):
        """Learn from a table with gaps."""
        self.network_ = learn_network(X, score="k2", rng=self.random_state).network
        return self

    def posterior(self, X):
        """Mean and standard deviation of each cell."""
        return self.network_.posterior(X)

    def transform(self, X):
        """Fill gaps."""
        return self.posterior(X).mean


class Iterative(BaseEstimator):
    """IterativeImputer of scikit-learn on standard columns."""

    def __init__(self, estimator=None, max_iter=10, random_state=None):
        self.estimator, self.max_iter, self.random_state = estimator, max_iter, random_state

    def fit(self, X):
        """Learn from a table with gaps."""
        self.mean_, self.sd_ = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        self.imputer_ = self._imputer(sample_posterior=False).fit(self._standard(X))
        self._train = X
        return self

    def transform(self, X):
        """Fill gaps."""
        return self._restored(self.imputer_.transform(self._standard(X)), X)

    def _imputer(self, sample_posterior):
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        return IterativeImputer(
            self.estimator,
            max_iter=self.max_iter,
            sample_posterior=sample_posterior,
            random_state=self.random_state,
        )

    def _standard(self, X):
        return (X - self.mean_) / self.sd_

    def _restored(self, Z, X):
        return np.where(np.isnan(X), self.mean_ + self.sd_ * Z, X)


class IterativeRidge(Iterative):
    """IterativeImputer with BayesianRidge, its default; draws with ``sample_posterior=True``."""

    def sample(self, X, n_draws, random_state=None):
        """Draw completed tables."""
        sampler = self._imputer(sample_posterior=True).fit(self._standard(self._train))
        # Each call goes on in the sampler's stream of random numbers.
        draws = [sampler.transform(self._standard(X)) for _ in range(min(n_draws, N_DRAWS))]
        return np.stack([self._restored(Z, X) for Z in draws])


def iterative_extra_trees(max_iter, random_state=None):
    """Build missForest as scikit-learn's documentation does, with extremely random trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(TREES, min_samples_split=6, n_jobs=-1, random_state=0)
    return Iterative(trees, max_iter=max_iter, random_state=random_state)


def iterative_random_forest(max_iter, random_state=None):
    """Build missForest as scikit-learn's documentation does."""
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        TREES, min_samples_split=6, max_features="sqrt", n_jobs=-1, random_state=0
    )
    return Iterative(forest, max_iter=max_iter, random_state=random_state)


class MissForestPackage(BaseEstimator):
    """The package MissForest: boosted linear trees of lightgbm (its default), or forests.

    Where a column has a long tail the default diverges; forests, which the algorithm is named
    after, cannot leave the range of what they have seen.
    """

    def __init__(self, forests=False):
        self.forests = forests

    def fit(self, X):
        """Learn from a table with gaps."""
        try:
            from missforest import MissForest
        except ImportError as error:
            raise AbsentError(f"{error}; pip install MissForest tqdm 'lightgbm<4.7'") from None
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(TREES, max_features="sqrt", n_jobs=-1, random_state=0)
        self.imputer_ = MissForest(verbose=0, **({"rgr": forest} if self.forests else {}))
        self.imputer_.fit(_frame(X))
        return self

    def transform(self, X):
        """Fill gaps."""
        # It gives the columns back in another order.
        return _frame(X).fillna(self.imputer_.transform(_frame(X))).to_numpy()


class MiceForest(BaseEstimator):
    """miceforest: chained equations with lightgbm and predictive mean matching."""

    def __init__(self, n_datasets=5, n_iter=5, random_state=None):
        self.n_datasets, self.n_iter, self.random_state = n_datasets, n_iter, random_state

    def fit(self, X):
        """Learn from a table with gaps."""
        try:
            import miceforest
        except ImportError as error:
            raise AbsentError(f"{error}; pip install miceforest 'lightgbm<4.7'") from None
        self.kernel_ = miceforest.ImputationKernel(
            _frame(X), num_datasets=self.n_datasets, random_state=self.random_state
        )
        # One thread: on tables of this size more of them only wait for one another.
        self.kernel_.mice(self.n_iter, verbose=False, num_threads=1)
        self._last = None
        return self

    def transform(self, X):
        """Fill gaps."""
        return self.sample(X, N_DRAWS).mean(axis=0)

    def sample(self, X, n_draws, random_state=None):
        """Draw completed tables."""
        if self._last is None or self._last[0] is not X:
            rounds = max(1, min(n_draws, N_DRAWS) // self.n_datasets)
            self._last = (X, np.concatenate([self._draws(X, seed) for seed in range(rounds)]))
        return self._last[1]

    def _draws(self, X, seed):
        with chained_new_data():
            new = self.kernel_.impute_new_data(_frame(X), random_state=seed)
        # Without `iteration` one gets the random values that the chain starts from.
        return np.stack(
            [
                new.complete_data(dataset, iteration=self.n_iter).to_numpy()
                for dataset in range(self.n_datasets)
            ]
        )


@contextmanager
def chained_new_data():
    """Let miceforest 6.0.5 go round on new rows as it does on those it was trained on.

    Its `impute_new_data` does not count its rounds, so each of them starts from the random first
    fill again (NRMSE 0.56 instead of 0.47 on Gaussian data).
    """
    from miceforest import imputation_kernel

    original = imputation_kernel.ImputedData

    class Chained(original):
        def __setitem__(self, key, values):
            super().__setitem__(key, values)
            variable, iteration, dataset = key
            self.iteration_tab[variable, dataset] = iteration
            if iteration:
                self.working_data.loc[self.na_where[variable], variable] = values

    imputation_kernel.ImputedData = Chained
    try:
        yield
    finally:
        imputation_kernel.ImputedData = original


class HyperImpute(BaseEstimator):
    """hyperimpute in an environment of its own, which SKYFILL_HYPERIMPUTE_PYTHON names.

    It fills the table that it is fitted to, so it gets both halves in one; that is more than the
    others see. All its time counts as filling.
    """

    def fit(self, X):
        """Learn from a table with gaps."""
        self.python_ = os.environ.get("SKYFILL_HYPERIMPUTE_PYTHON")
        if not self.python_:
            raise AbsentError(
                "set SKYFILL_HYPERIMPUTE_PYTHON to the python of an environment with it"
            )
        self.train_ = X
        return self

    def transform(self, X):
        """Fill gaps."""
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "train.npy"), self.train_)
            np.save(Path(folder, "new.npy"), X)
            subprocess.run([self.python_, "-c", HYPERIMPUTE, folder], check=True)
            filled = np.load(Path(folder, "filled.npy"))
        return np.where(np.isnan(X), filled, X)


HYPERIMPUTE = """
import pathlib, sys
import numpy as np, pandas as pd
# With copy-on-write hyperimpute returns column means.
pd.options.mode.copy_on_write = False
from hyperimpute.plugins.imputers import Imputers
folder = pathlib.Path(sys.argv[1])
train, new = (pd.DataFrame(np.load(folder / name)) for name in ("train.npy", "new.npy"))
for table in (train, new):
    table.columns = [f"x{j}" for j in range(table.shape[1])]
plugin = Imputers().get("hyperimpute", random_state=0)
filled = plugin.fit_transform(pd.concat([train, new], ignore_index=True))
np.save(folder / "filled.npy", np.asarray(filled, dtype=float)[len(train):])
"""


class BothHalves(BaseEstimator):
    """skyfill run as hyperimpute is: fitted to the very table that it fills."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X):
        """Keep the first half."""
        self.train_ = X
        return self

    def transform(self, X):
        """Learn from both halves, fill the second."""
        self.imputer_ = network(self.random_state).fit(np.vstack([self.train_, X]))
        return self.imputer_.transform(X)

    def quantiles(self, X, levels):
        """Give quantiles of the gaps."""
        return self.imputer_.quantiles(X, levels)


def network(random_state=None, **options):
    try:
        from skyfill.impute import NetworkImputer
    except ImportError:
        raise AbsentError("this skyfill has no NetworkImputer") from None
    return NetworkImputer(random_state=random_state, **options)


def _frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def rivals(mask):
    """Name -> factory, with as many rounds as the mask needs."""
    rounds = TREE_ROUNDS[mask]
    return RIVALS | {
        "ridge": partial(IterativeRidge, max_iter=RIDGE_ROUNDS[mask]),
        "extra": partial(iterative_extra_trees, rounds),
        "random": partial(iterative_random_forest, rounds),
    }


RIVALS = {
    "network": partial(network, refine=None),
    "refined": network,
    "full": partial(network, refine=None, arcs="full"),
    "fullrefined": partial(network, arcs="full"),
    "mean": MeanImputer,
    "paper": PaperNetwork,
    "mixture": GaussianMixtureImputer,
    "knn": NeighborsImputer,
    "ridge": partial(IterativeRidge, max_iter=RIDGE_ROUNDS["cells"]),
    "extra": partial(iterative_extra_trees, TREE_ROUNDS["cells"]),
    "random": partial(iterative_random_forest, TREE_ROUNDS["cells"]),
    "forest": partial(ForestImputer, TREES, n_jobs=-1),
    "missforest": MissForestPackage,
    "missforests": partial(MissForestPackage, forests=True),
    "mice": MiceForest,
    "hyper": HyperImpute,
    "both": BothHalves,
}
TITLES = {
    "network": "skyfill, mixtures alone",
    "refined": "skyfill NetworkImputer",
    "full": "skyfill, mixtures alone, full covariances",
    "fullrefined": "skyfill, full covariances",
    "mean": "column mean",
    "paper": "one network (the paper's)",
    "mixture": "independent mixtures",
    "knn": "KNNImputer (scaled, 15, by distance)",
    "ridge": "IterativeImputer (BayesianRidge)",
    "extra": "IterativeImputer (100 extra trees)",
    "random": "IterativeImputer (100-tree forest)",
    "forest": "missForest (skyfill ForestImputer)",
    "missforest": "MissForest package",
    "missforests": "MissForest package (100-tree forests)",
    "mice": f"miceforest ({N_DRAWS} draws)",
    "hyper": "hyperimpute (both halves in one)",
    "both": "skyfill NetworkImputer (both halves in one)",
}
