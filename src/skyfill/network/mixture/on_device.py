"""Mixtures on a GPU: posteriors, likelihoods, draws and expected moments of tables with gaps.

What is lost is completed for those components alone that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from skyfill.device import Device, Outbox, in_batches
from skyfill.network._array import Array
from skyfill.network.cells import Cells, keep_within
from skyfill.network.mixture import bodies, uncertain_bodies
from skyfill.network.mixture.device_weighing import (
    Components,
    Weighed,
    load_components,
    room_for,
    weigh_rows,
)
from skyfill.network.mixture.gap_kernels import NEGLIGIBLE, quantile_room
from skyfill.network.mixture.limited_kernels import CELLS
from skyfill.network.mixture.margin import Constant, Margin
from skyfill.network.mixture.margin_kernels import Knots, Maps
from skyfill.network.mixture.margin_moments import MarginMoments
from skyfill.network.mixture.mixture import Mixture, lay_out_uncertain
from skyfill.network.mixture.random_keys import Keys
from skyfill.network.moments import Moments

# Tables of fewer rows stay on the cores of this machine, and with EM of fewer.
WORTH_A_GPU, EM_WORTH_A_GPU = 50_000, 100_000
ROWS_AT_ONCE = 1 << 20
# Components of less responsibility are left out of expected moments.
LEAST_SHARE = 1e-9
# Rows of products that are summed by one matrix product, and tables that threads add to.
SEGMENT, SPREADS = 1024, 64


# Values, lower and upper limits and errors on a device; what is not there has no rows.
Given: TypeAlias = tuple[Any, ...]


class Tables(NamedTuple):
    """Margins on a device."""

    place: Any  # (p,): which of the knots are the column's; -1: it has none
    shift: Any  # (p,)
    width: Any  # (p,)
    knots: tuple[Any, ...]
    moments: Any  # (p, entries, 2): of the values at a normal score, see margin_moments.py
    middle: Any  # (p,)
    reach: Any  # (p,)
    ladder: tuple[Any, ...]


def load_tables(
    device: Device, margins: Sequence[Margin], knots: Knots, moments: MarginMoments, dtype: Any
) -> Tables:
    """Copy margins to a device; `moments` are those of the margins."""
    p = len(margins)
    place, shift, width = np.full(p, -1, np.int64), np.zeros(p), np.full(p, np.inf)
    place[knots.columns] = np.arange(len(knots.columns))
    for j, margin in enumerate(margins):
        if place[j] < 0 and not isinstance(margin, Constant):
            shift[j], width[j] = margin.x[0], margin.x[1] - margin.x[0]
    lines = [device.array(a) for a in (place, shift, width)]
    of_values, ladder = (tuple(map(device.array, arrays)) for arrays in (knots, moments.ladder))
    scales = (device.array(moments.tables, dtype), *map(device.array, moments[1:3]))
    return Tables(*lines, of_values, *scales, ladder)  # type: ignore[call-arg]


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
    tables = load_tables(device, margins, knots, moments, dtype)
    return DeviceMixture(device, load_components(device, fits, dtype), tables)


@dataclass(frozen=True)
class DeviceMixture:
    """A mixture with its margins on a device."""

    device: Device
    components: Components
    tables: Tables

    def look(
        self, cells: Cells, *, responsibilities: bool = False, denoise: bool = False
    ) -> dict[str, Array]:
        """Posterior mean and sd of every cell, likelihoods and responsibilities of every row."""
        return self._gather(cells, responsibilities, denoise=denoise)

    def likelihoods(self, cells: Cells, *, responsibilities: bool = False) -> dict[str, Array]:
        """Likelihoods and responsibilities of every row."""
        return self._gather(cells, responsibilities, denoise=None)

    def draws(
        self, cells: Cells, keys: Keys, maps: Maps | tuple[Array], *, denoise: bool = False
    ) -> Array:
        """Joint draws of every row's gaps, (draws, n, p); with `denoise`, of noisy values too."""
        device, X, n_draws = self.device, cells.values, keys.n_draws
        out = np.repeat(X[None], n_draws, axis=0)
        tables, codes = tuple(map(device.array, maps)), device.array(keys.columns)

        def work(rows: slice) -> None:
            given = self._load(cells.take(rows))
            mine = (device.array(keys.rows[rows]), codes, keys.first)
            found = device.array(out[:, rows])
            self._draw(self._weigh(given), mine, tables, found, denoise)
            outbox.send(list(zip(self._within(given, found), out[:, rows], strict=True)))

        outbox = Outbox(device)
        with device.alone():
            in_batches(device, len(X), max(1, ROWS_AT_ONCE // n_draws), work)
            outbox.close()
        return out

    def _draw(self, weighed: Weighed, keys: Any, maps: Any, found: Any, denoise: bool) -> None:
        """Draw plain rows, every draw by itself, and rows with limits or errors, all of theirs."""
        device, known, p, xp = self.device, self.components.known, found.shape[2], self.device.xp
        cells, sorts, sites, resp = weighed[:4]
        is_plain = (sorts[3] == 0) & (sorts[2] == xp.isnan(cells[0]).sum(axis=1))
        plain, others = xp.flatnonzero(is_plain), xp.flatnonzero(~is_plain)
        given, how = (cells, sorts, sites, known, resp), {"dtype": self.components.dtype}
        work: tuple[Any, ...] = (plain, *given, keys, maps, found)
        device.run(bodies.draw_row, len(found) * len(plain), *work, room=room_for(p), **how)
        if len(others):
            room = (room_for(p) + uncertain_bodies.DRAWN * p, max(p, 2))
            states = device.empty(cells[0].shape, np.uint64)
            work = (others, *given, keys, states, denoise, maps, found)
            device.run(uncertain_bodies.draw_uncertain, len(others), *work, room=room, **how)

    def quantiles(
        self,
        cells: Cells,
        maps: Maps | tuple[Array],
        calibration: tuple[Array, ...],
        column: int | None = None,
    ) -> Array:
        """Quantiles of every gap, (levels, n, p), of a `column` at least.

        See `gap_kernels.find_quantiles`.
        """
        device, xp, n_levels = self.device, self.device.xp, len(calibration[0])
        out = np.repeat(cells.values[None], n_levels, axis=0)
        known = [tuple(map(device.array, arrays)) for arrays in (maps, calibration)]
        room = n_levels + quantile_room(len(self.components.log_norms))

        def work(rows: slice) -> None:
            given = self._load(cells.take(rows))
            weighed = self._weigh(given)
            gaps, found = xp.flatnonzero(xp.isnan(given[0])), device.array(out[:, rows])
            pairs = (*self._complete(weighed), weighed.cells[1:], *known)
            device.run(bodies.find_gap_quantiles, len(gaps), gaps, *pairs, found, room=room)
            outbox.send(list(zip(self._within(given, found), out[:, rows], strict=True)))

        outbox = Outbox(device)
        with device.alone():
            in_batches(device, len(cells), ROWS_AT_ONCE, work)
            outbox.close()
        return out

    def _gather(
        self, cells: Cells, responsibilities: bool, *, denoise: bool | None
    ) -> dict[str, Array]:
        """Collect results of all rows; without mean and sd if `denoise` is None."""
        n, p = cells.values.shape
        found = {"loglik": np.empty(n), "seen": np.empty(n)}
        if denoise is not None:
            found |= {"mean": np.empty((n, p)), "sd": np.empty((n, p))}
        if responsibilities:
            found["resp"] = np.empty((n, len(self.components.log_norms)))

        def work(rows: slice) -> None:
            given = self._load(cells.take(rows))
            weighed = self._weigh(given)
            made = {"loglik": weighed.loglik, "seen": weighed.seen, "resp": weighed.resp}
            if denoise is not None:
                made["mean"], made["sd"] = self._fill(given, weighed, denoise)
            outbox.send([(made[name].astype(np.float64, copy=False), out[rows])
                         for name, out in found.items()])  # fmt: skip

        outbox = Outbox(self.device)
        with self.device.alone():
            in_batches(self.device, n, ROWS_AT_ONCE, work)
            outbox.close()
        return found

    def _load(self, cells: Cells) -> Given:
        """Copy values, limits and errors to the device; what is not there has no rows."""
        beside = (cells.lower, cells.upper, cells.errors)
        nothing = np.empty((0, cells.values.shape[1]))
        return tuple(
            self.device.array(nothing if a is None else a) for a in (cells.values, *beside)
        )

    def _weigh(self, given: Given) -> Weighed:
        device, maps, (n, p) = self.device, self.tables[:4], given[0].shape
        is_plain = not any(map(len, given[1:]))
        Z = device.empty((n, p), self.components.dtype)
        cells = (Z, *(device.empty((0 if is_plain else n, p)) for _ in range(3)))
        if is_plain:
            device.run(bodies.score_cell, Z.size, given[0], *maps, Z)
        else:
            device.run(uncertain_bodies.score_uncertain, Z.size, given, maps, cells)
        return weigh_rows(device, cells, self.components)

    def _complete(self, weighed: Weighed) -> tuple[Any, ...]:
        """Find what the components that matter say of what is lost; see `bodies.fill_gap`."""
        device, components, xp = self.device, self.components, self.device.xp
        n, c = weighed.resp.shape
        pairs = xp.flatnonzero(weighed.resp > NEGLIGIBLE)
        first = xp.searchsorted(pairs, c * xp.arange(n + 1))
        p, dtype = weighed.cells[0].shape[1], components.dtype
        mean, sd = (device.empty((p, len(pairs)), dtype) for _ in range(2))
        given = (pairs, *weighed[:3], components.known, mean, sd)
        device.run(bodies.complete, len(pairs), *given, room=room_for(p), dtype=dtype)
        return first, weighed.resp.ravel()[pairs], mean, sd

    def _fill(self, given: Given, weighed: Weighed, denoise: bool) -> tuple[Any, Any]:
        """Fill the gaps of some rows, and with `denoise` undo errors."""
        device, xp, windows, X = self.device, self.device.xp, weighed.cells[1:], given[0]
        lost = xp.isnan(X)
        if denoise and len(windows[2]):
            lost |= windows[2] > 0
        gaps, out, spread = xp.flatnonzero(lost), X.copy(), device.empty(X.shape, fill=0)
        known, made = (gaps, *self._complete(weighed)), (self.tables[4:], out, spread)
        device.run(bodies.fill_gap, len(gaps), *known, *made)
        if len(windows[0]):
            room = weighed.resp.shape[1] + CELLS
            device.run(bodies.fill_limited_gap, len(gaps), *known, windows, *made, room=room)
        return self._within(given, out), spread

    def _within(self, given: Given, filled: Any) -> Any:
        """Keep filled values from contradicting hard limits."""
        return keep_within(self.device.xp, tuple(a if len(a) else None for a in given), filled)


def load_scores(device: Device, scores: Cells) -> tuple[Any, ...]:
    """Copy a table of normal scores to a device, as `expect_on_device` wants it."""
    if scores.is_plain:
        nothing = np.empty((0, scores.values.shape[1]))
        return tuple(map(device.array, (scores.values, nothing, nothing, nothing)))
    return tuple(map(device.array, lay_out_uncertain(scores)))


def expect_on_device(device: Device, cells: tuple[Any, ...], mixture: Mixture) -> Moments:
    """Take the expected moments of a table of normal scores that is on the device: the E-step."""
    components, Z = load_components(device, [mixture]), cells[0]
    with device.alone():
        parts = in_batches(
            device,
            len(Z),
            ROWS_AT_ONCE,
            lambda rows: _expect(device, tuple(a[rows] for a in cells), components),
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


def _expect(device: Device, cells: tuple[Any, ...], components: Components) -> tuple[Any, ...]:
    """Log-likelihood, sums of products and of covariances, expected gaps of some rows."""
    xp, p, c = device.xp, cells[0].shape[1], len(components.log_norms)
    weighed = weigh_rows(device, cells, components)
    least = NEGLIGIBLE if len(cells[3]) else LEAST_SHARE  # as on the processor
    matter = xp.ascontiguousarray((weighed.resp > least).T)
    pairs = xp.flatnonzero(matter)
    # The rows of each component fill segments of their own.
    counts = device.host(matter.sum(axis=1)).astype(np.int64)
    start = SEGMENT * np.concatenate([[0], np.cumsum(-(-counts // SEGMENT))])
    ahead = start[:-1] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    rows = device.empty((p + 1, int(start[-1])), fill=0)
    spread = device.empty((SPREADS, c, p, p), fill=0)
    given = (pairs, device.array(ahead), *weighed[:3], components.known)
    work = (*given, weighed.resp, rows, spread)
    device.run(bodies.expand, len(pairs), *work, room=room_for(p))
    rows = xp.ascontiguousarray(rows.reshape(p + 1, -1, SEGMENT).transpose(1, 0, 2))
    products = rows @ rows.transpose(0, 2, 1)
    ends = start // SEGMENT
    parts = [products[a:b].sum(axis=0) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    gaps = weighed.resp.T @ xp.isnan(cells[0]).astype(np.float64)
    return weighed.loglik.sum(), xp.stack(parts), spread.sum(axis=0), gaps
