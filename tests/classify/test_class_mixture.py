"""A mixture whose components belong to classes: Bayes' rule, gaps, background, and its choice."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from skyfill.classify.class_mixture import (
    check_class_mixture,
    class_mixture_arrays,
    read_class_mixture,
    with_mixture,
)
from skyfill.classify.class_mixture_fit import (
    BACKGROUND,
    expect_classes,
    fit_class_mixture,
    maximize_classes,
    with_background,
)
from skyfill.classify.combining import WEIGHTS, Known, choose_mixture
from skyfill.classify.members import pool_members
from skyfill.network import Cells, MixtureNetwork, learn_mixture
from skyfill.network.mixture.fit import Plan, maximize_mixture
from skyfill.network.mixture.margin import Identity
from skyfill.network.mixture.mixture import Mixture, expect_mixture, split
from skyfill.network.moments import Moments

PLAN = Plan(1, 5.0)
SHARES = np.array([0.7, 0.3])


def by_hand(p=2):
    """Two classes in p columns that are their own scores: N(0, 1) and N(3, 1) in each."""
    margins = tuple(Identity(np.arange(2.0), np.arange(2.0)) for _ in range(p))
    means, covs = np.array([[0.0] * p, [3.0] * p]), np.tile(np.eye(p), (2, 1, 1))
    fit = Mixture(np.full(2, 0.5), means, covs, None, None)
    network = MixtureNetwork(tuple(f"x{j}" for j in range(p)), margins, (fit,))
    return with_background(network, fit, np.arange(2), SHARES)


def bayes(x):
    """Probability of the second class, and that a value is no background, in one column."""
    own = SHARES * norm.pdf(x[:, None], [0.0, 3.0], 1.0) * (1 - BACKGROUND)
    broad = (SHARES * norm.pdf(x[:, None], [0.0, 3.0], 2.0) * BACKGROUND).sum(axis=1)
    total = own.sum(axis=1) + broad
    return (own[:, 1] + SHARES[1] * broad) / total, own.sum(axis=1) / total


def two_kinds(n=400, seed=0, rate=0.1):
    """A compact class within a broad one: what it is shows in no column alone."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    X = rng.normal(size=(n, 3)) * np.where(y == 1, 0.3, 1.5)[:, None]
    X[:, 1] += X[:, 0]
    X[rng.random(X.shape) < rate] = np.nan
    return Cells(X), y


def learned(cells):
    return learn_mixture(cells, n_components=2, n_fits=1, calibrate=False).network


def test_probabilities_are_those_of_bayes_rule_also_where_a_column_is_a_gap():
    x = np.linspace(-4.0, 7.0, 45)
    P, known = bayes(x)
    with_gap = np.column_stack([x, np.full(len(x), np.nan)])
    for found in (by_hand(1).look(Cells(x[:, None])), by_hand(2).look(Cells(with_gap))):
        np.testing.assert_allclose(found[:, 1], P, rtol=1e-9)
        np.testing.assert_allclose(found[:, 2], known, rtol=1e-9)


def test_a_row_unlike_all_classes_is_left_to_the_trees():
    far = by_hand().look(Cells(np.array([[-30.0, 40.0]])))
    np.testing.assert_allclose(far[0], [0.7, 0.3, 0.0], atol=1e-6)
    trees = [(0.5, np.array([[0.2, 0.8]])), (0.5, np.array([[0.4, 0.6]]))]
    np.testing.assert_allclose(
        pool_members(with_mixture(trees, 0.5, far), "logs"), pool_members(trees, "logs"), atol=1e-6
    )


def test_components_learn_from_the_rows_of_their_class_alone():
    cells, y = two_kinds()
    scores = learned(cells).score_cells(cells)
    mixture = Mixture(
        np.full(2, 0.5),
        np.array([[0.5] * 3, [-0.5] * 3]),
        np.tile(np.eye(3), (2, 1, 1)),
        None,
        None,
    )
    parts = [split(scores.take(y == c)) for c in range(2)]
    found = expect_classes(parts, np.arange(2), mixture)
    assert found.weight.tolist() == [(y == 0).sum(), (y == 1).sum()]
    for c in range(2):
        alone = Mixture(np.ones(1), mixture.means[[c]], mixture.covs[[c]], None, None)
        expected = expect_mixture(parts[c][0], alone)
        np.testing.assert_allclose(found.cross[c], expected.cross[0])


def moments_of(groups, gaps):
    """Moments of components with these complete rows and numbers of gaps."""
    rows, p = [len(group) for group in groups], groups[0].shape[1]
    total = np.array([group.sum(axis=0) for group in groups])
    cross = np.array([group.T @ group for group in groups])
    at = np.zeros((len(groups), p))
    return Moments(sum(rows), at, np.array(rows, float), total, cross, np.array(gaps, float), 0.0)


