"""Figures of classifiers: scores by class, reliability, ROC, precision and recall, confusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skyfill.evaluate.class_comparison import ClassComparison, Curve
from skyfill.evaluate.figures import COLORS, MARKERS, new_figure, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = {
    "roc": ("false positive rate", "true positive rate"),
    "precision_recall": ("recall", "precision"),
}


def plot_class_scores(found: ClassComparison, *, ax: Axes | None = None) -> Axes:
    """Draw F of every class, a marker for each method."""
    ax = own_axes(ax)
    height = np.arange(len(found.classes))
    for k, method in enumerate(found.methods):
        f = found.by_class(method).f
        ax.plot(f, height, MARKERS[k % len(MARKERS)], color=_color(k), label=method, alpha=0.8)
    ax.set_yticks(height, found.classes)
    ax.set(xlabel="F", xlim=(-0.02, 1.02))
    ax.invert_yaxis()
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_reliability(found: ClassComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the share of right classes against the stated probability; honest is the diagonal."""
    ax = own_axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for k, method in enumerate(found.methods):
        curve = found.reliability(method)
        seen = curve.n > 0
        style: dict[str, Any] = {"color": _color(k), "marker": MARKERS[k % len(MARKERS)]}
        ax.plot(curve.probability[seen], curve.share[seen], label=method, markersize=4, **style)
    ax.set(xlabel="probability of the most probable class", ylabel="share that is right")
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
            curve: Curve = getattr(found, kind)(method, name)
            ax.plot(curve.x, curve.y, color=_color(k), label=f"{name} {curve.area:.3f}")
    xlabel, ylabel = CURVES[kind]
    ax.set(xlabel=xlabel, ylabel=ylabel, title=method)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_confusion(found: ClassComparison, method: str, *, ax: Axes | None = None) -> Axes:
    """Draw the shares of each true class that went to each class, with the counts."""
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
        ax.errorbar(mean.value, k, xerr=mean.error, fmt="o", color=_color(k), capsize=2)
    ax.set_yticks(np.arange(len(means)), found.methods)
    ax.set(xlabel="log loss (nats)")
    ax.invert_yaxis()
    return ax


def draw_classification(found: ClassComparison, method: str | None = None) -> Figure:
    """Draw all six panels; curves and confusion of one method, by default of least log loss."""
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


def _color(k: int) -> str:
    return COLORS[k % len(COLORS)]
