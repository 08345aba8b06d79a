"""The next measurement: closed forms, laws, and gains that come true on new objects."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from skyfill.classify.gap_draws import entropy_bits
from skyfill.classify.next_measurement import Gains, expected_gains
from skyfill.errors import DataError
from skyfill.network import Cells, MixtureNetwork, learn_mixture
from skyfill.network.mixture.maps import identity_margin
from skyfill.network.mixture.mixture import Mixture


def binary_entropy(p):
    return float(entropy_bits(np.array([[p, 1 - p]]))[0])


# Hundreds of integrals have the same nodes.
quadrature = cache(np.polynomial.hermite_e.hermegauss)


def logistic(slope):
    """Class by the first column; where it is missing, the mean over what the second says of it."""

    def classify(X):
        a, b = X[:, 0], X[:, 1]
        # The network of `normal`: a given b is N(0.8 b, 0.36), else a is N(0, 1).
        centers = np.where(np.isnan(b), 0.0, 0.8 * b)
        spread = np.where(np.isnan(b), 1.0, 0.6)
        nodes, weights = quadrature(41)
        mean = expit(slope * (centers[:, None] + np.outer(spread, nodes))) @ weights
        p = np.where(np.isnan(a), mean / weights.sum(), expit(slope * a))
        return np.column_stack([p, 1 - p])

    return classify


@pytest.fixture(scope="module")
def normal():
    rng = np.random.default_rng(0)
    a = rng.normal(size=4000)
    X = np.column_stack([a, 0.8 * a + 0.6 * rng.normal(size=4000), rng.normal(size=4000)])
    return learn_mixture(X, ["a", "b", "c"], n_components=1, n_fits=1, margins=False, rng=0).network


def mean_over_normal(function, mean=0.0, sd=1.0):
    nodes, weights = quadrature(81)
    return function(mean + sd * nodes) @ weights / weights.sum()


@pytest.mark.parametrize("slope", [0.5, 2.0, 8.0])
def test_gains_are_the_integrals(normal, slope):
    rows = np.full((50, 3), np.nan)
    found = expected_gains(logistic(slope), normal, rows, n_points=64).bits.mean(axis=0)
    left = mean_over_normal(lambda a: np.array([binary_entropy(p) for p in expit(slope * a)]))
    assert found[0] == pytest.approx(1 - left, abs=0.01)

    # b tells of the class what it tells of a: a given b is N(0.8 b, 0.36).
    def given(b):
        return binary_entropy(mean_over_normal(lambda a: expit(slope * a), 0.8 * b, 0.6))

    through_b = 1 - mean_over_normal(lambda b: np.array([given(v) for v in b]))
    assert found[1] == pytest.approx(through_b, abs=0.01)
    assert found[2] == pytest.approx(0, abs=1e-12)


def test_a_seen_relative_lowers_the_gain(normal):
    rows = [[np.nan, np.nan, np.nan], [np.nan, 2.5, np.nan]]
    alone, told = expected_gains(logistic(2.0), normal, rows).bits[:, 0]
    assert told < 0.4 * alone


def test_a_block_tells_as_much_as_its_one_telling_column(normal):
    rows = [[np.nan, np.nan, np.nan]] * 3
    blocks = {"both": [0, 2], "a": [0]}
    bits = expected_gains(logistic(2.0), normal, rows, blocks=blocks, n_draws=2000).bits
    assert bits[0, 0] == pytest.approx(bits[0, 1], rel=0.05)


def test_few_draws_are_not_biased(normal):
    def classify(cells):
        return logistic(2.0)(cells.values)

    rows = np.full((400, 3), np.nan)
    # Equal rows get equal draws, unless their keys differ.
    cells = Cells(rows, keys=np.arange(400, dtype=np.uint64))
    few = expected_gains(classify, normal, cells, blocks={"s": [0, 1]}, n_draws=4).bits
    many = expected_gains(logistic(2.0), normal, rows[:1], blocks={"s": [0, 1]}, n_draws=4000).bits
    assert few.mean() == pytest.approx(many[0, 0], rel=0.1)


def test_only_what_is_missing_can_be_measured(normal):
    rows = np.array([[0.1, np.nan, 0.2], [0.1, 0.0, 0.2]])
    gains = expected_gains(logistic(1.0), normal, rows, blocks={"a": [0], "bc": [1, 2]})
    assert np.isnan(gains.bits).tolist() == [[True, False], [True, True]]
    assert gains.best.tolist() == [1, -1]


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_no_measurement_is_expected_to_lose_information(normal, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(3, 4))

    def strange(X):  # not coherent at all: gaps count as zeros
        p = np.exp(np.nan_to_num(X) @ W)
        return p / p.sum(axis=1, keepdims=True)

    X = np.where(rng.random((5, 3)) < 0.6, np.nan, rng.normal(size=(5, 3)))
    bits = expected_gains(strange, normal, X, blocks={"a": [0], "bc": [1, 2]}, n_draws=8).bits
    assert (bits[~np.isnan(bits)] >= 0).all()


def two_kinds(separation):
    """Two kinds of objects with known densities: probabilities that are right by construction."""
    rng = np.random.default_rng(1)
    means = np.array([[0.0, 0.0, 0.0], separation])
    y = (rng.random(10_000) < 0.3).astype(int)
    X = means[y] + rng.normal(size=(10_000, 3))

    def bayes(rows):
        log_p = np.log([0.7, 0.3]) - 0.5 * np.nansum((rows[:, None] - means) ** 2, axis=2)
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    return X, y, bayes


@pytest.fixture(scope="module")
def kinds():
    X, y, bayes = two_kinds([2.0, 1.0, 0.3])
    network = learn_mixture(X[:4000], n_components=4, n_fits=1, rng=0).network
    return X[4000:], y[4000:], bayes, network


def test_the_mean_fall_in_entropy_and_in_log_loss_equals_the_prediction(kinds):
    X, y, bayes, network = kinds
    rng = np.random.default_rng(2)
    hidden = np.where(rng.random(X.shape) < 0.6, np.nan, X)
    gains = expected_gains(bayes, network, hidden)
    before = bayes(hidden)
    for j in range(3):
        rows = np.flatnonzero(np.isnan(hidden[:, j]))
        revealed = hidden[rows].copy()
        revealed[:, j] = X[rows, j]
        after = bayes(revealed)
        fall = entropy_bits(before[rows]) - entropy_bits(after)
        expected = gains.bits[rows, j].mean()
        noise = fall.std() / np.sqrt(len(rows))
        assert fall.mean() == pytest.approx(expected, rel=0.1, abs=3 * noise)
        sure = [p[np.arange(len(rows)), y[rows]] for p in (before[rows], after)]
        learned = np.log2(sure[1] / sure[0])
        error = learned.std() / np.sqrt(len(rows))
        assert learned.mean() == pytest.approx(expected, abs=3 * error)


def test_that_a_value_is_missing_is_not_information_from_measuring_it(normal):
    """The gap itself is evidence of the class; whatever is measured, this evidence is gone."""

    def by_gap(X):
        p = np.where(np.isnan(X[:, 1]), 0.9, 0.2)
        return np.column_stack([p, 1 - p])

    gains = expected_gains(by_gap, normal, [[0.1, np.nan, 0.2]])
    assert gains.bits[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert gains.entropy[0] == pytest.approx(binary_entropy(0.9))


def kinds_with_gaps(rates):
    """Two equally common kinds of object, far apart in both columns, with their rates of gaps."""
    means = np.array([[-10.0, -10.0], [10.0, 10.0]])
    covs = np.tile(np.eye(2), (2, 1, 1))
    mixture = Mixture(np.array([0.5, 0.5]), means, covs, np.array(rates), None)
    margin = identity_margin(np.array([-1.0, 1.0]))
    return MixtureNetwork(("a", "b"), (margin, margin), (mixture,))


@pytest.mark.parametrize("block", [[0], [0, 1]])
def test_with_informative_gaps_values_are_expected_from_objects_that_have_them(block):
    """A kind that nearly always lacks a value is rarely seen where one is measured.

    In one kind a is measured with probability 0.1, in the other with 0.5; the class is the kind.
    """

    def by_kind(X):
        known = np.where(np.isnan(X[:, 0]), X[:, 1], X[:, 0])
        p = np.where(np.isnan(known), 0.5, known > 0)
        return np.column_stack([p, 1 - p])

    rows = np.full((40, 2), np.nan)
    gains = expected_gains(
        by_kind,
        kinds_with_gaps([[0.9, 0.3], [0.5, 0.3]]),
        rows,
        blocks={"m": block},
        n_points=60,
        n_draws=400,
    )
    assert gains.bits.mean() == pytest.approx(binary_entropy(1 / 6), abs=0.02)


def test_scatter_of_the_classifier_is_not_information(normal):
    def by_chance(X):
        p = np.random.default_rng(0).random(len(X))
        return np.column_stack([p, 1 - p])

    rows = np.full((20, 3), np.nan)
    bits = expected_gains(by_chance, normal, rows, blocks={"a": [0], "bc": [1, 2]}).bits
    np.testing.assert_allclose(bits, 0.0, atol=1e-12)


def test_the_classifier_sees_the_limits_of_the_other_gaps(normal):
    """The class follows from the limit of c alone, until c has been measured."""

    def by_limit(cells):
        p = np.where(cells.is_limited[:, 2] & (cells.lower[:, 2] > 0), 0.9, 0.5)
        return np.column_stack([p, 1 - p])

    lower = np.array([[np.nan, np.nan, 1.0]])
    gains = expected_gains(by_limit, normal, Cells([[np.nan, 0.2, np.nan]], lower))
    assert gains.entropy[0] == pytest.approx(binary_entropy(0.9))
    np.testing.assert_allclose(gains.bits, [[0.0, np.nan, 0.0]], atol=1e-12)


def test_following_the_advice_beats_chance(kinds):
    X, y, bayes, network = kinds
    rows = np.full(X.shape, np.nan)
    rng = np.random.default_rng(3)
    best = expected_gains(bayes, network, rows[:1]).best[0]
    assert best == 0

    def loss(columns):
        shown = rows.copy()
        shown[np.arange(len(X)), columns] = X[np.arange(len(X)), columns]
        return -np.log(bayes(shown)[np.arange(len(X)), y]).mean()

    assert loss(np.full(len(X), best)) < loss(rng.integers(3, size=len(X))) - 0.05


def test_the_summary_says_which_survey_helps_most_objects():
    bits = np.array([[0.5, 0.1], [np.nan, 0.3], [0.2, 0.05], [np.nan, np.nan]])
    first, second = Gains(("sage", "wise"), bits, np.ones(4)).summary()
    assert first == ("sage", 2, pytest.approx(0.7), pytest.approx(0.35), 2, 2)
    assert second == ("wise", 3, pytest.approx(0.45), pytest.approx(0.15), 1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_points": 1}, "n_points and n_draws must be at least 2"),
        ({"blocks": {"x": [7]}}, "block 'x': the columns must be integers from 0 to 2"),
        ({"blocks": {"x": []}}, "block 'x'"),
    ],
)
def test_mistakes_are_named(normal, options, message):
    with pytest.raises(DataError, match=message):
        expected_gains(logistic(1.0), normal, [[np.nan] * 3], **options)
