"""What a joint Gaussian says about a table with gaps: likelihood, posterior, draws, moments.

Rows that share a pattern of gaps share one factorization; where nearly every row has its own
pattern, each row is factorized on the spot. `find_gaps` counts the patterns and chooses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from skyfill.errors import DataError
from skyfill.network._array import Array, IntArray, check_finite
from skyfill.network.moments import Moments, mirrored
from skyfill.network.single import kernels
from skyfill.threads import map_rows

# Shared patterns are kept only while all their factors fit into this many bytes.
PATTERN_BYTES = 2**25


class Posterior(NamedTuple):
    """Mean and standard deviation of every cell; a seen cell is itself, with 0."""

    mean: Array
    sd: Array


class Joint(NamedTuple):
    """A joint Gaussian by its mean, precision matrix and log determinant of the covariance."""

    mean: Array
    precision: Array
    log_det: float

    @classmethod
    def from_cov(cls, mean: Array, cov: Array) -> Joint:
        """Factorize a covariance matrix; DataError where it is singular."""
        try:
            factor = cho_factor(cov, lower=True)
        except np.linalg.LinAlgError:
            raise DataError("the covariance matrix is singular") from None
        precision = cho_solve(factor, np.eye(len(mean)))
        log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
        return cls(mean, (precision + precision.T) / 2.0, log_det)


class Gaps(NamedTuple):
    """A table with its patterns of gaps; `ids` is empty where patterns are not worth sharing."""

    X: Array
    ids: NDArray[np.int32]
    firsts: IntArray  # a row that shows each pattern


def find_gaps(X: Array, names: tuple[str, ...]) -> Gaps:
    """Find the patterns of gaps of a table and decide whether rows shall share them."""
    n, p = X.shape
    words = np.empty((n, (p + 63) // 64), np.uint64)
    if sum(map_rows(lambda rows: kernels.pack_gaps(X[rows], words[rows]), n)):
        check_finite(X, names)
    limit = min(n // 4, PATTERN_BYTES // (16 * max(p, 1) ** 2))
    ids, firsts, count = kernels.number_patterns(words, limit)
    if count > limit:
        return Gaps(X, ids[:0], firsts[:0])
    return Gaps(X, ids, firsts[:count])


def posterior(gaps: Gaps, joint: Joint) -> Posterior:
    """Posterior mean and standard deviation of every cell."""
    mean, sd = np.empty(gaps.X.shape), np.empty(gaps.X.shape)
    table = _patterns(gaps, joint)

    def work(rows: slice) -> bool:
        return kernels.fill_rows(*_part(gaps, table, rows), *joint[:2], mean[rows], sd[rows])

    _demand(map_rows(work, len(mean)))
    return Posterior(mean, sd)


def loglik(gaps: Gaps, joint: Joint) -> Array:
    """Observed-data log-likelihood of each row."""
    out = np.empty(len(gaps.X))
    table = _patterns(gaps, joint)
    work = lambda rows: kernels.loglik_rows(*_part(gaps, table, rows), *joint, out[rows])  # noqa: E731
    _demand(map_rows(work, len(out)))
    return out


def draws(gaps: Gaps, joint: Joint, normal: Array) -> Array:
    """Joint draws of each row's gaps, shape (n_draws, n, p), from standard normal numbers.

    `normal` has shape (n_draws, number of gaps): one number per gap, in row order.
    """
    starts = np.cumsum(np.isnan(gaps.X).sum(axis=1), dtype=np.int64)
    starts = np.concatenate([[0], starts[:-1]]).astype(np.int64)
    out = np.empty((len(normal), *gaps.X.shape))
    table = _patterns(gaps, joint)

    def work(rows: slice) -> bool:
        part = _part(gaps, table, rows)
        return kernels.draw_rows(*part, *joint[:2], normal, starts[rows], out[:, rows])

    _demand(map_rows(work, len(gaps.X)))
    return out


def expect(gaps: Gaps, joint: Joint) -> Moments:
    """Moments of a table with gaps, expected under a joint Gaussian: the E-step."""
    p = gaps.X.shape[1]
    table = _patterns(gaps, joint)

    def work(rows: slice) -> Moments:
        total, cross = np.zeros(p), np.zeros((p, p))
        value = kernels.expect_rows(*_part(gaps, table, rows), *joint, total, cross)
        _demand([not np.isnan(value)])
        n, cross = rows.stop - rows.start, mirrored(cross)
        return Moments(n, joint.mean, np.array(float(n)), total, cross, np.zeros(p), value)

    parts = map_rows(work, len(gaps.X))
    return sum(parts[1:], start=parts[0])


def _patterns(gaps: Gaps, joint: Joint) -> kernels.Patterns | None:
    """Factorize the shared patterns once; None where there are none to share."""
    if not gaps.ids.size:
        return None
    longest = max(int(np.isnan(gaps.X[gaps.firsts]).sum(axis=1).max()), 1)
    table = _empty_patterns(len(gaps.firsts), longest, gaps.X.shape[1])
    _demand([kernels.solve_patterns(gaps.X, gaps.firsts, joint.precision, *table)])
    return table


def _empty_patterns(count: int, longest: int, p: int) -> kernels.Patterns:
    return kernels.Patterns(
        np.empty(count, np.int64),
        np.empty((count, longest + 1), np.int64),
        np.zeros((count, longest, longest)),
        np.empty((count, longest)),
        np.empty((count, p, longest)),
    )


def _part(
    gaps: Gaps, table: kernels.Patterns | None, rows: slice
) -> tuple[Array, NDArray[np.int32], kernels.Patterns]:
    """Rows of a table, their pattern numbers and the patterns (room for one if not shared)."""
    if table is None:
        return gaps.X[rows], gaps.ids, _empty_patterns(1, max(gaps.X.shape[1], 1), 0)
    return gaps.X[rows], gaps.ids[rows], table


def _demand(worked: list[bool]) -> None:
    if not all(worked):
        raise DataError("the covariance of the lost columns is singular")
