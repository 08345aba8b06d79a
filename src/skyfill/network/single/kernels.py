"""Compiled kernels: what has to be done for each row of a table with gaps.

A row's gaps are a *pattern*: the list of its lost columns, and a matrix W, the inverse of the lower
Cholesky factor of the precision matrix of the lost columns. With d = x - mean, 0 where lost, and y
the lost part of precision @ d:

- the posterior mean of the lost columns is mean + e with e = -W^T W y, their covariance W^T W;
- a joint draw is mean + e + W^T u with u standard normal;
- log p(seen) = -1/2 (s log 2 pi + log|cov| + c^T precision c) + sum log W_ii, where c is d with the
  lost part filled by e.

The precision matrix of a network is known in closed form (no inversion), and few columns are lost
in most rows, so that a factorization per row is cheap. Patterns shared by many rows are factorized
once and kept in a `Patterns` table, together with their regression e = d @ gain. NaN never enters
arithmetic: it is turned into a pattern first. The fast-math flags below allow sums in another
order, but keep NaN and infinity meaningful.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray

REORDER = {"reassoc", "contract", "arcp", "nsz"}


class Patterns(NamedTuple):
    """Patterns of gaps, ready for use; all but `n_lost` are padded to the longest pattern."""

    n_lost: IntArray  # (k,)
    lost: IntArray  # (k, longest + 1), the last place is scratch
    w: Array  # (k, longest, longest), lower triangles
    sd: Array  # (k, longest)
    gain: Array  # (k, p, longest); empty where rows do not share patterns


@njit(cache=True, nogil=True)
def pack_gaps(X, words):  # type: ignore[no-untyped-def]
    """Write each row's gaps as bits; return the number of infinite cells."""
    n, p = X.shape
    infinite = 0
    for r in range(n):
        x = X[r]
        for k in range(words.shape[1]):
            stop = min(64 * k + 64, p)
            word = np.uint64(0)
            for j in range(64 * k, stop):
                word |= np.uint64(np.isnan(x[j])) << np.uint64(j - 64 * k)
            words[r, k] = word
        for j in range(p):
            infinite += np.isinf(x[j])
    return infinite


@njit(cache=True, nogil=True)
def number_patterns(words, limit):  # type: ignore[no-untyped-def]
    """Give distinct patterns numbers by first appearance; stop beyond `limit` of them."""
    n, m = words.shape
    size = 64
    while size < 4 * limit:
        size *= 2
    slots = np.full(size, -1, np.int64)
    ids = np.empty(n, np.int32)
    firsts = np.empty(limit, np.int64)
    count = 0
    for r in range(n):
        h = np.uint64(0)
        for k in range(m):
            h = (h ^ words[r, k]) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(size - 1))
        while True:
            known = slots[slot]
            if known < 0:
                if count == limit:
                    return ids, firsts, limit + 1
                slots[slot] = count
                firsts[count] = r
                ids[r] = count
                count += 1
                break
            same = True
            for k in range(m):
                if words[firsts[known], k] != words[r, k]:
                    same = False
            if same:
                ids[r] = known
                break
            slot = (slot + 1) & (size - 1)
    return ids, firsts, count


@njit(cache=True, nogil=True, inline="always")
def invert_factor(precision, lost, count, w):  # type: ignore[no-untyped-def]
    """Inverse Cholesky factor W of the lost block of a precision; log|W|, NaN if singular."""
    log_w = 0.0
    for i in range(count):
        for j in range(i + 1):
            s = precision[lost[i], lost[j]]
            for h in range(j):
                s -= w[i, h] * w[j, h]
            if i != j:
                w[i, j] = s * w[j, j]
            elif s > 0.0:
                w[i, i] = 1.0 / np.sqrt(s)
                log_w += np.log(w[i, i])
            else:
                log_w = np.nan
                w[i, i] = 1.0
    # The factor (with inverted diagonal) turns into its inverse in place, column by column.
    for j in range(count):
        for i in range(j + 1, count):
            s = 0.0
            for h in range(j, i):
                s -= w[i, h] * w[h, j]
            w[i, j] = s * w[i, i]
    return log_w


