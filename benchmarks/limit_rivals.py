"""Methods of the benchmark of non-detections, each run as its authors mean it.

Each is a function of a table and a seed that gives the mean and the 5 and 95 % quantiles of all
cells. Rivals know no limits; those that know errors get them.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from rivals import RIDGE_ROUNDS, AbsentError, Iterative, IterativeRidge, rivals
from rivals import TITLES as FILLING_TITLES
from skyfill.impute import NetworkImputer
from skyfill.network import Cells, learn_mixture

LEVELS = (0.05, 0.95)
N_DRAWS = 200
N_COMPONENTS = (4, 8, 16)
# A gap is a value with an error of this many standard deviations, as in pygmmis.
NO_VALUE = 1e5


class Filled(NamedTuple):
    """Mean of each cell; quantiles of shape (2, n, p), or None where there are none."""

    mean: np.ndarray
    quantiles: np.ndarray | None


def normal_interval(mean, sd):
    return np.stack([mean + ndtri(level) * sd for level in LEVELS])


def skyfill(table, seed, *, limits, errors):
    """Fill the gaps of the table that it is fitted to."""
    known = {}
    if limits:
        known["lower"] = table.lower
        if table.upper is not None:
            known["upper"] = table.upper
    if errors and table.errors is not None:
        known["errors"] = table.errors
    imputer = NetworkImputer(random_state=seed).fit(table.X, **known)
    return Filled(imputer.transform(table.X, **known), imputer.quantiles(table.X, LEVELS, **known))


def skyfill_logs(table, seed):
    """The same, given the logarithms of fluxes by hand."""

    def log(numbers):
        return np.where(table.positive, np.log10(np.where(table.positive, numbers, 1.0)), numbers)

    logs = table._replace(X=log(table.X), upper=log(table.upper))
    found = skyfill(logs, seed, limits=True, errors=False)
    return Filled(*(np.where(table.positive, 10.0**each, each) for each in found))


def skyfill_denoised(table, seed):
    """The values without their errors; intervals as of normal distributions."""
    imputer = NetworkImputer(random_state=seed).fit(table.X, errors=table.errors)
    found = imputer.posterior(table.X, errors=table.errors, denoise=True)
    return Filled(found.mean, normal_interval(found.mean, found.sd))


def as_measured(table, seed):
    return Filled(table.X, normal_interval(table.X, table.errors))


def drawn_from_errors(table, seed):
    """What is taken as true, off by its own error: no RMSE can be expected to be smaller."""
    noise = np.random.default_rng(seed).standard_normal(table.true.shape)
    return Filled(table.true + table.doubt * noise, None)


def learned_from_answers(table, seed, *, measured):
    """A mixture that was shown what it is then asked for: true values in all gaps.

    Where there is a value, it is shown the measured or the true one.
    """
    shown = np.where(np.isnan(table.X), table.true, table.X) if measured else table.true
    network = learn_mixture(shown, n_components=8, margins=False, calibrate=False, rng=seed).network
    errors = np.where(np.isnan(table.X) | (not measured), table.errors, np.nan)
    cells = Cells(table.X, table.lower, errors=errors)
    return Filled(network.posterior(cells).mean, network.quantiles(cells, LEVELS))


def filling_rival(name, table, seed):
    """A rival of the filling benchmark, fitted to the table that it fills."""
    imputer = rivals("blocks")[name]()
    if "random_state" in getattr(imputer, "get_params", dict)():
        imputer.set_params(random_state=seed)
    imputer.fit(table.X)
    mean = imputer.transform(table.X)
    if hasattr(imputer, "posterior"):
        found = imputer.posterior(table.X)
        return Filled(mean, normal_interval(found.mean, found.sd))
    if hasattr(imputer, "sample"):
        return Filled(mean, np.quantile(imputer.sample(table.X, N_DRAWS), LEVELS, axis=0))
    return Filled(mean, None)


def ridge(table, seed):
    """IterativeImputer with BayesianRidge; draws, which take long, after fewer rounds."""
    values = IterativeRidge(max_iter=RIDGE_ROUNDS["blocks"], random_state=seed).fit(table.X)
    draws = IterativeRidge(max_iter=RIDGE_ROUNDS["faint"], random_state=seed).fit(table.X)
    quantiles = np.quantile(draws.sample(table.X, N_DRAWS), LEVELS, axis=0)
    return Filled(values.transform(table.X), quantiles)


def extra_trees(table, seed):
    """IterativeImputer with 50 extremely random trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(50, min_samples_split=6, n_jobs=-1, random_state=0)
    return Filled(
        Iterative(trees, max_iter=10, random_state=seed).fit(table.X).transform(table.X), None
    )


def gaussian_copula(table, seed):
    """Fill with gcimpute; all columns are continuous (left to itself it fails on tied values)."""
    try:
        from gcimpute.gaussian_copula import GaussianCopula
    except ImportError as error:
        raise AbsentError(f"{error}; pip install gcimpute") from None
    model = GaussianCopula(random_state=seed)
    mean = model.fit_transform(table.X, continuous=list(range(table.X.shape[1])))
    found = model.get_confidence_interval(alpha=0.9)
    return Filled(mean, np.stack([found["lower"], found["upper"]]))


def deconvolved(fit, table, seed):
    """Extreme deconvolution with the number of components that BIC prefers, in standard units."""
    mean, sd = np.nanmean(table.X, axis=0), np.nanstd(table.X, axis=0)
    gaps = np.isnan(table.X)
    Z = np.where(gaps, 0.0, (table.X - mean) / sd)
    noise = np.where(gaps, NO_VALUE, table.errors / sd) ** 2
    mixtures = [found for k in N_COMPONENTS if (found := attempt(fit, Z, noise, k, seed))]
    best = min(mixtures, key=lambda mixture: bic(Z, noise, mixture))
    found = Mixture(*best).posterior(Z, noise, np.random.default_rng(seed))
    return Filled(mean + sd * found.mean, mean + sd * found.quantiles)