def test_a_class_off_the_locus_of_another_stays_there_in_a_column_that_few_of_it_have():
    x = np.random.default_rng(0).normal(size=1030)
    stars, quasars = (np.column_stack([x, x + off]) for off in (0.0, 3.0))
    moments = moments_of([stars[:1000], quasars[1000:]], [[0, 0], [0, 24]])
    plan = Plan(2, 5.0, pooling=(1.0, 3.0))
    off = np.diff(maximize_classes(moments, np.arange(2), plan).means[1])
    np.testing.assert_allclose(off, 3.0, atol=0.01)
    # Regressions of all components in common, the constant included, make them half a star.
    assert np.diff(maximize_mixture(moments, plan).means[1]) < 2


@pytest.mark.parametrize("seed", range(5))
def test_components_of_one_class_are_those_of_a_mixture_without_classes(seed):
    rng = np.random.default_rng(seed)
    groups = [rng.normal(rng.normal(size=3), 1.0, (n, 3)) for n in (40, 25, 90)]
    moments = moments_of(groups, rng.integers(0, 20, (3, 3)))
    plan = Plan(3, 5.0, pooling=(1.0, 3.0, 3.0))
    found, other = (
        maximize_classes(moments, np.zeros(3, int), plan),
        maximize_mixture(moments, plan),
    )
    np.testing.assert_allclose(found.means, other.means, atol=1e-6)
    np.testing.assert_allclose(found.covs, other.covs, atol=1e-6)


def test_a_row_is_seen_alone_as_among_others_and_the_same_seed_sees_the_same():
    cells, y = two_kinds()
    how = {"shares": np.array([0.8, 0.2]), "plan": PLAN, "rows_per_component": 50.0, "seed": 1}
    first, second = (fit_class_mixture(learned(cells), cells, y, **how) for _ in range(2))
    together = first.look(cells)
    assert np.array_equal(together, second.look(cells))
    alone = np.vstack([first.look(cells.take([i])) for i in range(40)])
    assert np.array_equal(alone, together[:40])
    np.testing.assert_allclose(together[:, :2].sum(axis=1), 1.0)


def test_a_class_without_a_row_is_as_probable_as_background_makes_it():
    cells, y = two_kinds()
    how = {"plan": PLAN, "rows_per_component": np.inf, "seed": 1}
    shares = np.array([0.6, 0.1, 0.3])
    seen = fit_class_mixture(learned(cells), cells, 2 * y, shares=shares, **how).look(cells)
    np.testing.assert_allclose(seen[:, 1], 0.1 * (1 - seen[:, 3]), atol=1e-12)


@pytest.mark.parametrize("helps", [True, False])
def test_it_is_taken_where_held_out_classes_are_predicted_clearly_better(helps):
    cells, y = two_kinds(600)
    y = y if helps else np.random.default_rng(0).permutation(y)
    shares = np.bincount(y) / len(y)
    fit = partial(fit_class_mixture, learned(cells), shares=shares, plan=PLAN, seed=0)
    trees = [(1.0, np.tile(shares, (len(y), 1)))]
    fold = np.arange(len(y)) // 5 % 5
    mixture, (*_, parts) = choose_mixture(fit, Known(cells, y, np.ones(len(y)), fold, trees))
    assert (mixture is not None) == helps
    assert len(parts) == (2 if helps else 1)
    if mixture is not None:
        assert mixture.weight == max(WEIGHTS)  # trees that know nothing
        assert mixture.look(cells)[y == 1, 1].mean() > 2 * mixture.look(cells)[y == 0, 1].mean()


def test_files_hold_all_of_it():
    mixture = replace(by_hand(), weight=0.35)
    back = read_class_mixture(class_mixture_arrays(mixture), mixture.network)
    X = Cells(np.array([[1.0, 2.0], [np.nan, 0.0]]))
    assert np.array_equal(back.look(X), mixture.look(X))
    assert back.weight == 0.35
    assert read_class_mixture({}, mixture.network) is None
    assert class_mixture_arrays(None) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": np.full((4, 2), 0.4)}, "must be shares"),
        ({"classes": np.full((3, 2), 0.5)}, "do not belong together"),
        ({"weight": 1.0}, "between 0 and 1"),
        ({"weight": np.nan}, "between 0 and 1"),
    ],
)
def test_what_is_no_mixture_of_the_classes_is_refused(change, message):
    mixture = replace(by_hand(), weight=0.5)
    check_class_mixture(mixture, 2, 2)
    with pytest.raises(ValueError, match=message):
        check_class_mixture(replace(mixture, **change), 2, 2)


def test_a_mixture_of_other_columns_is_refused():
    mixture = replace(by_hand(), weight=0.5)
    with pytest.raises(ValueError, match="mixture of the classes: weights, means"):
        check_class_mixture(mixture, 2, 3)
    arrays = class_mixture_arrays(mixture) | {"mixture.weight": np.ones(2)}
    with pytest.raises(ValueError, match="one weight"):
        read_class_mixture(arrays, mixture.network)
