"""Columns that say how bright sources are, and where a survey ends: its faint edge."""

from __future__ import annotations

import re
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.column_info import FLUXES, ColumnInfo

# Quantile of the brightness of all sources, counted to the faint side, that is proposed as a depth.
EDGE = 0.98
# Fewer values say nothing about an edge.
LEAST_VALUES = 50
_MAGNITUDE = re.compile(r"(.*_)?\w*mag(_\w+)?", re.IGNORECASE)
_FLUX = re.compile(r"(.*_)?(\w*flux|fluence|lum|luminosity|counts?)(_\w+)?|[SF]_?\d[\d.]*\w*")
_FLUX_UNIT = re.compile(r"(.*[^A-Za-z])?([a-zA-Zμµ]?Jy|[eE]rg|ct|count|photon|maggy|nanomaggy)\b")


class Brightness(StrEnum):
    """What a column of brightness holds."""

    MAGNITUDE = "magnitude"
    FLUX = "flux"


def brightness_of(name: str, info: ColumnInfo) -> Brightness | None:
    """Say whether a column holds magnitudes or fluxes: by UCD, unit or, without these, by name.

    Examples
    --------
    >>> str(brightness_of("Jmag", ColumnInfo())), str(brightness_of("S1.4", ColumnInfo(unit="mJy")))
    ('magnitude', 'flux')
    >>> brightness_of("amplitude", ColumnInfo(unit="mag", ucd="src.var.amplitude"))
    """
    ucd, unit = (info.ucd or "").lower(), info.unit or ""
    if info.is_magnitude:
        return Brightness.MAGNITUDE
    if ucd.startswith(FLUXES) or (not ucd and _FLUX_UNIT.fullmatch(unit)):
        return Brightness.FLUX
    if ucd or unit:
        return None
    if _MAGNITUDE.fullmatch(name):
        return Brightness.MAGNITUDE
    return Brightness.FLUX if _FLUX.fullmatch(name) else None


def find_edge(values: NDArray[np.float64], kind: Brightness) -> float | None:
    """Propose the depth of a survey, rounded to what its sources say; None if they are few.

    Examples
    --------
    >>> find_edge(np.linspace(10, 20, 1001), Brightness.MAGNITUDE)
    19.8
    """
    if len(values) < LEAST_VALUES:
        return None
    level = EDGE if kind is Brightness.MAGNITUDE else 1 - EDGE
    return float(f"{np.quantile(values, level):.4g}")
