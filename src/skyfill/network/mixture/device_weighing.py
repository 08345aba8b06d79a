"""What components say of rows on a GPU, where every component of every row has a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skyfill.device import Device
from skyfill.network.mixture import bodies
from skyfill.network.mixture import uncertain_bodies as uncertain
from skyfill.network.mixture.mixture import Mixture, gap_logs, precisions_of
from skyfill.network.mixture.row_kernels import BEHIND

_LEAST_PIVOT = {np.dtype(np.float64): 1e-300, np.dtype(np.float32): 1e-30}


class Components(NamedTuple):
    """All components of all fits on a device, one after the other along the last axis."""

    means: Any  # (p * c,)
    precisions: Any  # (p * p * c,), with half the diagonal
    log_norms: Any  # (c,): log weight - half the log determinant of the covariance
    gap_logs: Any  # (2, p, c): log chance that a cell is a gap, or is not; p is 0 where ignorable
    bounds: Any  # (fits + 1,)
    fit_of: Any  # (c,)
    unit: tuple[Any, Any, Any]

    @property
    def dtype(self) -> Any:
        """Precision in which everything is computed."""
        return np.dtype(self.means.dtype)

    @property
    def known(self) -> tuple[Any, ...]:
        """What `solving.complete_row` needs of them."""
        return (*self[:2], len(self.log_norms), self.unit)


class Weighed(NamedTuple):
    """What the components say of some rows; see solving.py."""

    cells: tuple[Any, ...]
    sorts: tuple[Any, ...]
    sites: tuple[Any, ...]
    resp: Any  # (n, c)
    loglik: Any  # (n,)
    seen: Any  # (n,): without limits and the chance of the pattern of gaps


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
    fit_of = np.repeat(np.arange(len(fits)), np.diff(bounds))
    flat = (loaded[0].ravel(), loaded[1].ravel(), loaded[2], loaded[3])
    return Components(*flat, device.array(bounds), device.array(fit_of), unit)


def room_for(p: int) -> int:
    """Count the numbers that a row needs to be solved for a component."""
    return p * (p + 1) // 2 + 3 * p


def weigh_rows(device: Device, cells: tuple[Any, ...], components: Components) -> Weighed:
    """Find responsibilities and likelihoods of rows of normal scores that are on the device."""
    (n, p), c = cells[0].shape, len(components.log_norms)
    columns = [device.empty((n, p), np.uint32) for _ in range(2)]
    sorts = (*columns, *(device.empty(n, np.uint32) for _ in range(2)))
    device.run(bodies.sort_columns, n, cells, c, *sorts)
    logs = device.empty((n, c), components.dtype)
    bare = device.empty((n, c if components.gap_logs.shape[1] else 0), components.dtype)
    given = (cells, sorts, components.known, *components[2:4], logs, bare)
    device.run(bodies.weigh, n * c, *given, room=room_for(p), dtype=components.dtype)
    met, sites = _meet_limits(device, cells, sorts, components, logs)
    loglik = _share(device, components, met)
    if bare.shape[1] == 0 and met is logs:
        return Weighed(cells, sorts, sites, met, loglik, loglik)
    seen = _share(device, components, bare if bare.shape[1] else logs)
    return Weighed(cells, sorts, sites, met, loglik, seen)


def _meet_limits(
    device: Device, cells: Any, sorts: Any, components: Components, logs: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Bring limits into the log densities of components; find the sites that stand for limits."""
    (n, c), p, xp = logs.shape, cells[0].shape[1], device.xp
    slots = device.empty(logs.size if len(cells[3]) else 0, np.int64)
    most = int(sorts[3].max()) if slots.size else 0
    if most == 0:
        return logs, (slots, *(device.empty((0, 0)) for _ in range(2)))
    fits, met = len(components.bounds) - 1, logs.copy()
    tops = device.empty(n * fits, np.int64)
    device.run(uncertain.find_top, n * fits, components.bounds, c, sorts[3], logs, tops)
    first = tops[tops >= 0]
    sites = (slots, *(device.empty((most, len(first))) for _ in range(2)))

    def meet(pairs: Any, first_slot: int) -> None:
        given = (pairs, first_slot, cells, sorts, sites, components.known, met)
        # In steps of eight: every size is compiled anew.
        side = min(-(-most // 8) * 8, p)
        room = (room_for(p) + uncertain.LINES * side, max(side, 2))
        device.run(uncertain.meet_limits, len(pairs), *given, room=room)

    meet(first, 0)
    near = xp.flatnonzero(_is_near(xp, components, tops.reshape(n, fits), logs, met))
    more = (device.empty((most, len(near))) for _ in range(2))
    sites = (slots, *(xp.concatenate(pair, axis=1) for pair in zip(sites[1:], more, strict=True)))
    meet(near, len(first))
    device.run(uncertain.settle, n * fits, components.bounds, tops, logs, met)
    return met, sites


def _is_near(xp: Any, components: Components, tops: Any, logs: Any, met: Any) -> Any:
    """Components that may matter beside the best one of their fit, which has met its limits."""
    sizes = xp.diff(components.bounds).tolist()
    best = xp.where(tops >= 0, met.ravel()[tops], xp.inf)
    near = logs >= xp.repeat(best, sizes, axis=1) - BEHIND
    near.ravel()[tops[tops >= 0]] = False
    return near


def _share(device: Device, components: Components, logs: Any) -> Any:
    """Turn log densities into responsibilities; return the log-likelihoods of the rows."""
    n, fits = len(logs), len(components.bounds) - 1
    values, loglik = device.empty((n, fits)), device.empty(n)
    device.run(bodies.share, n * fits, components.bounds, logs, values)
    given = (components.bounds, components.fit_of, values, logs)
    device.run(bodies.respond, logs.size, *given)
    device.run(bodies.average, n, values, loglik)
    return loglik
