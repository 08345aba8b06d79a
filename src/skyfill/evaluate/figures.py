"""Figures of a comparison; matplotlib is optional (extra ``plot``) and loaded when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skyfill.errors import SkyfillError
from skyfill.evaluate.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): told apart by all kinds of color vision; markers tell them apart in gray.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*"


def plot_scores(found: Comparison, score: str = "nrmse", *, ax: Axes | None = None) -> Axes:
    """Draw a score against the share of hidden cells, a line for each method.

    Parameters
    ----------
    found : Comparison
    score : str
        One of `comparison.SCORES`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    ax = own_axes(ax)
    percent = 100 * np.array(found.rates)
    for k, method in enumerate(found.methods):
        values, errors = np.transpose([found.mean(score, method, rate) for rate in found.rates])
        style: dict[str, Any] = {
            "color": COLORS[k % len(COLORS)],
            "marker": MARKERS[k % len(MARKERS)],
        }
        ax.errorbar(percent, values, np.nan_to_num(errors), label=method, capsize=2, **style)
    ax.set_xlabel("hidden cells (%)")
    ax.set_ylabel(score.replace("_", " ").replace("nrmse", "NRMSE").replace("crps", "CRPS"))
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_pit(found: Comparison, method: str, *, ax: Axes | None = None) -> Axes:
    """Draw the histogram of the probability integral transform: flat where uncertainty is honest.

    The gray band holds 95 % of the bars of an honest method. A valley in the middle means
    distributions that are too narrow, a hill too wide.
    """
    counts = np.array([run.pit for run in found.scores if run.method == method and run.pit])
    if not counts.size:
        raise SkyfillError(f"method {method!r} gives no distributions, hence no PIT")
    ax = own_axes(ax)
    total = counts.sum(axis=0)
    bins, share = len(total), 1 / len(total)
    reach = 1.96 * np.sqrt(share * (1 - share) / total.sum()) * bins
    ax.axhspan(1 - reach, 1 + reach, color="0.6", alpha=0.5, zorder=2, linewidth=0)
    ax.bar((np.arange(bins) + 0.5) / bins, total / total.mean(), 1 / bins, color=COLORS[0])
    ax.set(xlabel="PIT", ylabel="density", xlim=(0, 1), title=method)
    return ax


def plot_filled(found: Comparison, method: str, *, ax: Axes | None = None) -> Axes:
    """Draw filled against true values, both in standard deviations of their column."""
    runs = [run.example for run in found.scores if run.method == method]
    if not runs:
        raise SkyfillError(f"no method {method!r}; they are {', '.join(found.methods)}")
    ax = own_axes(ax)
    true, filled = (np.concatenate([getattr(run, key) for run in runs]) for key in runs[0]._fields)
    reach = np.nanpercentile(np.abs([true, filled]), 99)
    ax.plot([-reach, reach], [-reach, reach], color="0.6", linewidth=1)
    ax.plot(true, filled, ".", markersize=2, alpha=0.4, color=COLORS[0])
    ax.set(xlabel="true", ylabel="filled", xlim=(-reach, reach), ylim=(-reach, reach), title=method)
    return ax


def draw_comparison(found: Comparison, method: str | None = None) -> Figure:
    """Draw NRMSE and CRPS against the rate; PIT and filled against true values of one method.

    Parameters
    ----------
    method : str, optional
        By default the method with the least CRPS.
    """
    figure = new_figure((10, 8))
    axes = figure.subplots(2, 2)
    best = method or min(found.methods, key=lambda name: _crps(found, name))
    plot_scores(found, "nrmse", ax=axes[0, 0])
    plot_scores(found, "crps", ax=axes[0, 1])
    plot_filled(found, best, ax=axes[1, 0])
    if any(run.pit for run in found.scores if run.method == best):
        plot_pit(found, best, ax=axes[1, 1])
    else:
        axes[1, 1].set_axis_off()
    return figure


def _crps(found: Comparison, method: str) -> float:
    return float(np.mean([found.mean("crps", method, rate).value for rate in found.rates]))


def own_axes(ax: Axes | None) -> Axes:
    """Give the axes that were passed, or those of a new figure."""
    if ax is not None:
        return ax
    fresh: Axes = new_figure().subplots()
    return fresh


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """Open a figure; SkyfillError where matplotlib is not installed."""
    figure: Figure = _pyplot().figure(figsize=size, layout="constrained")
    return figure


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SkyfillError(
            "figures need matplotlib; install it with: pip install 'skyfill[plot]'"
        ) from None
    return pyplot
