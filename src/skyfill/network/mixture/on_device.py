"""Mixtures on a GPU: posteriors, likelihoods and expected moments of plain rows.

Rows with limits or errors are worked on by the processor. On the GPU every component of every row
has a thread; what is lost is then completed for those components alone that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skyfill.device import Device, in_batches
from skyfill.network._array import Array
from skyfill.network.mixture import bodies
from skyfill.network.mixture.gap_kernels import NEGLIGIBLE
from skyfill.network.mixture.margin import Constant, Margin
from skyfill.network.mixture.margin_kernels import Knots, Maps
from skyfill.network.mixture.margin_moments import MarginMoments
from skyfill.network.mixture.mixture import Mixture, gap_logs, precisions_of
from skyfill.network.moments import Moments

# Tables of fewer rows stay on the cores of this machine, and with EM of fewer.
WORTH_A_GPU, EM_WORTH_A_GPU = 50_000, 100_000
ROWS_AT_ONCE = 1 << 19
# Components of less responsibility are left out of expected moments.
LEAST_SHARE = 1e-9
# Rows of products that are summed by one matrix product, and tables that threads add to.
SEGMENT, SPREADS = 1024, 64
_LEAST_PIVOT = {np.dtype(np.float64): 1e-300, np.dtype(np.float32): 1e-30}


class Components(NamedTuple):
    """All components of all fits on a device, one after the other along the last axis."""

    means: Any  # (p * c,)
    precisions: Any  # (p * p * c,), with half the diagonal
    log_norms: Any  # (c,): log weight - half the log determinant of the covariance
    gap_logs: Any  # (2, p, c): log chance that a cell is a gap, or is not; p is 0 where ignorable
    bounds: Any  # (fits + 1,)
    unit: tuple[Any, Any, Any]

    @property
    def dtype(self) -> Any:
        """Precision in which everything is computed."""
        return np.dtype(self.means.dtype)


class Weighed(NamedTuple):
    """What the components say of some rows."""

    Z: Any
    order: Any  # (n, p): lost columns, then seen ones
    steps: Any  # (n, p): the same times the number of components
    counts: Any  # (n,): number of lost columns
    resp: Any  # (n, c)
    loglik: Any  # (n,)
    seen: Any  # (n,): without the chance of the pattern of gaps


def load_components(device: Device, fits: Sequence[Mixture], dtype: Any = np.float64) -> Components:
    """Copy the components of some fits to a device."""
    precisions, log_norms = precisions_of(fits)
    logs = np.stack(gap_logs(fits)) if fits[0].gap_rates is not None else np.empty((2, 0, 0))
    arrays = [np.concatenate([fit.means for fit in fits]).T, np.moveaxis(precisions, 0, -1),
              log_norms, np.moveaxis(logs, 1, -1)]  # fmt: skip
    bounds = np.cumsum([0, *(len(fit.weights) for fit in fits)], dtype=np.int64)
    kind = np.dtype(dtype).type
    unit = (kind(0), kind(1), kind(_LEAST_PIVOT[np.dtype(dtype)]))
    loaded = [device.array(np.ascontiguousarray(a), dtype) for a in arrays]
    return Components(
        loaded[0].ravel(), loaded[1].ravel(), loaded[2], loaded[3], device.array(bounds), unit
    )


def room_for(p: int) -> int:
    """Count the numbers that a row needs to be solved for a component."""
    return p * (p + 1) // 2 + 2 * p


def weigh_rows(device: Device, Z: Any, components: Components) -> Weighed:
    """Find responsibilities and likelihoods of rows of normal scores that are on the device."""
    (n, p), c = Z.shape, len(components.log_norms)
    order, steps = (device.empty((n, p), np.uint32) for _ in range(2))
    counts = device.empty(n, np.uint32)
    device.run(bodies.sort_columns, n, Z, c, order, steps, counts)
    logs = device.empty((n, c), components.dtype)
    bare = device.empty((n, c if components.gap_logs.shape[1] else 0), components.dtype)
    given = (Z, order, steps, counts, *components[:4], components.unit, logs, bare)
    device.run(bodies.weigh, n * c, *given, room=room_for(p), dtype=components.dtype)
    loglik = _share(device, components, logs)
    seen = _share(device, components, bare) if bare.shape[1] else loglik
    return Weighed(Z, order, steps, counts, logs, loglik, seen)


def _share(device: Device, components: Components, logs: Any) -> Any:
    """Turn log densities into responsibilities; return the log-likelihoods of the rows."""
    n, fits = len(logs), len(components.bounds) - 1
    values, loglik = device.empty((n, fits)), device.empty(n)
    device.run(bodies.share, n * fits, components.bounds, logs, values)
    device.run(bodies.average, n, values, loglik)
    return loglik


class Tables(NamedTuple):
    """Margins on a device."""

    place: Any  # (p,): which of the knots are the column's; -1: it has none
    shift: Any  # (p,)
    width: Any  # (p,)
    knots: tuple[Any, ...]
    moments: Any  # (p, entries, 2): of the values at a normal score, see margin_moments.py
    middle: Any  # (p,)
    reach: Any  # (p,)


def load_tables(
    device: Device, margins: Sequence[Margin], knots: Knots, moments: MarginMoments
) -> Tables:
    """Copy margins to a device; `moments` are those of the margins."""
    p = len(margins)
    place, shift, width = np.full(p, -1, np.int64), np.zeros(p), np.full(p, np.inf)
    place[knots.columns] = np.arange(len(knots.columns))
    for j, margin in enumerate(margins):
        if place[j] < 0 and not isinstance(margin, Constant):
            shift[j], width[j] = margin.x[0], margin.x[1] - margin.x[0]
    lines = [device.array(a) for a in (place, shift, width)]
    maps = [device.array(a) for a in moments]
    return Tables(*lines, tuple(device.array(a) for a in knots), *maps)  # type: ignore[call-arg]


def load_mixture(
    device: Device,
    fits: Sequence[Mixture],
    margins: Sequence[Margin],
    knots: Knots,
    moments: MarginMoments,
    *,
    dtype: Any = np.float64,
) -> DeviceMixture:
    """Copy a mixture and its margins to a device."""
    tables = load_tables(device, margins, knots, moments)
    return DeviceMixture(device, load_components(device, fits, dtype), tables)


@dataclass(frozen=True)
class DeviceMixture:
    """A mixture with its margins on a device."""

    device: Device
    components: Components
    tables: Tables

    def look(self, X: Array, *, responsibilities: bool = False) -> dict[str, Array]:
        """Posterior mean and sd of every cell, likelihoods and responsibilities of every row."""
        return self._gather(X, responsibilities, fill=True)

    def likelihoods(self, X: Array, *, responsibilities: bool = False) -> dict[str, Array]:
        """Likelihoods and responsibilities of every row."""
        return self._gather(X, responsibilities, fill=False)

    def draws(self, X: Array, dice: tuple[Array, Array], maps: Maps) -> Array:
        """Joint draws of every row's gaps, (draws, n, p); `dice` are uniform and normal numbers."""
        (uniform, normal), device = dice, self.device
        out = np.repeat(X[None], len(uniform), axis=0)
        own = np.concatenate([[0], np.cumsum(np.isnan(X).sum(axis=1))])
        tables, components = tuple(map(device.array, maps)), self.components

        def work(rows: slice) -> None:
            weighed = self._weigh(device.array(X[rows]))
            mine = slice(own[rows.start], own[rows.stop])
            numbers = uniform[:, rows], normal[:, mine], own[rows] - own[rows.start]
            found = device.array(out[:, rows])
            given = (*weighed[:4], *components[:2], components.unit, weighed.resp)
            how = {"room": room_for(X.shape[1]), "dtype": components.dtype}
            dice = tuple(map(device.array, numbers))
            n_items = uniform[:, rows].size
            device.run(bodies.draw_row, n_items, *given, dice, tables, found, **how)
            out[:, rows] = device.host(found)

        with device.alone():
            in_batches(device, len(X), max(1, ROWS_AT_ONCE // len(uniform)), work)
        return out

    def _gather(self, X: Array, responsibilities: bool, *, fill: bool) -> dict[str, Array]:
        found = {"loglik": np.empty(len(X)), "seen": np.empty(len(X))}
        if fill:
            found |= {"mean": np.empty(X.shape), "sd": np.empty(X.shape)}
        if responsibilities:
            found["resp"] = np.empty((len(X), len(self.components.log_norms)))

        def work(rows: slice) -> None:
            there = self.device.array(X[rows])
            weighed = self._weigh(there)
            made = {"loglik": weighed.loglik, "seen": weighed.seen, "resp": weighed.resp}
            if fill:
                made["mean"], made["sd"] = self._fill(there, weighed)
            for name, out in found.items():
                self.device.host(made[name].astype(np.float64, copy=False), out[rows])

        with self.device.alone():
            in_batches(self.device, len(X), ROWS_AT_ONCE, work)
        return found

    def _weigh(self, X: Any) -> Weighed:
        Z = self.device.empty(X.shape, self.components.dtype)
        given = (X, *self.tables[:4], Z)
        self.device.run(bodies.score_cell, X.size, *given)
        return weigh_rows(self.device, Z, self.components)

    def _fill(self, X: Any, weighed: Weighed) -> tuple[Any, Any]:
        """Fill the gaps of some rows, from the components that matter for each."""
        device, components, xp = self.device, self.components, self.device.xp
        matter = weighed.resp > NEGLIGIBLE
        pairs = xp.flatnonzero(matter)
        first = device.empty(len(X) + 1, np.int64, 0)
        first[1:] = matter.sum(axis=1).cumsum()
        shares = weighed.resp.ravel()[pairs]
        p, dtype = X.shape[1], components.dtype
        mean, sd = (device.empty((p, len(pairs)), dtype) for _ in range(2))
        known = (*components[:2], len(components.log_norms), components.unit)
        given: tuple[Any, ...] = (pairs, *weighed[:4], *known, mean, sd)
        device.run(bodies.complete, len(pairs), *given, room=room_for(p), dtype=dtype)
        gaps, out, spread = xp.flatnonzero(xp.isnan(X)), X.copy(), device.empty(X.shape, fill=0)
        given = (gaps, first, shares, mean, sd, *self.tables[4:], out, spread)
        device.run(bodies.fill_gap, len(gaps), *given)
        return out, spread


def expect_on_device(device: Device, Z: Any, mixture: Mixture) -> Moments:
    """Take the expected moments of a table of normal scores that is on the device: the E-step."""
    components = load_components(device, [mixture])
    with device.alone():
        parts = in_batches(
            device, len(Z), ROWS_AT_ONCE, lambda rows: _expect(device, Z[rows], components)
        )
    loglik, products, spread, gaps = (sum(part[i] for part in parts) for i in range(4))
    p, lower = Z.shape[1], np.tril(device.host(spread))
    products = device.host(products)
    return Moments(
        len(Z),
        mixture.means,
        products[:, p, p],
        products[:, p, :p],
        products[:, :p, :p] + lower + np.tril(lower, -1).transpose(0, 2, 1),
        device.host(gaps),
        float(loglik),
    )


def _expect(device: Device, Z: Any, components: Components) -> tuple[Any, Any, Any, Any]:
    """Log-likelihood, sums of products and of covariances, expected gaps of some rows."""
    xp, p, c = device.xp, Z.shape[1], len(components.log_norms)
    weighed = weigh_rows(device, Z, components)
    matter = xp.ascontiguousarray((weighed.resp > LEAST_SHARE).T)
    pairs = xp.flatnonzero(matter)
    # The rows of each component fill segments of their own.
    counts = device.host(matter.sum(axis=1)).astype(np.int64)
    start = SEGMENT * np.concatenate([[0], np.cumsum(-(-counts // SEGMENT))])
    ahead = start[:-1] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    rows = device.empty((p + 1, int(start[-1])), fill=0)
    spread = device.empty((SPREADS, c, p, p), fill=0)
    given = (pairs, device.array(ahead), *weighed[:4], *components[:2], components.unit)
    work = (*given, weighed.resp, rows, spread)
    device.run(bodies.expand, len(pairs), *work, room=room_for(p))
    rows = xp.ascontiguousarray(rows.reshape(p + 1, -1, SEGMENT).transpose(1, 0, 2))
    products = rows @ rows.transpose(0, 2, 1)
    ends = start // SEGMENT
    parts = [products[a:b].sum(axis=0) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    gaps = weighed.resp.T @ xp.isnan(Z).astype(np.float64)
    return weighed.loglik.sum(), xp.stack(parts), spread.sum(axis=0), gaps
