"""Columns that do not go with the others are found; other selections of objects are no alarm."""

import numpy as np
import pytest

from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.agreement import find_disagreements, find_families

NAMES = ("V", "I", "J", "H", "K")


def sky(n, seed, share=0.5, low=14.0, high=19.0):
    """Blue and red stars, of which a survey sees J, H and K together, down to K = 15.5."""
    rng = np.random.default_rng(seed)
    V = rng.uniform(low, high, n)
    color = np.where(rng.random(n) < share, rng.normal(0.4, 0.1, n), rng.normal(1.5, 0.2, n))
    X = np.column_stack([V, V - color, V - 1.5 * color, V - 2 * color, V - 2.2 * color])
    X[:, 1:] += rng.normal(0, 0.05, (n, 4))
    X[X[:, 4] > 15.5, 2:] = np.nan
    return X


@pytest.fixture(scope="module")
def network():
    return learn_mixture(sky(1200, 0), NAMES, n_components=4, n_fits=2).network


def found(network, X):
    return {NAMES[each.column]: each for each in find_disagreements(network, Cells(X))}


@pytest.mark.parametrize(
    "honest",
    [
        sky(600, 1),
        sky(600, 2, share=1.0),
        sky(600, 3, share=0.02),
        sky(300, 4, low=14, high=15),
        sky(600, 5, low=18, high=19),
        sky(600, 6, low=19, high=21),
        sky(25, 7),
        sky(3, 8),
    ],
    ids=["same", "blue", "red", "bright", "at the limit", "fainter", "few", "hardly any"],
)
def test_another_selection_of_objects_is_no_alarm(network, honest):
    assert found(network, honest) == {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("off", [-0.7, 0.7])
def test_another_zero_point_is_found_and_measured(network, name, off):
    X = sky(600, 1)
    X[:, NAMES.index(name)] += off
    only = found(network, X)
    assert list(only) == [name]
    assert only[name].is_off
    assert only[name].off == pytest.approx(off, abs=0.1)


def test_a_whole_survey_with_another_zero_point_is_found(network):
    X = sky(600, 1)
    X[:, 2:] += [0.9, 1.4, 1.9]
    assert set(found(network, X)) == {"J", "H", "K"}


def test_columns_that_are_missing_together_are_a_family():
    families = find_families(Cells(sky(600, 1)))
    assert families[2:, 2:].all()
    assert not families[:2, 2:].any()


def test_swapped_columns_are_found(network):
    X = sky(600, 1, share=0.1)[:, [0, 1, 4, 3, 2]]
    assert set(found(network, X)) == {"J", "K"}


def test_values_of_other_objects_are_found(network):
    X = sky(600, 1)
    X[:, 1] = np.random.default_rng(0).permutation(X[:, 1])
    assert "I" in found(network, X)


def test_a_reversed_sign_is_found_though_all_values_are_in_range():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 1)) + rng.normal(0, 0.7, (800, 3))
    network = learn_mixture(x[:400], n_components=1, n_fits=1).network
    assert find_disagreements(network, Cells(x[400:])) == []
    (only,) = find_disagreements(network, Cells(x[400:] * [1, -1, 1]))
    assert only.column == 1
    assert only.is_reversed
    assert not only.is_off


def test_a_column_that_ends_at_its_smallest_value_agrees_there():
    """Most distributions have their median at the end, to which a wide range of scores leads."""
    rng = np.random.default_rng(0)
    size = rng.random((800, 1))
    tau = np.where(size > 0.8, rng.lognormal(6, 2, (800, 1)), rng.lognormal(-3, 1, (800, 1)))
    X = np.hstack([size + rng.normal(0, 0.01, (800, 1)), tau, size])
    network = learn_mixture(X[:400], n_components=2, n_fits=1).network
    rest = X[400:]
    assert find_disagreements(network, Cells(rest[rest[:, 2] < 0.8])) == []


def test_informative_gaps_are_no_alarm():
    X = sky(1200, 0)
    model = learn_mixture(X, NAMES, n_components=4, n_fits=1, gaps="informative").network
    assert found(model, sky(600, 1)) == {}


def test_errors_of_the_values_count(network):
    X = sky(600, 1)
    noise = np.random.default_rng(0).normal(0, 0.6, len(X))
    X[:, 1] += noise
    assert found(network, X)
    errors = np.zeros(X.shape)
    errors[:, 1] = 0.6
    assert find_disagreements(network, Cells(X, errors=errors)) == []
