"""The figure of a search for counterparts: purity and completeness against p_any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyfill.evaluate.score_figures import COLORS, new_figure
from skyfill.sky import Threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_threshold(found: Threshold) -> Figure:
    """Draw purity and completeness against p_any, with the threshold where there is one."""
    figure = new_figure((6.0, 4.0))
    ax = figure.subplots()
    lines = (("purity", found.purity, "-"), ("completeness", found.completeness, "--"))
    for (name, values, dash), color in zip(lines, COLORS, strict=False):
        ax.plot(found.steps, values, dash, color=color, label=name)
    ax.plot(found.steps, found.chance, ":", color=COLORS[4], label="accepted at shifted positions")
    if found.p_any <= 1:
        ax.axvline(found.p_any, color="0.6", lw=0.8)
        words = f"p_any = {found.p_any:.2f}: {100 * found.false_rate:g} % false"
        ax.set_title(words, fontsize="medium")
    ax.set_xlabel("least p_any")
    ax.set_ylim(0, 1.02)
    ax.legend(frameon=False, fontsize="small")
    return figure
