"""The figure of `skyfill inspect`: how bright the sources of a survey are, and where it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skyfill.catalog.brightness import Brightness
from skyfill.catalog.column_report import ColumnReport
from skyfill.errors import DataError
from skyfill.evaluate.score_figures import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS, MOST_COLUMNS = 60, 3


def draw_faint_edges(columns: Sequence[ColumnReport]) -> Figure:
    """Draw a histogram of each magnitude and flux, with the depth that is proposed.

    Fluxes are drawn by their logarithms. Columns with few values are left out.
    """
    drawn = [column for column in columns if column.depth is not None]
    if not drawn:
        raise DataError(
            "no column holds magnitudes or fluxes, by its unit, UCD or name; declare units, as in "
            "--unit J=mag"
        )
    wide = min(len(drawn), MOST_COLUMNS)
    high = math.ceil(len(drawn) / wide)
    figure = new_figure((3.2 * wide, 2.4 * high))
    axes = np.atleast_1d(figure.subplots(high, wide)).ravel()
    for column, ax in zip(drawn, axes, strict=False):
        _draw_one(column, ax)
    for ax in axes[len(drawn) :]:
        ax.set_visible(False)
    return figure


def _draw_one(column: ColumnReport, ax: Axes) -> None:
    is_flux, depth = column.brightness is Brightness.FLUX, float(column.depth or 0.0)
    values, at = column.measured, depth
    if is_flux:
        values, at = np.log10(values), math.log10(depth)
    ax.hist(values, bins=BINS, color=COLORS[0], histtype="stepfilled", alpha=0.6)
    ax.axvline(at, color=COLORS[1], lw=1.2)
    ax.set_title(f"{column.name}: depth {depth:g}", fontsize="small")
    unit = f" ({column.info.unit})" if column.info.unit else ""
    ax.set_xlabel(f"log10 {column.name}{unit}" if is_flux else f"{column.name}{unit}")
    ax.set_yscale("log")
