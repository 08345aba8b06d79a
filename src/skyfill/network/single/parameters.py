"""Parameters of a network with known arcs: least squares, or EM where cells are lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotrs

from skyfill.errors import ConvergenceWarning, DataError, RegularizationWarning, shortened
from skyfill.network._array import Array, as_table, check_names, check_seen
from skyfill.network.moments import Moments, em
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.graph import Parents, as_parents
from skyfill.network.single.m_step_kernels import whiten_nodes
from skyfill.network.single.posterior import Joint, expect, find_gaps
from skyfill.threads import one_blas_thread

# A node keeps at least this share of its variance as noise; parents whose correlation matrix is
# closer to singular than this get it as a ridge. Both are announced by a RegularizationWarning.
MIN_VARIANCE = 1e-9
# When EM inside of structure learning stops.
EM_TOL, EM_STEPS = 1e-6, 500
# The covariance of all columns is drawn towards independence as by this many extra rows.
PRIOR_ROWS = 1.0


class Fit(NamedTuple):
    """A fitted network, its observed-data log-likelihood per step, and whether it converged."""

    network: GaussianNetwork
    trace: Array
    converged: bool


def regress(cov: Array, child: int, family: tuple[int, ...]) -> tuple[Array, float, bool]:
    """Least squares of a child on its parents; and whether it did without regularization."""
    parents = list(family)
    own, across = cov[np.ix_(parents, parents)], cov[parents, child]
    regular = not parents or bool(np.linalg.eigvalsh(own)[0] > MIN_VARIANCE)
    weights = across
    if parents:
        # Without the checks of cho_factor.
        within = own if regular else own + MIN_VARIANCE * np.eye(len(parents))
        factor, failed = dpotrf(within, lower=True)
        if failed:
            raise np.linalg.LinAlgError("the covariance of the parents is not positive definite")
        weights = dpotrs(factor, across, lower=True)[0]
    noise = cov[child, child] - 2 * weights @ across + weights @ own @ weights
    return weights, max(float(noise), MIN_VARIANCE), regular and bool(noise > MIN_VARIANCE)


def as_network(
    names: tuple[str, ...], parents: Parents, mean: Array, cov: Array
) -> GaussianNetwork:
    """Best network with these arcs for a mean and a covariance: a regression per node."""
    fits = [regress(cov, child, family) for child, family in enumerate(parents)]
    weights = [fit[0] for fit in fits]
    intercepts = [
        mean[j] - float(weights[j] @ mean[list(family)]) for j, family in enumerate(parents)
    ]
    return GaussianNetwork(names, parents, intercepts, weights, [fit[1] for fit in fits])


def fit_parameters(
    X: ArrayLike,
    parents: Sequence[Sequence[int | str]],
    names: Sequence[str] | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Fit:
    """Fit the parameters of a network with given arcs to a table with gaps, by EM.

    Parameters
    ----------
    X : array of shape (n, p)
        NaN is a gap; gaps are taken to be at random given what is seen.
    parents : sequence of sequences of int or str
        Parents of each column.
    names : sequence of str, optional
        Names of the columns.
    tol : float
        EM stops when a step raises the log-likelihood by less than this per row.
    max_iter : int
        Most steps of EM; reaching it gives a ConvergenceWarning.

    Returns
    -------
    Fit
        `network`, `trace` (observed-data log-likelihood per step, never falling) and `converged`.
        Without gaps the network is the least-squares solution.

    Examples
    --------
    >>> net, trace, converged = fit_parameters([[0, 1], [1, 3], [2, 4], [3, 8]], [[], [0]])
    >>> print(f"{net.weights[1][0]:.6f} {net.intercepts[1]:.6f}")
    2.200000 0.700000
    """
    X = as_table(X)
    names = check_names(names, X.shape[1])
    graph = as_parents(parents, names)
    _check_rows(len(X), graph, names)
    standard = standardize(X, names)
    with one_blas_thread():
        fit = fit_standard(standard.Z, names, graph, tol=tol, max_iter=max_iter)
        warn_singular(standard.Z, fit.network)
    if not fit.converged:
        warnings.warn(
            f"EM did not converge in {max_iter} steps; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    network = standard.restore(fit.network)
    return Fit(network, fit.trace - standard.log_scale, fit.converged)


class _Step(NamedTuple):
    """A mean and a covariance, and the Gaussian of the best network for them."""

    mean: Array
    cov: Array
    joint: Joint


def fit_standard(
    Z: Array, names: tuple[str, ...], parents: Parents, *, tol: float, max_iter: int
) -> Fit:
    """EM for a standardized table."""
    gaps, p = find_gaps(Z, names), len(names)
    bounds = np.cumsum([0, *map(len, parents)])
    families = np.array([k for family in parents for k in family], dtype=np.int64)

    def step(mean: Array, cov: Array) -> _Step:
        precision = np.zeros((p, p))
        log_det = whiten_nodes(cov, bounds, families, MIN_VARIANCE, precision)
        joint = Joint(mean, precision, log_det)
        if np.isnan(log_det):  # parents that determine one another
            joint = as_network(names, parents, mean, cov)._joint
        return _Step(mean, cov, joint)

    def maximize(moments: Moments) -> _Step:
        return step(moments.mean, moments.cov)

    start = step(np.zeros(p), np.eye(p))
    found = em(lambda at: expect(gaps, at.joint), maximize, start, tol=tol, max_iter=max_iter)
    network = as_network(names, parents, found.params.mean, found.params.cov)
    return Fit(network, np.array(found.trace), found.converged)


def _check_rows(n: int, parents: Parents, names: tuple[str, ...]) -> None:
    for name, family in zip(names, parents, strict=True):
        if n < len(family) + 2:
            raise DataError(
                f"{n} rows cannot determine node {name!r} with {len(family)} parents; give more "
                "rows or fewer parents"
            )


def warn_singular(Z: Array, network: GaussianNetwork) -> None:
    """Warn where the data do not determine a node."""
    cov, names = expect(find_gaps(Z, network.names), network._joint).cov, network.names
    bad = [names[j] for j, family in enumerate(network.parents) if not regress(cov, j, family)[2]]
    if bad:
        warnings.warn(
            f"singular covariance at {shortened(bad, 90)}: a node is an exact linear function of "
            f"its parents, or they of one another; {MIN_VARIANCE:g} of the variance stays noise",
            RegularizationWarning,
            stacklevel=3,
        )


def fit_saturated(expect: Callable[[Joint], Moments], p: int) -> Array:
    """Covariance of all columns by EM, in standard units, with `PRIOR_ROWS` of independence."""

    def shrink(moments: Moments) -> Array:
        prior = PRIOR_ROWS * np.eye(p)
        return (moments.n * moments.cov + prior) / (moments.n + PRIOR_ROWS)

    def maximize(moments: Moments) -> Joint:
        return Joint.from_cov(moments.mean, shrink(moments))

    start = Joint.from_cov(np.zeros(p), np.eye(p))
    found = em(expect, maximize, start, tol=EM_TOL, max_iter=EM_STEPS)
    return shrink(found.moments)


class Standard(NamedTuple):
    """A table with columns of mean 0 and standard deviation 1 over their seen cells."""

    Z: Array  # (n, p), a copy
    center: Array
    scale: Array
    n_seen: Array

    @property
    def log_scale(self) -> float:
        """What to subtract from a log-likelihood of Z to get that of the table itself."""
        return float(self.n_seen @ np.log(self.scale))

    def restore(self, network: GaussianNetwork) -> GaussianNetwork:
        """Express a network of Z in the units of the table."""
        intercepts, weights = [], []
        for j, family in enumerate(network.parents):
            parents = list(family)
            slope = np.array(network.weights[j]) * self.scale[j] / self.scale[parents]
            weights.append(slope)
            intercepts.append(
                self.center[j]
                + self.scale[j] * network.intercepts[j]
                - float(slope @ self.center[parents])
            )
        variances = self.scale**2 * np.array(network.variances)
        return GaussianNetwork(network.names, network.parents, intercepts, weights, variances)


def standardize(X: Array, names: tuple[str, ...]) -> Standard:
    """Standardize the columns; refuse those that cannot be learned from."""
    n_seen = check_seen(X, names)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    for j in np.flatnonzero(low == high):
        raise DataError(
            f"column {names[j]!r} is constant: {low[j]:g} in all {n_seen[j]} rows that have it; "
            "it has no relation to other columns: drop it"
        )
    # Halves of the range first: the squares of huge values must not overflow.
    middle, reach = low / 2 + high / 2, high / 2 - low / 2
    Z = (X - middle) / reach
    center, scale = np.nanmean(Z, axis=0), np.nanstd(Z, axis=0)
    Z -= center
    Z /= scale
    return Standard(as_table(Z), middle + reach * center, reach * scale, n_seen.astype(np.float64))