@njit(cache=True, nogil=True, inline="always")
def solve_pattern(x, precision, k, n_lost, lost, w, sd):  # type: ignore[no-untyped-def]
    """Store at place `k` the pattern of row `x`; return whether the factorization worked."""
    count = 0
    for j in range(x.size):
        lost[k, count] = j  # stays only if the next line counts it: no branch to mispredict
        count += np.isnan(x[j])
    n_lost[k] = count
    if np.isnan(invert_factor(precision, lost[k], count, w[k])):
        return False
    for i in range(count):
        s = 0.0
        for h in range(i, count):
            s += w[k, h, i] * w[k, h, i]
        sd[k, i] = np.sqrt(s)
    return True


@njit(cache=True, nogil=True)
def solve_patterns(X, firsts, precision, n_lost, lost, w, sd, gain):  # type: ignore[no-untyped-def]
    """Store the patterns of the rows `firsts`, with their regressions."""
    good = True
    for k in range(firsts.size):
        good &= solve_pattern(X[firsts[k]], precision, k, n_lost, lost, w, sd)
        count = n_lost[k]
        z = np.empty(count)
        for j in range(X.shape[1]):
            for i in range(count):
                z[i] = precision[lost[k, i], j]
            half_solve(w, k, z, count)
            for i in range(count):
                gain[k, j, i] = -back(w, k, z, i, count)
    return good


@njit(cache=True, nogil=True, inline="always")
def half_solve(w, k, z, count):  # type: ignore[no-untyped-def]
    """Turn z into W z, in place."""
    for i in range(count - 1, -1, -1):
        s = 0.0
        for h in range(i + 1):
            s += w[k, i, h] * z[h]
        z[i] = s


@njit(cache=True, nogil=True, inline="always")
def back(w, k, z, i, count):  # type: ignore[no-untyped-def]
    """Element i of W^T z."""
    s = 0.0
    for h in range(i, count):
        s += w[k, h, i] * z[h]
    return s


@njit(cache=True, nogil=True, inline="always")
def pattern_of(x, r, ids, precision, table):  # type: ignore[no-untyped-def]
    """Place of row r's pattern in the table; solved on the spot at place 0 if none is shared."""
    if ids.size:
        return np.int64(ids[r])
    if solve_pattern(x, precision, 0, table[0], table[1], table[2], table[3]):
        return np.int64(0)
    return np.int64(-1)


@njit(cache=True, nogil=True, fastmath=REORDER)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product of two vectors without NaN."""
    s = 0.0
    for j in range(a.size):
        s += a[j] * b[j]
    return s


@njit(cache=True, nogil=True, inline="always")
def condition_row(x, k, shared, mean, precision, table, c, z):  # type: ignore[no-untyped-def]
    """Fill c with x - mean, and its lost part with the posterior mean; return the number lost."""
    n_lost, lost, w, sd, gain = table
    count = n_lost[k]
    for j in range(x.size):
        c[j] = x[j] - mean[j]
    for i in range(count):
        c[lost[k, i]] = 0.0
    if shared:
        for i in range(count):
            z[i] = 0.0
        for j in range(x.size):
            if c[j] != 0.0:
                for i in range(count):
                    z[i] += c[j] * gain[k, j, i]
        for i in range(count):
            c[lost[k, i]] = z[i]
    else:
        for i in range(count):
            z[i] = dot(precision[lost[k, i]], c)
        half_solve(w, k, z, count)
        for i in range(count):
            c[lost[k, i]] = -back(w, k, z, i, count)
    return count


@njit(cache=True, nogil=True)
def fill_rows(X, ids, table, mean, precision, out, spread):  # type: ignore[no-untyped-def]
    """Write posterior means and standard deviations; `ids` is empty where no pattern is shared."""
    n, p = X.shape
    n_lost, lost, w, sd, gain = table
    c, z = np.empty(p), np.empty(p)
    for r in range(n):
        k = pattern_of(X[r], r, ids, precision, table)
        if k < 0:
            return False
        for j in range(p):
            out[r, j] = X[r, j]
            spread[r, j] = 0.0
        if n_lost[k]:
            count = condition_row(X[r], k, ids.size > 0, mean, precision, table, c, z)
            for i in range(count):
                j = lost[k, i]
                out[r, j] = mean[j] + c[j]
                spread[r, j] = sd[k, i]
    return True


@njit(cache=True, nogil=True)
def draw_rows(X, ids, table, mean, precision, normal, starts, out):  # type: ignore[no-untyped-def]
    """Write joint draws of each row's gaps from `normal` (n_draws, all gaps of all rows)."""
    n, p = X.shape
    n_lost, lost, w, sd, gain = table
    c, z = np.empty(p), np.empty(p)
    for r in range(n):
        k = pattern_of(X[r], r, ids, precision, table)
        if k < 0:
            return False
        count = condition_row(X[r], k, ids.size > 0, mean, precision, table, c, z)
        for t in range(out.shape[0]):
            for j in range(p):
                out[t, r, j] = X[r, j]
            for i in range(count):
                j = lost[k, i]
                noise = back(w, k, normal[t, starts[r] : starts[r] + count], i, count)
                out[t, r, j] = mean[j] + c[j] + noise
    return True