def attempt(fit, Z, noise, n_components, seed):
    """A mixture; None where a component became singular."""
    try:
        return fit(Z, noise, n_components, seed)
    except np.linalg.LinAlgError as error:
        print(f"{fit.__name__}, {n_components} components: {error}", flush=True)
        return None


def xdgmm(Z, noise, n_components, seed):
    """Fit with astroML, which has no word for a missing value."""
    try:
        from astroML.density_estimation import XDGMM
    except ImportError as error:
        raise AbsentError(f"{error}; pip install astroML") from None
    model = XDGMM(n_components, random_state=seed).fit(Z, noise[:, :, None] * np.eye(Z.shape[1]))
    return model.alpha, model.mu, model.V


def pygmmis(Z, noise, n_components, seed):
    """Fit with pyGMMis; gaps are values with large errors, as it sees them itself.

    It starts from k-means, which finds singular groups where there are gaps: there from its boxes.
    """
    try:
        import pygmmis as package
    except ImportError as error:
        raise AbsentError(f"{error}; pip install pygmmis") from None
    model = package.GMM(K=n_components, D=Z.shape[1])
    np.random.seed(seed)  # noqa: NPY002 - its k-means takes no generator
    covar = noise[:, :, None] * np.eye(Z.shape[1])
    rng = np.random.RandomState(seed)  # noqa: NPY002
    start = "minmax" if (noise >= NO_VALUE**2).any() else "kmeans"
    package.fit(model, Z, covar=covar, init_method=start, w=0.01, rng=rng)
    return model.amp.copy(), model.mean.copy(), model.covar.copy()


class Mixture(NamedTuple):
    """A mixture of Gaussians of the values without errors."""

    weights: np.ndarray
    means: np.ndarray
    covs: np.ndarray

    def loglik(self, Z, noise):
        """Log-likelihood of each row and component, of shape (k, n)."""
        return np.stack([self._component(k, Z, noise)[0] for k in range(len(self.weights))])

    def posterior(self, Z, noise, rng):
        """Mean and quantiles of the values without errors; quantiles from draws."""
        parts = [self._component(k, Z, noise) for k in range(len(self.weights))]
        loglik = np.stack([part[0] for part in parts])
        shares = np.exp(loglik - np.logaddexp.reduce(loglik, axis=0))
        means, sds = (np.stack([part[i] for part in parts]) for i in (1, 2))
        cumulated, rows, draws = np.cumsum(shares, axis=0), np.arange(len(Z)), []
        for _ in range(N_DRAWS):
            k = np.minimum((rng.random(len(Z)) > cumulated).sum(axis=0), len(parts) - 1)
            draws.append(means[k, rows] + sds[k, rows] * rng.standard_normal(Z.shape))
        mean = np.einsum("kn,knp->np", shares, means)
        return Filled(mean, np.quantile(draws, LEVELS, axis=0))

    def _component(self, k, Z, noise):
        cov = self.covs[k]
        total = cov + noise[:, :, None] * np.eye(len(cov))
        away = Z - self.means[k]
        solved = np.linalg.solve(total, away[:, :, None])[:, :, 0]
        left = cov - cov @ np.linalg.solve(total, np.broadcast_to(cov, total.shape))
        logdet = np.linalg.slogdet(2 * np.pi * total)[1]
        loglik = np.log(self.weights[k]) - (logdet + (away * solved).sum(axis=1)) / 2
        sd = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 0))
        return loglik, self.means[k] + solved @ cov, sd


def bic(Z, noise, mixture):
    if not all(np.isfinite(part).all() for part in mixture):
        return np.inf
    k, p = mixture[1].shape
    free = k - 1 + k * p + k * p * (p + 1) / 2
    loglik = np.logaddexp.reduce(Mixture(*mixture).loglik(Z, noise), axis=0).sum()
    return -2 * loglik + free * np.log(len(Z))


FILLING = ("mean", "knn", "forest", "mice")
OURS = {
    "ours": partial(skyfill, limits=True, errors=True),
    "ours_limits": partial(skyfill, limits=True, errors=False),
    "ours_plain": partial(skyfill, limits=False, errors=False),
}
METHODS = {
    **OURS,
    **{name: partial(filling_rival, name) for name in FILLING},
    "ridge": ridge,
    "extra": extra_trees,
    "copula": gaussian_copula,
    "pygmmis": partial(deconvolved, pygmmis),
    "logs": skyfill_logs,
    "denoised": skyfill_denoised,
    "xdgmm": partial(deconvolved, xdgmm),
    "measured": as_measured,
    "floor": drawn_from_errors,
    "truth": partial(learned_from_answers, measured=False),
    "answers": partial(learned_from_answers, measured=True),
}
TITLES = {
    **{name: FILLING_TITLES[name] for name in FILLING},
    "ours": "skyfill, limits and errors",
    "ours_limits": "skyfill, limits",
    "ours_plain": "skyfill, neither",
    "logs": "skyfill, limits, logarithms given by hand",
    "ridge": FILLING_TITLES["ridge"],
    "extra": "IterativeImputer (50 extra trees)",
    "copula": "gcimpute (Gaussian copula)",
    "pygmmis": "pyGMMis (errors)",
    "denoised": "skyfill (errors)",
    "xdgmm": "astroML XDGMM (errors)",
    "measured": "as measured",
    "floor": "errors of the known values alone",
    "truth": "mixture learned from the true values",
    "answers": "mixture learned from the measured values, with true ones in the gaps",
}
