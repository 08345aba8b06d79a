"""Figures on matplotlib Axes."""

import matplotlib as mpl
import numpy as np
import pytest

from skyfill.catalog import Table
from skyfill.errors import DataError
from skyfill.network import GaussianNetwork, learn_mixture
from skyfill.report import count_gaps
from skyfill.report.figures import draw_pair, plot_gaps, plot_network, plot_pair, plot_sky
from skyfill.report.pair import describe_pair

from .conftest import GROUPS

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close():
    yield
    mpl.pyplot.close("all")


def texts(ax):
    return {text.get_text() for text in ax.texts}


def test_the_network_names_every_feature_and_group(model):
    ax = plot_network(model.network, GROUPS)
    assert set(model.names) <= texts(ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(GROUPS)
    ax.figure.canvas.draw()


def test_a_single_network_is_drawn_with_its_arcs():
    """Three boxes, two arrows: the wider one is the stronger."""
    network = GaussianNetwork(
        ["V", "I", "n"], [[], ["V"], ["V"]], [0, 0, 0], [[], [2.0], [0.1]], [1, 1, 1]
    )
    ax = plot_network(network, {"optical": ["V", "I"], "other": ["n"]})
    assert {"V", "I", "n"} <= texts(ax)
    arrows = [text.arrow_patch.get_linewidth() for text in ax.texts if text.get_text() == ""]
    assert len(arrows) == 2
    assert arrows[0] > 1.5 * arrows[1]


def test_bars_of_gaps_are_as_long_as_the_shares(catalog):
    gaps = count_gaps(catalog)
    ax = plot_gaps(gaps)
    ends = np.zeros(len(gaps.names))
    for bar in ax.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends[row], bar.get_x() + bar.get_width())
    np.testing.assert_allclose(ends, 100 * gaps.share)


def test_a_figure_goes_where_it_is_asked_to(model, catalog):
    axes = mpl.pyplot.figure().subplots(2)
    assert plot_pair(model.network, ("V", "I"), ax=axes[0]) is axes[0]
    assert plot_gaps(count_gaps(catalog), ax=axes[1]) is axes[1]


def test_densities_of_a_gaussian_pair_are_gaussian():
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([1, 2], [[1, 0.8], [0.8, 1]], 4000)
    network = learn_mixture(X, ["a", "b"], n_components=1, n_fits=1, margins=False).network
    pair = describe_pair(network, ("a", "b"), at=2.0)
    assert pair.x[pair.marginal_x.argmax()] == pytest.approx(1, abs=0.3)
    mean = np.average(pair.y, weights=pair.conditional_y)
    sd = np.sqrt(np.average((pair.y - mean) ** 2, weights=pair.conditional_y))
    assert mean == pytest.approx(2.8, abs=0.05)
    assert sd == pytest.approx(0.6, abs=0.05)


def test_the_figure_of_the_paper_has_three_panels(model):
    figure = draw_pair(model.network, ("V", "I"), at=17.0)
    lines = [ax.get_lines() for ax in figure.axes]
    assert [line.get_linestyle() for line in lines[0]] == ["--"]
    assert [line.get_linestyle() for line in lines[3]] == ["--", "-"]
    figure.canvas.draw()


def test_an_unknown_feature_is_refused(model):
    with pytest.raises(DataError, match="no feature 'W'"):
        describe_pair(model.network, ("V", "W"))


def test_east_is_left_and_every_class_is_named(results):
    ax = plot_sky(results)
    assert ax.xaxis_inverted()
    shown = {t.get_text() for t in ax.get_legend().get_texts()}
    assert shown == set(results.column("class").to_pylist())


def test_a_sky_map_without_classes_is_refused(results):
    empty = Table(results.arrow).with_column("kind", [""] * len(results))
    with pytest.raises(DataError, match="contains no classes"):
        plot_sky(empty, "kind")
