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
from skyfill.network.mixture.pooling_kernels import regress_chain
from skyfill.network.moments import Moments


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
    share = np.ascontiguousarray(np.clip(seen / count, 0.0, 1.0)[:, order])
    # Squared: the fewer rows saw a column, the less do those that did stand for the others.
    rows = shrinkage * ((count + 1.0) / (share * count + 1.0)) ** 2
    weights, noise = np.zeros((k, p, p)), np.empty((k, p))
    regress_chain(sums, share, pooling[order], rows, weights, noise)
    starts, slopes = weights[:, :, 0], np.zeros((k, p, p))
    slopes[:, :, :-1] = weights[:, :, 1:]
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
