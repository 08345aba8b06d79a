"""Compiled kernel of pooled regressions: each column on those before it, in every component."""

import numpy as np
from numba import njit

MIN_VARIANCE = 1e-6
# Share of a component's predictors that is replaced by everybody's, so that none is singular.
TO_ALL = 0.02
# Added to the diagonal of predictors, over the number of rows: a constant column tells nothing
# about another, and would be singular without it.
RIDGE = 1e-9
# Rounds in which common regressions and the variances that they are weighed by settle.
ROUNDS = 2


@njit(cache=True, nogil=True, error_model="numpy")
def regress_chain(sums, share, pooling, rows, weights, noise):  # type: ignore[no-untyped-def]
    """Regress each column on a constant and the columns before it.

    `sums` has shape (k, 1 + p, 1 + p), `share` and `rows` (k, p). Writes `weights` of shape
    (k, p, p), the constant first, and the variance left, `noise` of shape (k, p).
    """
    k, p = share.shape
    prior, lower = np.empty((k, p, p)), np.empty((k, p, p))
    pooled, common, left = np.empty((p, p)), np.empty(p), np.empty(k)
    for j in range(p):
        _factorize_own(sums, j, pooling[j] * rows[:, j], prior, lower)
        noise[:, j] = 1.0
        for _ in range(ROUNDS):
            _find_common(sums, j, (share[:, j] + 1e-6) / noise[:, j], pooled, common)
            spread, n_rows = 0.0, 0.0
            for c in range(k):
                left[c] = _regress_one(sums[c], j, prior[c], lower[c], common, weights[c, j])
                spread += share[c, j] * left[c]
                n_rows += share[c, j] * sums[c, 0, 0]
            overall = spread / max(n_rows, 1e-9)
            for c in range(k):
                variance = (left[c] + rows[c, j] * overall) / (sums[c, 0, 0] + rows[c, j])
                noise[c, j] = max(variance, MIN_VARIANCE)


@njit(cache=True, nogil=True, error_model="numpy")
def _factorize_own(sums, j, strength, prior, lower):  # type: ignore[no-untyped-def]
    """Find the sums that stand for the common regression, and factors with them added."""
    k, total = len(sums), 0.0
    for c in range(k):
        total += sums[c, 0, 0]
    for a in range(j + 1):
        for b in range(a + 1):
            of_all = 0.0
            for c in range(k):
                of_all += sums[c, a, b]
            for c in range(k):
                own = (1 - TO_ALL) * sums[c, a, b] / sums[c, 0, 0]
                value = strength[c] * (own + TO_ALL * of_all / total)
                if a == b:
                    value += RIDGE * (sums[c, 0, 0] + 1.0)
                prior[c, a, b] = prior[c, b, a] = value
                lower[c, a, b] = sums[c, a, b] + value
    for c in range(k):
        _factorize(lower[c], j + 1)


@njit(cache=True, nogil=True, error_model="numpy")
def _find_common(sums, j, say, pooled, common):  # type: ignore[no-untyped-def]
    """Regression that the components have in common; `say` is how much each of them counts."""
    n_rows = 0.0
    for c in range(len(sums)):
        n_rows += say[c] * sums[c, 0, 0]
    for a in range(j + 1):
        common[a] = 0.0
        for c in range(len(sums)):
            common[a] += say[c] * sums[c, a, j + 1]
        for b in range(a + 1):
            pooled[a, b] = 0.0
            for c in range(len(sums)):
                pooled[a, b] += say[c] * sums[c, a, b]
        pooled[a, a] += RIDGE * (pooled[a, a] + n_rows)
    _factorize(pooled, j + 1)
    _solve(pooled, j + 1, common)


@njit(cache=True, nogil=True, error_model="numpy")
def _regress_one(sums, j, prior, lower, common, weights):  # type: ignore[no-untyped-def]
    """Write the regression of a component; return the sum of squares that it leaves."""
    for a in range(j + 1):
        weights[a] = sums[a, j + 1]
        for b in range(j + 1):
            weights[a] += prior[a, b] * common[b]
    _solve(lower, j + 1, weights)
    left = sums[j + 1, j + 1]
    for a in range(j + 1):
        explained = -2 * sums[a, j + 1]
        for b in range(j + 1):
            explained += sums[a, b] * weights[b]
        left += weights[a] * explained
    return max(left, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _factorize(lower, size):  # type: ignore[no-untyped-def]
    """Cholesky factor of a lower triangle, in place, its diagonal inverted."""
    for i in range(size):
        for j in range(i + 1):
            s = lower[i, j]
            for h in range(j):
                s -= lower[i, h] * lower[j, h]
            lower[i, j] = s * lower[j, j] if j < i else 1.0 / np.sqrt(s)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(lower, size, x):  # type: ignore[no-untyped-def]
    """Solve with such a factor, in place."""
    for i in range(size):
        for h in range(i):
            x[i] -= lower[i, h] * x[h]
        x[i] *= lower[i, i]
    for i in range(size - 1, -1, -1):
        for h in range(i + 1, size):
            x[i] -= lower[h, i] * x[h]
        x[i] *= lower[i, i]
