"""Figures of comparisons; matplotlib is optional (extra ``plot``) and loaded when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skyfill.errors import SkyfillError
from skyfill.evaluate.class_comparison import ClassComparison, ScoreCurve
from skyfill.evaluate.fill_comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): distinct for all kinds of color vision; markers are distinct in gray, too.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*"
CURVES = {
    "roc": ("false positive rate", "true positive rate"),
    "precision_recall": ("recall", "precision"),
}


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
        errors = np.nan_to_num(errors)
        ax.errorbar(percent, values, errors, label=method, capsize=2, **style_of(k))
    ax.set_xlabel("hidden cells (%)")
    ax.set_ylabel(score.replace("_", " ").replace("nrmse", "NRMSE").replace("crps", "CRPS"))
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_pit(found: Comparison, method: str, *, ax: Axes | None = None) -> Axes:
    """Draw the histogram of the probability integral transform: flat for a calibrated method.

    The gray band contains 95 % of the bars of a calibrated method. A dip in the middle means that
    the distributions are too narrow, a bump that they are too wide.
    """
    counts = np.array([run.pit for run in found.scores if run.method == method and run.pit])
    if not counts.size:
        raise SkyfillError(f"method {method!r} gives no distributions, so it has no PIT")
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
    """Draw NRMSE and CRPS against the rate, and PIT and filled values of one method.

    Parameters
    ----------
    method : str, optional
        By default the method with the lowest CRPS.
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


def plot_class_scores(found: ClassComparison, *, ax: Axes | None = None) -> Axes:
    """Draw F of every class, a marker for each method."""
    ax = own_axes(ax)
    height = np.arange(len(found.classes))
    for k, method in enumerate(found.methods):
        f = found.by_class(method).f
        ax.plot(f, height, linestyle="none", label=method, alpha=0.8, **style_of(k))
    ax.set_yticks(height, found.classes)
    ax.set(xlabel="F", xlim=(-0.02, 1.02))
    ax.invert_yaxis()
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_reliability(found: ClassComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the fraction of correct classes against their probability; ideal is the diagonal."""
    ax = own_axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for k, method in enumerate(found.methods):
        curve = found.reliability(method)
        seen = curve.n > 0
        stated, share = curve.probability[seen], curve.share[seen]
        ax.plot(stated, share, label=method, markersize=4, **style_of(k))
    ax.set(xlabel="probability of the most probable class", ylabel="fraction correct")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_curves(
    found: ClassComparison, method: str, kind: str = "roc", *, ax: Axes | None = None
) -> Axes:
    """Draw a curve for each class against all others.

    Parameters
    ----------
    kind : {"roc", "precision_recall"}
    """
    ax = own_axes(ax)
    support = np.bincount(found.truth, minlength=len(found.classes))
    for k, name in enumerate(found.classes):
        if 0 < support[k] < len(found.truth):
            curve: ScoreCurve = getattr(found, kind)(method, name)
            ax.plot(curve.x, curve.y, color=style_of(k)["color"], label=f"{name} {curve.area:.3f}")
    xlabel, ylabel = CURVES[kind]
    ax.set(xlabel=xlabel, ylabel=ylabel, title=method)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_confusion(found: ClassComparison, method: str, *, ax: Axes | None = None) -> Axes:
    """Draw the fraction of each true class assigned to each class, with the counts."""
    ax = own_axes(ax)
    counts = found.confusion(method)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), share in np.ndenumerate(shares):
        if counts[row, column]:
            ink = "white" if share > 0.5 else "black"
            text = f"{counts[row, column]:.3g}"
            ax.text(column, row, text, ha="center", va="center", color=ink, fontsize="small")
    places = np.arange(len(found.classes))
    ax.set_xticks(places, found.classes, rotation=90)
    ax.set_yticks(places, found.classes)
    ax.set(xlabel="predicted", ylabel="true", title=method)
    return ax


def plot_log_loss(found: ClassComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the log loss of every method with its standard error."""
    ax = own_axes(ax)
    means = [found.mean("log_loss", method) for method in found.methods]
    for k, mean in enumerate(means):
        ax.errorbar(mean.value, k, xerr=mean.error, fmt="o", color=style_of(k)["color"], capsize=2)
    ax.set_yticks(np.arange(len(means)), found.methods)
    ax.set(xlabel="log loss (nats)")
    ax.invert_yaxis()
    return ax


def draw_classification(found: ClassComparison, method: str | None = None) -> Figure:
    """Draw all six panels; curves and confusion of one method, by default the best."""
    best = method or min(found.methods, key=lambda name: found.mean("log_loss", name).value)
    figure = new_figure((15, 9))
    axes = figure.subplots(2, 3)
    plot_class_scores(found, ax=axes[0, 0])
    plot_log_loss(found, ax=axes[0, 1])
    plot_reliability(found, ax=axes[0, 2])
    plot_curves(found, best, "roc", ax=axes[1, 0])
    plot_curves(found, best, "precision_recall", ax=axes[1, 1])
    plot_confusion(found, best, ax=axes[1, 2])
    return figure


def style_of(k: int) -> dict[str, Any]:
    """Return the color and marker of the k-th of several methods or classes."""
    return {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}


def own_axes(ax: Axes | None) -> Axes:
    """Return the axes that were passed, or those of a new figure."""
    if ax is not None:
        return ax
    fresh: Axes = new_figure().subplots()
    return fresh


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """Open a figure; SkyfillError if matplotlib is not installed."""
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
