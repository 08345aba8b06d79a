"""Compiled kernels of mixtures: every component of every fit for every row.

The formulas are those of kernels.py. Components are the last axis of every array, so that each step
is done for all of them at once by vector instructions. Rows are sorted by their pattern of gaps:
factorisations are made once per run of equal patterns, and runs of length one cost little more.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.gap_kernels import look_up
from skyfill.network.kernels import REORDER


class Components(NamedTuple):
    """All components of all fits as flat arrays; fit f has components bounds[f] to bounds[f+1]."""

    means: Array  # (p, c)
    precisions: Array  # (p, p, c)
    log_norms: Array  # (c,): log weight - half the log determinant of the covariance
    log_lost: Array  # (p, c): log probability that a cell is a gap; 0 where gaps are ignorable
    log_seen: Array  # (p, c)
    bounds: IntArray  # (fits + 1,)


@njit(cache=True, nogil=True, error_model="numpy")
def find_lost(x, lost):  # type: ignore[no-untyped-def]
    """List the gaps of a row; return their number."""
    count = 0
    for j in range(x.size):
        if np.isnan(x[j]):
            lost[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True, fastmath=REORDER, error_model="numpy")
def invert_factors(precisions, lost, count, w, log_w):  # type: ignore[no-untyped-def]
    """Inverse Cholesky factors W of the lost blocks; add log|W|."""
    size = log_w.size
    det = np.ones(size)  # one logarithm per component, not one per gap
    for i in range(count):
        for j in range(i + 1):
            for k in range(size):
                w[i, j, k] = precisions[lost[i], lost[j], k]
            for h in range(j):
                for k in range(size):
                    w[i, j, k] -= w[i, h, k] * w[j, h, k]
            if i != j:
                for k in range(size):
                    w[i, j, k] *= w[j, j, k]
        for k in range(size):
            w[i, i, k] = 1.0 / np.sqrt(max(w[i, i, k], 1e-300))
            det[k] *= w[i, i, k]
        if i == count - 1 or i % 8 == 7:  # before the products run out of range
            for k in range(size):
                log_w[k] += np.log(det[k])
                det[k] = 1.0
    for j in range(count):
        for i in range(j + 1, count):
            for k in range(size):
                w[i, j, k] *= -w[j, j, k]
            for h in range(j + 1, i):
                for k in range(size):
                    w[i, j, k] -= w[i, h, k] * w[h, j, k]
            for k in range(size):
                w[i, j, k] *= w[i, i, k]


@njit(cache=True, nogil=True, error_model="numpy")
def prepare(x, lost, count, components, w, log_w):  # type: ignore[no-untyped-def]
    """Factorise a pattern for every component; log_w becomes all of the log density but -quad/2."""
    means, precisions, log_norms, log_lost, log_seen, _ = components
    constant = 0.5 * (x.size - count) * np.log(2.0 * np.pi)
    for k in range(log_norms.size):
        log_w[k] = log_norms[k] - constant
    for j in range(x.size):
        gap = np.isnan(x[j])
        for k in range(log_norms.size):
            log_w[k] += log_lost[j, k] if gap else log_seen[j, k]
    invert_factors(precisions, lost, count, w, log_w)


@njit(cache=True, nogil=True, fastmath=REORDER, error_model="numpy")
def add_products(a, b, rows, out):  # type: ignore[no-untyped-def]
    """Add to `out` the products of the first rows of two tables, summed over rows."""
    size = out.size
    i = 0
    while i + 4 <= rows:  # four at once: `out` is loaded and stored a quarter as often
        for k in range(size):
            out[k] += (
                a[i, k] * b[i, k]
                + a[i + 1, k] * b[i + 1, k]
                + a[i + 2, k] * b[i + 2, k]
                + a[i + 3, k] * b[i + 3, k]
            )
        i += 4
    while i < rows:
        for k in range(size):
            out[k] += a[i, k] * b[i, k]
        i += 1


@njit(cache=True, nogil=True, fastmath=REORDER, error_model="numpy")
def complete(x, components, lost, count, w, c, z, quad):  # type: ignore[no-untyped-def]
    """Fill c with x - mean, its lost part with the posterior mean; quad with c^T precision c."""
    means, precisions = components[0], components[1]
    size = quad.size
    quad[:] = 0.0
    gap = 0
    lost[count] = -1
    for j in range(x.size):
        if j == lost[gap]:
            gap += 1
            c[j, :] = 0.0
            continue
        for k in range(size):
            c[j, k] = x[j] - means[j, k]
            z[0, k] = 0.5 * precisions[j, j, k] * c[j, k]
        add_products(precisions[j], c, j, z[0])
        for k in range(size):
            quad[k] += 2.0 * z[0, k] * c[j, k]
    for i in range(count):
        z[i, :] = 0.0
        add_products(precisions[lost[i]], c, x.size, z[i])
    for i in range(count - 1, -1, -1):
        for k in range(size):
            z[i, k] *= w[i, i, k]
        for h in range(i):
            for k in range(size):
                z[i, k] += w[i, h, k] * z[h, k]
        for k in range(size):
            quad[k] -= z[i, k] * z[i, k]
    for i in range(count):
        for h in range(i, count):
            for k in range(size):
                c[lost[i], k] -= w[h, i, k] * z[h, k]


@njit(cache=True, nogil=True, error_model="numpy")
def normalize(logs, bounds):  # type: ignore[no-untyped-def]
    """Turn log densities into responsibilities within each fit, over the number of fits.

    Return the log of the mean density over fits.
    """
    fits = bounds.size - 1
    best, total = -np.inf, 0.0
    for f in range(fits):
        top = -np.inf
        for k in range(bounds[f], bounds[f + 1]):
            top = max(top, logs[k])
        s = 0.0
        for k in range(bounds[f], bounds[f + 1]):
            logs[k] = np.exp(logs[k] - top) if logs[k] > top - 30.0 else 0.0
            s += logs[k]
        if s == 0.0:  # no component can have made the row: none is more likely than another
            top, s = -1e300, float(bounds[f + 1] - bounds[f])
            logs[bounds[f] : bounds[f + 1]] = 1.0
        for k in range(bounds[f], bounds[f + 1]):
            logs[k] /= s * fits
        value = top + np.log(s)
        if value > best:
            total = total * np.exp(best - value) + 1.0
            best = value
        else:
            total += np.exp(value - best)
    return best + np.log(total / fits)


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_rows(X, order, starts, components, first_gap, resp, mean, sd, loglik):  # type: ignore[no-untyped-def]
    """Write each row's responsibilities and likelihood, and per gap and component mean and sd.

    Gaps are numbered in row order: those of row r start at first_gap[r].
    """
    means, bounds = components[0], components[5]
    p, size = means.shape
    lost, w = np.empty(p + 1, np.int64), np.empty((p, p, size))
    log_w, c, z = np.empty(size), np.empty((p, size)), np.empty((p, size))
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(X[order[starts[g]]], lost, count, components, w, log_w)
        for a in range(starts[g], starts[g + 1]):
            r = order[a]
            complete(X[r], components, lost, count, w, c, z, resp[r])
            for k in range(size):
                resp[r, k] = log_w[k] - 0.5 * resp[r, k]
            loglik[r] = normalize(resp[r], bounds)
            for i in range(count):
                j, gap = lost[i], first_gap[r] + i
                sd[gap, :] = 0.0
                for h in range(i, count):
                    for k in range(size):
                        sd[gap, k] += w[h, i, k] * w[h, i, k]
                for k in range(size):
                    mean[gap, k] = means[j, k] + c[j, k]
                    sd[gap, k] = np.sqrt(sd[gap, k])


@njit(cache=True, nogil=True, error_model="numpy")
def draw_gaps(X, order, starts, components, resp, first_gap, uniform, normal, grids, out):  # type: ignore[no-untyped-def]
    """Write joint draws: a component by its responsibility, then its Gaussian, then the margins."""
    means = components[0]
    p, size = means.shape
    lost, w = np.empty(p + 1, np.int64), np.empty((p, p, size))
    log_w, quad = np.empty(size), np.empty(size)
    c, z = np.empty((p, size)), np.empty((p, size))
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(X[order[starts[g]]], lost, count, components, w, log_w)
        for a in range(starts[g], starts[g + 1]):
            r = order[a]
            complete(X[r], components, lost, count, w, c, z, quad)
            for t in range(out.shape[0]):
                k = choose(resp[r], uniform[t, r])
                for i in range(count):
                    noise = 0.0
                    for h in range(i, count):
                        noise += w[h, i, k] * normal[t, first_gap[r] + h]
                    j = lost[i]
                    out[t, r, j] = look_up(grids[j], means[j, k] + c[j, k] + noise)


@njit(cache=True, nogil=True, error_model="numpy")
def choose(resp, uniform):  # type: ignore[no-untyped-def]
    """Index of the component in whose share of the unit interval a number lies."""
    left = uniform
    for k in range(resp.size):
        left -= resp[k]
        if left < 0.0:
            return k
    return np.argmax(resp)


@njit(cache=True, nogil=True, fastmath=REORDER, error_model="numpy")
def expect_mixture(X, order, starts, components, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
    """Add the expected moments of each component of one fit; return the log-likelihood."""
    p, size = components[0].shape
    lost, w = np.empty(p + 1, np.int64), np.empty((p, p, size))
    c, z = np.empty((p, size)), np.empty((p, size))
    log_w, r, mine = np.empty(size), np.empty(size), np.empty(size)
    loglik = 0.0
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(X[order[starts[g]]], lost, count, components, w, log_w)
        mine[:] = 0.0
        for a in range(starts[g], starts[g + 1]):
            complete(X[order[a]], components, lost, count, w, c, z, r)
            for k in range(size):
                r[k] = log_w[k] - 0.5 * r[k]
            loglik += normalize(r, components[5])
            for k in range(size):
                mine[k] += r[k]
            for i in range(p):
                for k in range(size):
                    z[0, k] = r[k] * c[i, k]
                    total[i, k] += z[0, k]
                for j in range(i + 1):
                    for k in range(size):
                        cross[i, j, k] += z[0, k] * c[j, k]
        for k in range(size):
            weight[k] += mine[k]
        for i in range(count):
            for k in range(size):
                gaps[lost[i], k] += mine[k]
            for j in range(i + 1):
                for h in range(i, count):
                    for k in range(size):
                        cross[lost[i], lost[j], k] += mine[k] * w[h, i, k] * w[h, j, k]
    return loglik
