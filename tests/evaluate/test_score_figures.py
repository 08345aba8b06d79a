"""Figures: what they show, and the advice where matplotlib is missing."""

import sys

import numpy as np
import pytest

from skyfill.errors import SkyfillError
from skyfill.evaluate import compare_imputers
from skyfill.evaluate.score_figures import draw_comparison, plot_filled, plot_pit, plot_scores
from skyfill.impute import GaussianMixtureImputer, MeanImputer


@pytest.fixture(scope="module")
def found():
    X = np.random.default_rng(0).normal(size=(200, 3))
    methods = {"mean": MeanImputer, "mixture": GaussianMixtureImputer}
    return compare_imputers(X, methods, rates=[0.1, 0.2], repeats=2)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_scores_have_a_line_for_each_method(found, pyplot):
    ax = plot_scores(found)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mean", "mixture"]
    line = ax.containers[1].lines[0]
    assert line.get_xdata().tolist() == [10, 20]
    assert line.get_ydata()[0] == pytest.approx(found.mean("nrmse", "mixture", 0.1).value)


def test_pit_bars_have_a_mean_height_of_one(found, pyplot):
    heights = [bar.get_height() for bar in plot_pit(found, "mixture").containers[0]]
    assert np.mean(heights) == pytest.approx(1.0)


def test_filled_values_are_drawn_against_true_ones(found, pyplot):
    dots = plot_filled(found, "mean").lines[1]
    assert len(dots.get_xdata()) == sum(len(r.example.true) for r in found.scores[::2])


def test_all_panels_make_one_figure(found, pyplot):
    figure = draw_comparison(found)
    figure.canvas.draw()
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes] == [
        ("hidden cells (%)", "NRMSE"),
        ("hidden cells (%)", "CRPS"),
        ("true", "filled"),
        ("PIT", "density"),
    ]
    for ax, score in zip(figure.axes, ("nrmse", "crps"), strict=False):
        for bars, method in zip(ax.containers, found.methods, strict=True):
            means = [found.mean(score, method, rate).value for rate in found.rates]
            np.testing.assert_allclose(bars.lines[0].get_ydata(), means)


def test_filled_values_and_pit_are_those_of_the_method_with_the_least_crps(found, pyplot):
    least = min(
        found.methods, key=lambda m: sum(found.mean("crps", m, r).value for r in found.rates)
    )
    assert [ax.get_title() for ax in draw_comparison(found).axes[2:]] == [least, least]
    point = draw_comparison(found, "mean")
    assert point.axes[2].get_title() == "mean"
    assert not point.axes[3].axison


def test_a_method_without_distributions_has_no_pit(found):
    with pytest.raises(SkyfillError, match="'mean' gives no distributions"):
        plot_pit(found, "mean")


def test_missing_matplotlib_is_named_with_the_extra(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SkyfillError, match=r"pip install 'skyfill\[plot\]'"):
        plot_scores(found)