@njit(cache=True, nogil=True)
def log_density(c, k, count, precision, log_det, w):  # type: ignore[no-untyped-def]
    """Log density of the seen part of a completed row."""
    value = log_det + (c.size - count) * np.log(2.0 * np.pi)
    for j in range(c.size):
        value += c[j] * dot(precision[j], c)
    value *= -0.5
    for i in range(count):
        value += np.log(w[k, i, i])
    return value


@njit(cache=True, nogil=True)
def loglik_rows(X, ids, table, mean, precision, log_det, out):  # type: ignore[no-untyped-def]
    """Write the observed-data log-likelihood of each row."""
    n, p = X.shape
    c, z = np.empty(p), np.empty(p)
    for r in range(n):
        k = pattern_of(X[r], r, ids, precision, table)
        if k < 0:
            return False
        count = condition_row(X[r], k, ids.size > 0, mean, precision, table, c, z)
        out[r] = log_density(c, k, count, precision, log_det, table[2])
    return True


@njit(cache=True, nogil=True)
def expect_rows(X, ids, table, mean, precision, log_det, total, cross):  # type: ignore[no-untyped-def]
    """Add expected sums of (x - mean) and of its outer product (lower); return the likelihood."""
    n, p = X.shape
    n_lost, lost, w, sd, gain = table
    c, z = np.empty(p), np.empty(p)
    loglik = 0.0
    rows_of = np.zeros(n_lost.size, np.int64)
    for r in range(n):
        k = pattern_of(X[r], r, ids, precision, table)
        if k < 0:
            return np.nan
        count = condition_row(X[r], k, ids.size > 0, mean, precision, table, c, z)
        loglik += log_density(c, k, count, precision, log_det, w)
        for i in range(p):
            total[i] += c[i]
            for j in range(i + 1):
                cross[i, j] += c[i] * c[j]
        if ids.size:
            rows_of[k] += 1
        else:
            add_spread(k, 1, n_lost, lost, w, cross)
    for k in range(n_lost.size):
        if rows_of[k]:
            add_spread(k, rows_of[k], n_lost, lost, w, cross)
    return loglik


@njit(cache=True, nogil=True)
def add_spread(k, times, n_lost, lost, w, cross):  # type: ignore[no-untyped-def]
    """Add the conditional covariance W^T W of a pattern's gaps, once per row."""
    count = n_lost[k]
    for i in range(count):
        for j in range(i + 1):
            s = 0.0
            for h in range(i, count):
                s += w[k, h, i] * w[k, h, j]
            cross[lost[k, i], lost[k, j]] += times * s
