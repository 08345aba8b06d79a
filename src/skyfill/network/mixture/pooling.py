"""M-step for columns with limits: what bright objects teach carries over to faint ones.

A component of faint objects may never have seen a band. So each component is written as a chain of
regressions, each column on those before it (the best seen first), and each regression, intercept
included, is drawn to the one that the components have in common. The common regression weighs
components by how well they determine it: by the rows that saw the column, over the variance that
is left. A component that saw a column in few of its rows is drawn the more strongly, since the rows
that saw it are the bright ones.
"""

from __future__ import annotations

import numpy as np

from skyfill.network._array import Array, IntArray
from skyfill.network.moments import Moments

MIN_VARIANCE = 1e-6
# Share of a component's predictors that is replaced by everybody's, so that none is singular.
TO_ALL = 0.02
# Added to the diagonal of predictors, over the number of rows.
RIDGE = 1e-9
# Rounds in which common regressions and the variances that they are weighed by settle.
ROUNDS = 2


def maximize_pooled(moments: Moments, shrinkage: float, pooling: Array) -> tuple[Array, Array]:
    """Means and covariances of components whose regressions are drawn to common ones.

    Parameters
    ----------
    moments : Moments
        Expected sums of k components.
    shrinkage : float
        Extra rows of the common variance, for a component that saw a column in all of its rows.
    pooling : array of shape (p,)
        Extra rows of a column's common regression, over `shrinkage`.

    Returns
    -------
    means, covs : arrays of shapes (k, p) and (k, p, p)
    """
    seen = moments.count - moments.gaps
    order = np.argsort(-seen.sum(axis=0), kind="stable")
    sums = _sums(moments, order)
    (k, p), count = moments.total.shape, moments.count
    share = np.clip(seen / count, 0.0, 1.0)[:, order]
    # Squared: the fewer rows saw a column, the less do those that did stand for the others.
    rows = shrinkage * ((count + 1.0) / (share * count + 1.0)) ** 2
    slopes, noise, starts = np.zeros((k, p, p)), np.empty((k, p)), np.empty((k, p))
    for j in range(p):
        weights, noise[:, j] = _regress(sums, j, share[:, j], pooling[order[j]], rows[:, j])
        starts[:, j], slopes[:, j, :j] = weights[:, 0], weights[:, 1:]
    root = np.linalg.inv(np.eye(p) - slopes)
    back = np.argsort(order)
    means = np.einsum("kij,kj->ki", root, starts)[:, back]
    covs = np.einsum("kij,kj,klj->kil", root, noise, root)[:, back][:, :, back]
    return means, (covs + covs.transpose(0, 2, 1)) / 2


def _sums(moments: Moments, order: IntArray) -> Array:
    """Give sums of products of a constant and the columns, ordered: (k, 1 + p, 1 + p)."""
    origin, total, count = moments.origin, moments.total, moments.count
    outer = origin[:, :, None] * total[:, None, :]
    cross = moments.cross + outer + outer.transpose(0, 2, 1)
    cross = cross + count[..., None] * origin[:, :, None] * origin[:, None, :]
    k, p = total.shape
    out = np.empty((k, p + 1, p + 1))
    out[:, 0, 0] = count[:, 0]
    out[:, 0, 1:] = out[:, 1:, 0] = (total + count * origin)[:, order]
    out[:, 1:, 1:] = cross[:, order][:, :, order]
    return out


def _regress(sums: Array, j: int, share: Array, pooling: float, rows: Array) -> tuple[Array, Array]:
    """Regression of column j on a constant and the columns before it, in each component.

    Returns weights of shape (k, 1 + j) and the variance left, of shape (k,).
    """
    before, with_j = sums[:, : j + 1, : j + 1], sums[:, : j + 1, j + 1]
    count = sums[:, 0, 0]
    mean_before = before.sum(axis=0) / count.sum()
    own = before / count[:, None, None]
    # A constant column tells nothing about another: without the ridge it would be singular.
    unit = np.eye(j + 1)
    prior = (pooling * rows)[:, None, None] * ((1 - TO_ALL) * own + TO_ALL * mean_before)
    prior = prior + RIDGE * (count[:, None, None] + 1.0) * unit
    variance = np.ones(len(count))
    for _ in range(ROUNDS):
        say = (share + 1e-6) / variance
        pooled = np.einsum("k,kij->ij", say, before)
        pooled = pooled + RIDGE * (np.diag(np.diagonal(pooled)) + say @ count * unit)
        common = np.linalg.solve(pooled, say @ with_j)
        weights = np.linalg.solve(before + prior, (with_j + prior @ common)[..., None])[..., 0]
        left = sums[:, j + 1, j + 1] - 2 * np.einsum("ki,ki->k", weights, with_j)
        left = np.maximum(left + np.einsum("ki,kij,kj->k", weights, before, weights), 0.0)
        overall = float(share @ left) / max(float(share @ count), 1e-9)
        variance = (left + rows * overall) / (count + rows)
        variance = np.maximum(variance, MIN_VARIANCE)
    return weights, variance
