"""What the components of some fits say of a part of a table, and joint draws of what is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array
from skyfill.network.cells import Cells
from skyfill.network.mixture import gap_kernels
from skyfill.network.mixture.kernels import Components
from skyfill.network.mixture.margin import Identity
from skyfill.network.mixture.margin_kernels import Maps, lay_back
from skyfill.network.mixture.mixture import Mixture, Sorted, in_blocks, split
from skyfill.network.mixture.random_keys import Keys, codes_of, keys_of_rows
from skyfill.network.mixture.uncertain_kernels import draw_uncertain, weigh_uncertain


class Parts(NamedTuple):
    """What every component says of the rows and gaps of a part of a table."""

    resp: Array  # (n, c)
    mean: Array  # (gaps, c)
    sd: Array  # (gaps, c)
    loglik: Array  # (n,)
    seen: Array  # (n,): the same without limits and the chance of the pattern of gaps


def weigh(part: Sorted, components: Components, *, denoise: bool = False) -> Parts:
    """Complete every row of a part under every component; with `denoise`, undo errors too."""
    n, c, n_gaps = len(part.Z), components.log_norms.size, len(part.row_of)
    gaps = np.empty((n_gaps, c)), np.empty((n_gaps, c))
    parts = Parts(np.empty((n, c)), *gaps, np.empty(n), np.empty(n))
    gap_kernels.weigh_rows(*part[:3], components, part.first_gap, *parts)
    if part.cells is not None:
        rows = (part.cells, part.uncertain, denoise)
        weigh_uncertain(*rows, components, part.first_gap, *parts)
    return parts


def without_noisy(part: Sorted, parts: Parts) -> tuple[Sorted, Parts]:
    """Leave out cells that were seen with an error: keep gaps alone."""
    if part.cells is None:
        return part, parts
    return keep_gaps(part, parts, np.isnan(part.Z[part.row_of, part.column_of]))


def keep_gaps(
    part: Sorted, parts: Parts, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[Sorted, Parts]:
    """Keep what is said of some cells."""
    windows = part.windows[kept] if len(part.windows) else part.windows
    some = part._replace(row_of=part.row_of[kept], column_of=part.column_of[kept], windows=windows)
    return some, parts._replace(mean=parts.mean[kept], sd=parts.sd[kept])


def draw(
    part: Sorted, components: Components, parts: Parts, keys: Keys, maps: Maps | tuple[Array]
) -> Array:
    """Draw what is lost of a part; NaN elsewhere. `keys` are those of its rows.

    Values that were seen with an error are drawn too.
    """
    out = np.full((keys.n_draws, *part.Z.shape), np.nan)
    known = (components, parts.resp, parts.mean)
    gap_kernels.draw_gaps(*part[:3], *known, part.first_gap, keys, maps, out)
    if part.cells is not None:
        draw_uncertain(part.cells, part.uncertain, components, parts.resp, keys, maps, out)
    return out


def draw_scores(scores: Cells, fits: Sequence[Mixture], n_draws: int, rng: Generator) -> Array:
    """Draw completed tables of normal scores, (n_draws, n, p), without errors."""
    p, components = scores.values.shape[1], in_blocks(fits)
    keys = Keys(keys_of_rows(scores, rng), codes_of(list(map(str, range(p)))), 0, n_draws)
    maps = lay_back([Identity(np.arange(2.0), np.arange(2.0))] * p)
    found, row = [], 0
    for part in split(scores):
        mine = keys._replace(rows=keys.rows[row : row + len(part.Z)])
        new = draw(part, components, weigh(part, components), mine, maps)
        found.append(np.where(np.isnan(new), part.Z, new))
        row += len(part.Z)
    return np.concatenate(found, axis=1)
