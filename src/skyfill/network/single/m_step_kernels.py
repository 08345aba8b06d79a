"""Compiled kernel of the M-step of one network: a regression per node."""

import numpy as np
from numba import njit

from skyfill.network.single.kernels import invert_factor


@njit(cache=True, nogil=True)
def whiten_nodes(cov, bounds, families, least, precision):  # type: ignore[no-untyped-def]
    """Add up the precision of the best network for a covariance; return log|cov| of the network.

    The parents of node j are families[bounds[j] : bounds[j + 1]]. A node keeps `least` as noise.
    NaN where the covariance of some parents has, or may have, an eigenvalue of `least` or less.
    """
    p, log_det = len(cov), 0.0
    w, row = np.empty((p, p)), np.empty(p)
    for j in range(p):
        parents = families[bounds[j] : bounds[j + 1]]
        m = parents.size
        if np.isnan(invert_factor(cov, parents, m, w)):
            return np.nan
        trace = 0.0
        noise = cov[j, j]
        for i in range(m):
            row[i] = 0.0
            explained = 0.0
            for h in range(i + 1):
                trace += w[i, h] * w[i, h]
                explained += w[i, h] * cov[parents[h], j]
            noise -= explained * explained
            for h in range(i + 1):
                row[h] -= w[i, h] * explained
        # The smallest eigenvalue is at least one over the trace of the inverse.
        if trace * least >= 1.0:
            return np.nan
        noise = max(noise, least)
        log_det += np.log(noise)
        precision[j, j] += 1.0 / noise
        for i in range(m):
            for h in range(m):
                precision[parents[i], parents[h]] += row[i] * row[h] / noise
            precision[j, parents[i]] += row[i] / noise
            precision[parents[i], j] += row[i] / noise
    return log_det
