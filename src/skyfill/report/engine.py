"""What the page needs to compute posteriors by itself: margins, components, quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skyfill.network import MixtureNetwork
from skyfill.network.mixture import gap_kernels as kernels
from skyfill.network.mixture.margin import GRID_REACH, Constant, Identity, Margin
from skyfill.network.mixture.mixture import gap_logs
from skyfill.report.packing import pack

Array = NDArray[np.float64]
# An axis shows the middle of a column, out to its own width to both sides, where there is anything.
MIDDLE, END, AIR = (0.05, 0.95), (0.002, 0.998), 0.06
# Columns of positive values that span more than this factor are shown on a logarithmic axis.
DECADES = 60.0


def export_network(network: MixtureNetwork) -> dict[str, Any]:
    """Give everything that `MixtureNetwork.posterior` and `quantiles` compute with, as JSON."""
    lost, seen = gap_logs(network.fits)
    ends = np.cumsum([0, *network.n_components])
    covs = np.concatenate([fit.covs for fit in network.fits])
    rows, columns = np.tril_indices(len(network))
    calibration, by_spread = network.calibration, network.by_spread
    return {
        "reach": GRID_REACH,
        "negligible": kernels.NEGLIGIBLE,
        "nodes": kernels._NODES.tolist(),
        "weights": kernels._WEIGHTS.tolist(),
        "margins": [export_margin(margin) for margin in network.margins],
        "grids": pack([margin.grid() for margin in network.margins]),
        "bounds": ends.tolist(),
        "logWeights": pack(np.log(np.concatenate([fit.weights for fit in network.fits]))),
        "means": pack(np.concatenate([fit.means for fit in network.fits])),
        "covs": pack(covs[:, rows, columns]),
        "logLost": pack(lost),
        "logSeen": pack(seen),
        "calibration": None if calibration is None else pack(calibration),
        "knots": None if by_spread is None else pack(by_spread.knots),
        "spreadLevels": None if by_spread is None else pack(by_spread.levels),
    }


def export_margin(margin: Margin) -> dict[str, Any]:
    """Give a margin's knots, its atoms with their scores, and its slopes beyond the knots."""
    kind = {Constant: "constant", Identity: "linear"}.get(type(margin), "ranks")
    facts: dict[str, Any] = {"kind": kind, "x": margin.x.tolist(), "z": margin.z.tolist()}
    if kind == "ranks":
        atoms, scores = margin._atoms
        facts |= {"atoms": atoms.tolist(), "scores": scores.tolist(), "slopes": margin._slopes}
    return facts


def axis_of(margin: Margin) -> dict[str, Any]:
    """Choose the axis on which a feature is shown: its ends, and whether it is logarithmic."""
    grid = margin.grid()
    scores = np.linspace(-GRID_REACH, GRID_REACH, grid.size)
    first, last = np.interp(ndtri(END), scores, grid)
    is_log = bool(first > 0 and last / first > DECADES)
    if is_log:
        return {"low": float(first), "high": float(last), "log": True}
    low, high = np.interp(ndtri(MIDDLE), scores, grid)
    reach = (high - low) or 1.0
    low, high = max(first, low - reach), min(last, high + reach)
    air = AIR * (high - low) or 0.5
    return {"low": float(low - air), "high": float(high + air), "log": False}
