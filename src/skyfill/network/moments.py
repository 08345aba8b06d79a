"""Expected sums over rows and the EM that climbs with them: for one Gaussian and for mixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyfill.network._array import Array

P = TypeVar("P")


@dataclass(frozen=True)
class Moments:
    """Expected sums over rows; parts of a table add up to the whole.

    In the shapes, ``...`` is empty for one Gaussian and k for a mixture of k components.

    Attributes
    ----------
    n : int
        Number of rows.
    origin : array of shape (..., p)
        The points that the sums are taken about; equal for all parts.
    weight : array of shape (...)
        Expected number of rows of each component.
    total : array of shape (..., p)
        Sum of ``E[x - origin]``.
    cross : array of shape (..., p, p)
        Sum of ``E[(x - origin)(x - origin)^T]``, conditional covariance of the gaps included.
    gaps : array of shape (..., p)
        Expected number of gaps; 0 where they are not counted.
    loglik : float
        Observed-data log-likelihood of the parameters that the expectation was taken under.
    """

    n: int
    origin: Array
    weight: Array
    total: Array
    cross: Array
    gaps: Array
    loglik: float

    def __add__(self, other: Moments) -> Moments:
        if not np.array_equal(self.origin, other.origin):
            raise ValueError("moments about different origins do not add")
        sums = [field.name for field in fields(self) if field.name != "origin"]
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in sums})

    @property
    def count(self) -> Array:
        """Expected number of rows, never 0, of shape (..., 1)."""
        return np.maximum(self.weight, 1e-9)[..., None]

    @property
    def shift(self) -> Array:
        """Expected mean of the columns, less the origin."""
        return self.total / self.count

    @property
    def mean(self) -> Array:
        """Expected mean of the columns."""
        return self.origin + self.shift

    @property
    def cov(self) -> Array:
        """Expected covariance of the columns (divisor n)."""
        shift = self.shift
        return self.cross / self.count[..., None] - shift[..., :, None] * shift[..., None, :]


def mirrored(lower: Array) -> Array:
    """Make matrices of shape (..., p, p) symmetric, of which only the lower triangles are filled.

    Examples
    --------
    >>> mirrored(np.array([[1.0, 0.0], [2.0, 3.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    upper = lower.swapaxes(-1, -2)
    return np.ascontiguousarray(np.where(_lower_triangle(lower.shape[-1]), lower, upper))


@cache
def _lower_triangle(p: int) -> NDArray[np.bool_]:
    return np.tri(p, dtype=np.bool_)


class Climb(NamedTuple, Generic[P]):
    """Where EM ended.

    Attributes
    ----------
    params
        The parameters found.
    trace : list of float
        Log-likelihood of every set of parameters tried; the last one is that of `params`.
    converged : bool
    moments : Moments
        Expected under `params`.
    """

    params: P
    trace: list[float]
    converged: bool
    moments: Moments

    @property
    def n_iter(self) -> int:
        """Number of steps."""
        return len(self.trace) - (not self.converged)


def em(
    expect: Callable[[P], Moments],
    maximize: Callable[[Moments], P],
    start: P,
    *,
    tol: float,
    max_iter: int,
) -> Climb[P]:
    """Climb the likelihood; `expect` may sum over one array, over batches or over a cluster.

    Stops when a step gains less than `tol` per row.
    """
    params, trace = start, []
    for _ in range(max_iter):
        moments = expect(params)
        trace.append(moments.loglik)
        if len(trace) > 1 and trace[-1] - trace[-2] <= tol * moments.n:
            return Climb(params, trace, True, moments)
        params = maximize(moments)
    moments = expect(params)
    return Climb(params, [*trace, moments.loglik], False, moments)


def accelerated_em(
    expect: Callable[[P], Moments],
    maximize: Callable[[Moments], P],
    start: P,
    *,
    extrapolate: Callable[[P, P, P], P],
    change: Callable[[P, P], float],
    tol: float,
    max_iter: int,
) -> Climb[P]:
    """Climb in strides: two steps of EM show where they lead (SQUAREM, Varadhan & Roland 2008).

    EM with limits moves slowly where little is seen. A stride that lowers the likelihood by more
    than `tol` per row is taken back. Stops when a stride gains less than `tol` per row and a step
    changes the parameters by less than `tol` too: what is hardly seen hardly moves the likelihood.

    Parameters
    ----------
    expect, maximize, start, tol, max_iter
        As in `em`; `max_iter` counts expectations.
    extrapolate : callable
        Takes three successive sets of parameters, gives one further on.
    change : callable
        How far two sets of parameters are apart.
    """
    params, moments = start, expect(start)
    trace = [moments.loglik]
    while len(trace) < max_iter:
        first = maximize(moments)
        middle = expect(first)
        second = maximize(middle)
        further = extrapolate(params, first, second)
        ahead = expect(further)
        trace += [middle.loglik, ahead.loglik]
        if not ahead.loglik >= middle.loglik - tol * moments.n:
            further, ahead = second, expect(second)
            trace.append(ahead.loglik)
        gain, moved = ahead.loglik - moments.loglik, change(first, second)
        params, moments = further, ahead
        if gain <= tol * moments.n and moved <= tol:
            return Climb(params, trace, True, moments)
    return Climb(params, trace, False, moments)
