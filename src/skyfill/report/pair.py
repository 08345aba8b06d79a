"""Two features of a mixture: joint, marginal and conditional densities on a grid."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from skyfill.errors import DataError
from skyfill.network import MixtureNetwork
from skyfill.report.page_data import axes_of

Array = NDArray[np.float64]
N_DRAWS, N_BINS, SMOOTHING = 40_000, 80, 1.6
# Fractions of all objects inside the contours.
SHARES = (0.95, 0.8, 0.6, 0.4, 0.2)


class Pair(NamedTuple):
    """Densities over bins; `joint` has the first feature along its first axis."""

    names: tuple[str, str]
    at: float
    x: Array
    y: Array
    joint: Array
    marginal_x: Array
    marginal_y: Array
    conditional_y: Array
    levels: Array


def describe_pair(network: MixtureNetwork, names: tuple[str, str], at: float | None = None) -> Pair:
    """Estimate the densities from draws of the network, by slightly smoothed histograms.

    Parameters
    ----------
    network : MixtureNetwork
    names : pair of str
    at : float, optional
        Value of the first feature for the conditional; by default its median.
    """
    for name in names:
        if name not in network.names:
            raise DataError(f"no feature {name!r}; they are {', '.join(network.names)}")
    i, j = (network.names.index(name) for name in names)
    # For all objects, not only for those with these gaps.
    network = replace(network, fits=tuple(fit._replace(gap_rates=None) for fit in network.fits))
    nothing = np.full((1, len(network)), np.nan)
    draws = network.draws(nothing, N_DRAWS, rng=0)[:, 0]
    value = float(np.median(draws[:, i])) if at is None else float(at)
    given = nothing.copy()
    given[0, i] = value
    filled = network.draws(given, N_DRAWS, rng=1)[:, 0, j]
    edges = [_edges(network, k) for k in (i, j)]
    joint = gaussian_filter(np.histogram2d(draws[:, i], draws[:, j], edges)[0], SMOOTHING)
    centers = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    return Pair(
        names,
        value,
        x=centers[0],
        y=centers[1],
        joint=joint,
        marginal_x=_density(draws[:, i], edges[0]),
        marginal_y=_density(draws[:, j], edges[1]),
        conditional_y=_density(filled, edges[1]),
        levels=_levels(joint),
    )


def _edges(network: MixtureNetwork, j: int) -> Array:
    axis = axes_of(network)[j]
    scale = np.geomspace if axis["log"] else np.linspace
    return np.asarray(scale(axis["low"], axis["high"], N_BINS + 1))


def _density(values: Array, edges: Array) -> Array:
    counts = np.histogram(values, edges)[0] / np.diff(edges)
    return np.asarray(gaussian_filter(counts, SMOOTHING) / max(values.size, 1))


def _levels(joint: Array) -> Array:
    """Heights of the contours that contain the fractions of all objects."""
    heights = np.sort(joint.ravel())[::-1]
    held = np.cumsum(heights) / max(heights.sum(), 1e-300)
    return np.unique([heights[np.searchsorted(held, share)] for share in SHARES])
