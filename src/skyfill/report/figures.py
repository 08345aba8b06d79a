"""Figures for papers: functions that draw on matplotlib Axes, in colors that everyone can see.

Those of evaluations are in `skyfill.evaluate.score_figures`; two of them are given here as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skyfill.catalog import Table
from skyfill.errors import DataError
from skyfill.evaluate.score_figures import (
    COLORS,
    new_figure,
    own_axes,
    plot_confusion,
    plot_reliability,
    style_of,
)
from skyfill.model.results import CLASS
from skyfill.network import GaussianNetwork, MixtureNetwork
from skyfill.network.summary import summarize_network
from skyfill.report.gaps import REASONS, GapCounts
from skyfill.report.network_drawing import FILLS, HEIGHT, WIDTH, node_widths, place_nodes
from skyfill.report.pair import Pair, describe_pair
from skyfill.sky import read_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = [
    "draw_pair",
    "plot_confusion",
    "plot_gaps",
    "plot_network",
    "plot_pair",
    "plot_reliability",
    "plot_sky",
]

# Reasons of gaps in the order of REASONS, from dark to light and in different hues.
REASON_COLORS = ("#0072B2", "#4D4D4D", "#E69F00", "#D55E00", "#CC79A7")


def plot_network(
    network: MixtureNetwork | GaussianNetwork,
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a network: features as boxes colored by group, arrows whose width is the arc's strength.

    Parameters
    ----------
    network : MixtureNetwork or GaussianNetwork
        A mixture is summarized by one network, see `summarize_network`. The width of an arc is the
        share of bootstrap samples that have it, where the network knows it.
    groups : mapping of str to sequences of str, optional
        Features that belong together, such as those of one survey.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    ax, summary = own_axes(ax), summarize_network(network)
    at = place_nodes(summary.names, summary.arcs)
    colors, boxes = _group_colors(summary.names, groups), {}
    for name, xy in zip(summary.names, at, strict=True):
        box = {"boxstyle": "round,pad=0.35", "facecolor": colors[name], "edgecolor": "0.2"}
        boxes[name] = ax.text(
            xy[0], xy[1], name, ha="center", va="center", fontsize="small", bbox=box
        )
    most = max(summary.arcs.values(), default=1.0)
    for (parent, child), strength in summary.arcs.items():
        _arrow(ax, boxes[parent], boxes[child], share=strength / most)
    _group_legend(ax, groups)
    reach = node_widths(summary.names).max() / 2
    ax.set(xlim=(-reach, WIDTH + reach), ylim=(HEIGHT + 30, -30))
    ax.set_axis_off()
    return ax


def _arrow(ax: Axes, start: Text, end: Text, *, share: float) -> None:
    """Draw an arrow from box to box, beneath them."""
    style: dict[str, Any] = {"arrowstyle": "-|>", "color": "0.3", "alpha": 0.3 + 0.6 * share}
    style |= {"linewidth": 0.6 + 2.4 * share, "shrinkA": 0, "shrinkB": 2}
    style |= {"patchA": start.get_bbox_patch(), "patchB": end.get_bbox_patch()}
    ax.annotate("", end.get_position(), start.get_position(), arrowprops=style, zorder=1)


def plot_gaps(gaps: GapCounts, *, ax: Axes | None = None) -> Axes:
    """Draw the share of missing values of each feature, by reason.

    Parameters
    ----------
    gaps : GapCounts
        From `count_gaps`.
    """
    ax = own_axes(ax)
    height, left = np.arange(len(gaps.names)), np.zeros(len(gaps.names))
    for code, reason in enumerate(REASONS):
        share = 100 * gaps.counts[:, code] / max(gaps.n_rows, 1)
        if share.any():
            ax.barh(height, share, left=left, color=REASON_COLORS[code], label=reason)
            left = left + share
    for row, total in enumerate(left):
        ax.text(total + 1, row, f"{total:.0f} %", va="center", fontsize="small")
    ax.set_yticks(height, gaps.names)
    ax.set(xlabel="missing values (%)", xlim=(0, 110))
    ax.invert_yaxis()
    if left.any():
        ax.legend(frameon=False, fontsize="small")
    return ax


def plot_pair(
    network: MixtureNetwork, names: tuple[str, str], *, at: float | None = None, **options: Any
) -> Axes:
    """Draw the joint distribution of two features as contours (Pichara & Protopapas 2013, fig. 1).

    The dashed curve at the right is the marginal distribution of the second feature; the solid one
    is its distribution if the first has the value `at`.

    Parameters
    ----------
    network : MixtureNetwork
    names : pair of str
        The feature that is known, and the one to be filled.
    at : float, optional
        Value of the first; by default its median.
    **options
        ``ax``, where to draw.

    Returns
    -------
    matplotlib Axes
    """
    pair = describe_pair(network, names, at)
    ax = own_axes(options.get("ax"))
    _contours(ax, pair)
    reach = 0.25 * (pair.x[-1] - pair.x[0])
    most = max(pair.marginal_y.max(), pair.conditional_y.max())
    for density, style in (
        (pair.marginal_y, ("--", "0.4")),
        (pair.conditional_y, ("-", COLORS[4])),
    ):
        ax.plot(pair.x[-1] + reach * density / most, pair.y, style[0], color=style[1])
    ax.set_xlim(pair.x[0], pair.x[-1] + 1.05 * reach)
    return ax


def draw_pair(
    network: MixtureNetwork, names: tuple[str, str], *, at: float | None = None
) -> Figure:
    """Draw two features with their marginal (dashed) and conditional (solid) curves at the sides.

    Parameters
    ----------
    network, names, at
        As of `plot_pair`.
    """
    pair = describe_pair(network, names, at)
    figure = new_figure((6, 6))
    sizes = {"width_ratios": (4, 1), "height_ratios": (1, 4)}
    axes = figure.subplots(2, 2, sharex="col", sharey="row", gridspec_kw=sizes)
    _contours(axes[1, 0], pair)
    axes[0, 0].plot(pair.x, pair.marginal_x, "--", color="0.4")
    axes[1, 1].plot(pair.marginal_y, pair.y, "--", color="0.4", label="marginal")
    axes[1, 1].plot(pair.conditional_y, pair.y, color=COLORS[4], label="conditional")
    axes[1, 1].legend(frameon=False, fontsize="small")
    for side in (axes[0, 0], axes[0, 1], axes[1, 1]):
        side.set_axis_off()
    return figure


def _contours(ax: Axes, pair: Pair) -> None:
    ax.contour(pair.x, pair.y, pair.joint.T, levels=pair.levels, colors=COLORS[0])
    ax.axvline(pair.at, color=COLORS[4], linewidth=1)
    ax.set(xlabel=pair.names[0], ylabel=pair.names[1])


def plot_sky(table: Table, column: str = CLASS, *, ax: Axes | None = None) -> Axes:
    """Draw the positions of objects on the sky by class; east is left.

    Parameters
    ----------
    table : Table
        With positions.
    column : str
        The classes; objects without one are left out. Rare classes are drawn last.
    """
    ax, places = own_axes(ax), read_positions(table)
    words = np.array([str(word or "") for word in table.column(column).to_pylist()])
    if not (words != "").any():
        raise DataError(f"column {column!r} contains no classes; choose another column")
    names, numbers = np.unique(words[words != ""], return_counts=True)
    for k in np.argsort(-numbers):
        mine = words == names[k]
        style = {**style_of(int(k)), "linestyle": "none", "markersize": 4}
        if 2 * numbers[k] > numbers.sum() and len(names) > 1:  # the background
            style |= {"color": "0.7", "marker": ".", "markersize": 2}
        ax.plot(places.ra_deg[mine], places.dec_deg[mine], label=names[k], **style)
    ax.set(xlabel="right ascension (deg)", ylabel="declination (deg)")
    ax.set_aspect(1 / max(np.cos(np.deg2rad(np.nanmean(places.dec_deg))), 0.05))
    ax.invert_xaxis()
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _group_colors(
    names: Sequence[str], groups: Mapping[str, Sequence[str]] | None
) -> dict[str, str]:
    of = {name: g for g, members in enumerate((groups or {}).values()) for name in members}
    return {name: FILLS[of.get(name, 0) % len(FILLS)] for name in names}


def _group_legend(ax: Axes, groups: Mapping[str, Sequence[str]] | None) -> None:
    for g, group in enumerate(groups or {}):
        ax.plot([], [], "s", color=FILLS[g % len(FILLS)], label=group)
    if groups:
        ax.legend(frameon=False, fontsize="small", ncols=4, loc="lower center")
