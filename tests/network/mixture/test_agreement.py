"""Columns that do not go with the others are found; other selections of objects are no alarm."""

import numpy as np
import pytest

from skyfill.network import Cells, MixtureNetwork, learn_mixture
from skyfill.network.mixture.agreement import compare, find_disagreements, find_families
from skyfill.network.mixture.maps import identity_margin
from skyfill.network.mixture.margin import Identity, Margin
from skyfill.network.mixture.mixture import Mixture

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


def test_errors_of_the_values_count(network):
    X = sky(600, 1)
    noise = np.random.default_rng(0).normal(0, 0.6, len(X))
    X[:, 1] += noise
    assert found(network, X)
    errors = np.zeros(X.shape)
    errors[:, 1] = 0.6
    assert find_disagreements(network, Cells(X, errors=errors)) == []


def test_what_a_shallow_survey_just_sees_is_no_alarm():
    """Of faint stars it sees the reddest alone, brighter in J than most of their V."""
    rng = np.random.default_rng(0)

    def made(n, low):
        V, color = rng.uniform(low, 20, n), rng.normal(1.5, 0.8, n)
        return np.column_stack([V, V - color, V - 1.1 * color]) + rng.normal(0, 0.02, (n, 3))

    network = learn_mixture(made(600, 14), n_components=1, n_fits=1).network
    shallow = made(60_000, 19.2)
    shallow[shallow[:, 1] > 15.8, 1:] = np.nan
    assert (~np.isnan(shallow[:, 1])).sum() > 60
    assert find_disagreements(network, Cells(shallow)) == []


def test_what_a_hidden_cell_would_say_as_a_gap_does_not_count():
    """Nearly all gaps are those of one kind of object, and nearly all values of the other."""
    means, cov = np.array([[0.0, -0.25], [0.0, 0.25]]), np.array([[1.0, 1.0], [1.0, 1.001]])
    rates = np.array([[0.01, 0.02], [0.01, 0.98]])
    fit = Mixture(np.full(2, 0.5), means, np.stack([cov, cov]), rates, None)
    lines = (Identity(np.array([0.0, 1.0]), np.array([0.0, 1.0])),) * 2
    x = np.linspace(-0.5, 0.5, 200)
    rows = Cells(np.column_stack([x, x - 0.25]))
    network = MixtureNetwork(("V", "J"), lines, (fit,))
    assert compare(network, rows, 1, np.array([False, True])).is_off
    assert find_disagreements(network, rows) == []


def test_values_outside_the_range_of_the_training_set_are_left_to_that_warning():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(14, 16, 600), rng.normal(size=(600, 2))])
    network = learn_mixture(X[:400], n_components=1, n_fits=1).network
    assert find_disagreements(network, Cells(X[400:] + [3, 0, 0])) == []


def test_all_scores_beyond_the_end_of_a_column_are_one_value():
    end = Margin(np.array([1.0, 1.0, 2.0, 50.0]), np.array([-5.0, -0.2, 0.0, 3.0]))
    means, covs = np.array([[0.0, -0.3]]), np.diag([1.0, 0.0025])[None]
    fits = (Mixture(np.ones(1), means, covs, None, None),)
    network = MixtureNetwork(("a", "tau"), (identity_margin(np.linspace(0, 1, 9)), end), fits)
    rows = np.column_stack([np.linspace(0, 1, 50), np.full(50, 1.1)])
    found = compare(network, Cells(rows), 1, np.array([False, True]))
    assert found.n == 50
    assert found.sigmas < 1
