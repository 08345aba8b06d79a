"""Gaps beyond what was seen of their column: nothing is filled wrongly with confidence."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.beyond import find_beyond, leave_out_ends, rehearse_beyond
from skyfill.network.mixture.maps import natural_ends, smooth_margin
from skyfill.network.mixture.support import find_support


def stars(n, low, high, seed=0):
    """V, I, J and K of stars of one color law: J and K follow from the others, up to 0.1 mag."""
    rng = np.random.default_rng(seed)
    V, color = rng.uniform(low, high, n), rng.normal(1.0, 0.3, n)
    noise = rng.normal(0, 0.1, (3, n))
    return (
        np.column_stack([V, V - color, V - 2 * color, V - 2.5 * color])
        + np.vstack([np.zeros(n), noise]).T
    )


@pytest.fixture(scope="module")
def bright():
    X = stars(800, 14, 18)
    return X, learn_mixture(X, n_components=2, n_fits=2).network


def faint_gaps(n=900, seed=1):
    """A survey that sees J brighter than 15.5 only, and says nothing of the others."""
    truth = stars(n, 14, 20, seed)
    X = truth.copy()
    X[truth[:, 2] > 15.5, 2] = np.nan
    return X, truth


def test_gaps_of_faint_objects_are_found_and_random_ones_are_not():
    X, truth = faint_gaps()
    assert find_beyond(Cells(X)).tolist() == [False, False, True, False]
    at_random = np.where(np.random.default_rng(0).random(truth.shape) < 0.2, np.nan, truth)
    assert not find_beyond(Cells(at_random)).any()


def test_a_rehearsal_hides_the_cells_that_are_most_like_the_gaps():
    X, truth = faint_gaps()
    made = rehearse_beyond(Cells(X), 0.25)
    hidden = ~np.isnan(made.truth[:, 2])
    seen = ~np.isnan(X[:, 2])
    assert hidden.sum() == pytest.approx(0.25 * seen.sum(), abs=2)
    assert truth[hidden, 0].mean() > truth[seen & ~hidden, 0].mean() + 1
    assert_array_equal(made.truth[hidden, 2], truth[hidden, 2])


def test_faint_objects_that_a_survey_missed_are_filled_without_a_stated_limit():
    X, truth = faint_gaps()
    found = learn_mixture(X, n_components=4, n_fits=3)
    lost = np.isnan(X)
    away = (found.network.posterior(X).mean - truth)[lost]
    assert abs(away.mean()) < 0.2  # up to 4.5 mag beyond what was seen
    low, high = found.network.quantiles(X, [0.05, 0.95])
    assert ((low <= truth) & (truth <= high))[lost].mean() > 0.85


def test_a_field_fainter_than_the_training_set_has_honest_intervals(bright):
    _, network = bright
    truth = stars(800, 18, 21, seed=2)
    X = np.where(np.random.default_rng(3).random(truth.shape) < 0.3, np.nan, truth)
    X[np.isnan(X).all(axis=1), 0] = 19.0
    lost = np.isnan(X) & ~np.isnan(truth)
    low, high = network.quantiles(X, [0.05, 0.95])
    inside = ((low <= truth) & (truth <= high))[lost].mean()
    plain = replace(network, support=None)
    low, high = plain.quantiles(X, [0.05, 0.95])
    assert inside > 0.8
    assert inside > ((low <= truth) & (truth <= high))[lost].mean()


def test_within_the_training_set_nothing_is_widened(bright):
    X, network = bright
    inner = X[(np.quantile(X, 0.1, axis=0) < X).all(axis=1)]
    inner = inner[(inner < np.quantile(X, 0.9, axis=0)).all(axis=1)].copy()
    inner[:, 2] = np.nan
    plain = replace(network, support=None)
    assert_array_equal(network.posterior(inner).sd, plain.posterior(inner).sd)
    assert_array_equal(network.quantiles(inner, [0.1, 0.9]), plain.quantiles(inner, [0.1, 0.9]))
    assert_array_equal(network.draws(inner, 3, 0), plain.draws(inner, 3, 0))


@given(st.floats(18.5, 30.0), st.floats(0.0, 2.0))
def test_intervals_grow_with_the_distance_and_seen_cells_stay(bright, V, color):
    _, network = bright
    rows = np.array([[V, V - color, np.nan, np.nan], [V + 1, V + 1 - color, np.nan, np.nan]])
    plain = replace(network, support=None)
    post, before = network.posterior(rows), plain.posterior(rows)
    assert_array_equal(post.mean, before.mean)
    assert (post.sd[:, 2:] >= before.sd[:, 2:]).all()
    ours, theirs = (model.quantiles(rows, [0.05, 0.5, 0.95]) for model in (network, plain))
    width = ours[2] - ours[0]
    assert (width[:, 2:] >= (theirs[2] - theirs[0])[:, 2:] - 1e-9).all()
    assert (np.diff(ours, axis=0) >= 0).all()
    gained = post.sd**2 - before.sd**2
    assert (gained[1, 2:] >= gained[0, 2:] - 1e-9).all()
    assert_array_equal(ours[:, :, :2], np.repeat(rows[None, :, :2], 3, axis=0))


@given(st.integers(0, 1000))
def test_distances_of_the_rows_learned_from_are_small(seed):
    Z = np.random.default_rng(seed).normal(size=(300, 3))
    Z[Z > 1.5] = np.nan
    distance = find_support(Z).distance(Z)
    assert (distance[~np.isnan(Z)] == 0).all()
    assert (distance >= 0).all()


def test_ends_of_a_table_are_left_out():
    X = stars(400, 14, 18)
    outside = leave_out_ends(Cells(X), np.random.default_rng(0))
    V = outside.train.values[:, 0]
    left_out = np.setdiff1d(X[:, 0], V)
    assert len(left_out) == pytest.approx(0.3 * 400, abs=2)
    assert np.abs(left_out - 16).min() > 0.5
    assert np.abs(left_out - 16).mean() > np.abs(V - 16).mean() + 0.5


@given(st.integers(0, 1000), st.sampled_from(["normal", "lognormal", "share", "cauchy"]))
def test_smooth_maps_rise_and_lead_back(seed, shape):
    rng = np.random.default_rng(seed)
    draw = {
        "normal": lambda: rng.normal(18, 2, 200),
        "lognormal": lambda: rng.lognormal(0, 2, 200),
        "share": lambda: rng.random(200),
        "cauchy": lambda: rng.standard_cauchy(200),
    }
    seen = draw[shape]()
    for bent in (True, False):
        margin = smooth_margin(seen, bent=bent)
        scores = margin.to_normal(np.sort(seen))
        assert (np.diff(scores) >= 0).all()
        back = margin.from_normal(margin.to_normal(seen))
        assert np.allclose(back, seen, rtol=1e-6, atol=1e-9 * np.abs(seen).max())
        # A period is never negative, whatever its map.
        assert margin.from_normal(np.array([-4.0]))[0] >= natural_ends(seen)[0]
    low, high = natural_ends(seen)
    reached = smooth_margin(seen).from_normal(np.array([-5.0, 5.0]))
    assert reached[0] >= low
    assert reached[1] <= high


def test_a_value_that_many_rows_share_comes_out_again():
    rng = np.random.default_rng(0)
    seen = np.where(rng.random(500) < 0.3, 2.0, rng.normal(3, 1, 500))
    again = smooth_margin(seen).from_normal(rng.normal(size=20_000))
    assert (again == 2.0).mean() == pytest.approx((seen == 2.0).mean(), abs=0.01)
