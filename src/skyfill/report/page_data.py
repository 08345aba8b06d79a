"""Data for the page: arrays as text, and all that its own computation of posteriors needs."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.evaluate.fill_comparison import plain
from skyfill.network import MixtureNetwork
from skyfill.network.mixture import gap_kernels as kernels
from skyfill.network.mixture import (
    limited_kernels,
    margin_moments,
    row_kernels,
    truncated_kernels,
    widening,
)
from skyfill.network.mixture.margin import (
    GRID_REACH,
    MOST_LOG,
    Constant,
    Identity,
    Logarithm,
    Margin,
)
from skyfill.network.mixture.mixture import gap_logs
from skyfill.network.mixture.row_kernels import NARROWEST

Array = NDArray[np.float64]
# An axis shows the middle of a column, and its own width on both sides where there are data.
MIDDLE, END, AIR = (0.05, 0.95), (0.002, 0.998), 0.06
# Columns of positive values whose middle spans more than this factor, with an upper half longer by
# the second than the lower one, are shown on a logarithmic axis; the share of this span that it
# has below the middle.
FACTOR, SKEW, BELOW = 10.0, 2.0, 0.4


def export_network(network: MixtureNetwork) -> dict[str, Any]:
    """Return everything that `MixtureNetwork.posterior` and `quantiles` use, as plain values."""
    lost, seen = gap_logs(network.fits)
    ends = np.cumsum([0, *network.n_components])
    covs = np.concatenate([fit.covs for fit in network.fits])
    rows, columns = np.tril_indices(len(network))
    calibration, by_spread = network.calibration, network.by_spread
    within, support = network.within_limits, network.support
    ranges = {} if support is None else support._asdict()
    return {
        "reach": GRID_REACH,
        "mostLog": MOST_LOG,
        "negligible": kernels.NEGLIGIBLE,
        "moment": export_moments(),
        "margins": [export_margin(margin) for margin in network.margins],
        "bounds": ends.tolist(),
        "logWeights": pack(np.log(np.concatenate([fit.weights for fit in network.fits]))),
        "means": pack(np.concatenate([fit.means for fit in network.fits])),
        "covs": pack(covs[:, rows, columns]),
        "logLost": pack(lost),
        "logSeen": pack(seen),
        "calibration": None if calibration is None else pack(calibration),
        "knots": None if by_spread is None else pack(by_spread.knots),
        "spreadLevels": None if by_spread is None else pack(by_spread.levels),
        "withinLimits": None if within is None else pack(within),
        **{name: pack(ranges[name]) if ranges else None for name in ("low", "high", "related")},
        "doubt": ranges.get("doubt", 0.0),
        "leastSpread": widening.LEAST_SPREAD,
        "limits": {
            "behind": row_kernels.BEHIND,
            "sure": truncated_kernels.SURE,
            "sweeps": truncated_kernels.SWEEPS,
            "settled": truncated_kernels.SETTLED,
            "cells": limited_kernels.CELLS,
            "below": limited_kernels.BELOW,
            "above": limited_kernels.ABOVE,
            "narrowest": NARROWEST,
        },
    }


def export_moments() -> dict[str, Any]:
    """Return how the moments of margins are tabulated."""
    return {
        "reach": margin_moments.REACH,
        "smoothing": margin_moments.SMOOTHING,
        "far": margin_moments.FAR,
        "narrow": margin_moments.NARROW,
        "spreads": margin_moments.SPREADS.tolist(),
        "halved": margin_moments.HALVED.tolist(),
        "perScore": margin_moments.PER_SCORE.tolist(),
        "levels": margin_moments.LADDER.widest.tolist(),
        "finer": margin_moments.FINER / margin_moments.FINEST,
        "nodes": margin_moments.NODES.tolist(),
        "weights": margin_moments.WEIGHTS.tolist(),
    }


def export_margin(margin: Margin) -> dict[str, Any]:
    """Return a margin's knots, what is beyond them, and its atoms with their scores."""
    kinds = {Constant: "constant", Identity: "linear", Logarithm: "logarithmic"}
    kind = kinds.get(type(margin), "ranks")
    facts: dict[str, Any] = {"kind": kind, "x": margin.x.tolist(), "z": margin.z.tolist()}
    facts["rises"] = margin._rises
    if not margin.is_line:
        atoms, scores = margin._atoms
        facts |= {"atoms": atoms.tolist(), "scores": scores.tolist(), "slopes": margin._slopes}
    return facts


def axes_of(network: MixtureNetwork) -> list[dict[str, Any]]:
    """Choose the axis of each feature: its ends, and whether it is logarithmic."""
    # That nothing is known of an object is no evidence here; calibration is rough in the tails.
    fits = tuple(fit._replace(gap_rates=None) for fit in network.fits)
    plain = MixtureNetwork(network.names, network.margins, fits)
    levels = (END[0], MIDDLE[0], 0.5, MIDDLE[1], END[1])
    found = plain.quantiles(np.full((1, len(network)), np.nan), levels)[:, 0]
    return [_axis(*map(float, column)) for column in found.T]


def _axis(first: float, low: float, middle: float, high: float, last: float) -> dict[str, Any]:
    """Choose an axis by quantiles of its feature."""
    if low > 0 and high / low > FACTOR and high - middle > SKEW * (middle - low):
        # As far below the middle as a lognormal reaches.
        return {"low": max(first, low * (low / high) ** BELOW), "high": last, "log": True}
    reach = (high - low) or 1.0
    low, high = max(first, low - reach), min(last, high + reach)
    air = AIR * (high - low) or 0.5
    return {"low": low - air, "high": high + air, "log": False}


def pack(array: ArrayLike, kind: str = "f8") -> dict[str, Any]:
    """Convert an array for JSON: `kind`, `shape`, and its little-endian bytes in base64.

    Examples
    --------
    >>> pack([1.0, 2.0], "f4")
    {'kind': 'f4', 'shape': [2], 'data': 'AACAPwAAAEA='}
    """
    values = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<"))
    text = base64.b64encode(values.tobytes()).decode()
    return {"kind": kind, "shape": list(values.shape), "data": text}


def unpack(packed: dict[str, Any]) -> Any:
    """Restore a packed array.

    Examples
    --------
    >>> unpack(pack([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    kind = np.dtype(packed["kind"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(packed["data"]), kind).reshape(packed["shape"])


def to_script(payload: Any) -> str:
    r"""Write JSON for a script element: nothing in it can close the element.

    Examples
    --------
    >>> to_script({"id": "</script>", "mean": float("nan")})
    '{"id":"\\u003c/script\\u003e","mean":null}'
    """
    text = json.dumps(plain(payload), separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
