"""The scorer: what a model file holds, and what it says of a row beside its class."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import norm

from skyfill.classify.class_calibration import (
    Calibration,
    fit_calibration,
    fit_odds,
    is_clearly_better,
)
from skyfill.classify.gap_draws import entropy_bits
from skyfill.classify.outlier import fit_outlier_rule, range_score
from skyfill.classify.prior import (
    NOTABLE_MISFIT,
    Profiles,
    estimate_prior,
    estimate_shares,
    find_profiles,
    match_profiles,
    shift_prior,
)
from skyfill.classify.scorer import Scorer
from skyfill.classify.views import VIEWS, Facts
from skyfill.impute import NetworkImputer
from skyfill.network import learn_mixture
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.margin import Margin
from tests.classify.test_classifier import quick, stars


@pytest.fixture(scope="module")
def classifier():
    return quick("both").fit(*stars())


@pytest.fixture(scope="module")
def scorer(classifier):
    return classifier.scorer_


@pytest.fixture(scope="module")
def judge():
    return quick("paper").fit(*stars(3000, seed=11)).scorer_


def test_the_scorer_says_what_the_classifier_says(classifier, scorer):
    X, _ = stars(50, seed=1)
    assert np.array_equal(scorer.probabilities(X), classifier.predict_proba(X))
    assert np.array_equal(scorer.score(X).probabilities, classifier.predict_proba(X))


def test_arrays_bring_the_same_scorer_back(scorer):
    again = Scorer.from_arrays(scorer.facts(), scorer.arrays(), scorer.network)
    X, _ = stars(50, seed=1)
    assert np.array_equal(again.probabilities(X), scorer.probabilities(X))
    for ours, theirs in zip(again.score(X), scorer.score(X), strict=True):
        assert np.array_equal(ours, theirs)


def test_scoring_needs_no_scikit_learn():
    code = "import sys, skyfill.model, skyfill.scale; print('sklearn' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"classes": ["a"]}, {}),
        ({"classes": ["a", "a", "b"]}, {}),
        ({"members": []}, {}),
        ({"calibration": "magic"}, {}),
        ({"pool": "magic"}, {}),
        ({}, {"slopes": np.ones(2)}),
        ({}, {"prior": np.array([0.5, 0.5, 0.0])}),
        ({}, {"contrasts": np.ones((1, 3))}),
        ({}, {"contrasts": np.array([[0.0, 1.0, 99.0, 1.0]])}),
        ({}, {"rule.center": np.ones(2)}),
        ({}, {"rule.surprise": np.array([2.0, 1.0])}),
        ({}, {"forests.0.feature": np.zeros(3, np.int32)}),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(scorer, facts, arrays):
    with pytest.raises(ValueError):  # noqa: PT011 - a model file's reader names the file
        Scorer.from_arrays(scorer.facts() | facts, scorer.arrays() | arrays, scorer.network)


def test_trees_must_fit_their_view(scorer):
    facts = scorer.facts()
    facts["members"][0]["view"] = "filled"
    with pytest.raises(ValueError, match="do not fit the view 'filled'"):
        Scorer.from_arrays(facts, scorer.arrays(), scorer.network)


def test_of_an_object_of_which_nothing_was_seen_only_the_shares_are_known(scorer):
    nothing = np.full((2, 4), np.nan)
    assert np.array_equal(scorer.probabilities(nothing), [scorer.shares] * 2)
    shifted = replace(scorer, prior=np.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(shifted.probabilities(nothing), [[0.2, 0.3, 0.5]] * 2)


def test_entropy_is_in_bits():
    assert entropy_bits(np.array([[0.25] * 4, [1, 0, 0, 0]])).tolist() == [2.0, 0.0]


def test_the_share_of_the_gaps_lies_between_none_and_all(scorer):
    X, _ = stars(60, seed=4, rate=0.4)
    share = scorer.score(X, n_draws=16).gap_share
    full = ~np.isnan(X).any(axis=1)
    assert (share[full] == 0).all()
    assert ((share >= 0) & (share <= 1)).all()
    nothing = scorer.score(np.full((1, 4), np.nan), n_draws=64).gap_share[0]
    assert nothing > share[~full].mean()


def test_without_draws_the_share_of_the_gaps_is_unknown(scorer):
    X = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, np.nan, 0.0, 0.0]])
    assert np.isnan(scorer.score(X, n_draws=0).gap_share).tolist() == [False, True]


def test_objects_unlike_the_training_set_are_flagged_and_others_are_not(judge):
    X, _ = stars(2000, seed=6, rate=0.3)
    found = judge.score(X, n_draws=0)
    assert found.outlier.mean() < 0.01
    strange = X[:200].copy()
    strange[:, 0], strange[:, 1] = 6.0, 6.0
    assert judge.score(strange, n_draws=0).outlier.mean() > 0.9


def test_ordinary_objects_are_equally_rarely_flagged_whatever_is_seen_of_them(judge):
    for rate in (0.0, 0.5, 0.75):
        X, _ = stars(3000, seed=8, rate=rate)
        share = 10.0 ** -judge.score(X, n_draws=0).outlier_score
        assert 0.05 < (share < 0.1).mean() < 0.2


def test_the_more_unlikely_the_higher_the_score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    rule = fit_outlier_rule(X, Plan(1, 5.0), rng)
    network = learn_mixture(X, n_components=1, n_fits=1).network
    far = np.column_stack([np.linspace(0.5, 6, 30), np.zeros(30)])
    scores = rule.score(network.look(far).seen, far)
    assert (np.diff(scores) >= 0).all()
    assert (np.diff(scores)[:12] > 0).all()
    # One in a thousand of a two-dimensional normal lies beyond a radius of 3.72.
    radius = far[rule.flag(scores)][0, 0]
    assert 2.9 < radius < 4.3


def test_a_catalog_without_a_column_makes_its_gaps_uninformative():
    X, y = stars(400, rate=0.0)
    rng = np.random.default_rng(0)
    X[(y == "QSO") & (rng.random(400) < 0.9), 3] = np.nan
    imputer = NetworkImputer(
        3, n_fits=1, refine=None, gaps="informative", shrinkage=5.0, max_iter=500
    )
    scorer = quick("forest").set_params(imputer=imputer).fit(X, y).scorer_
    row = np.array([[0.0, 0.0, 0.0, np.nan]])
    told, untold = (s.network.responsibilities(row) for s in (scorer, scorer.without([3])))
    assert not np.allclose(told, untold)
    ignorable = replace(
        scorer.network, fits=tuple(f._replace(gap_rates=None) for f in scorer.network.fits)
    )
    rates = [np.log1p(-f.gap_rates[:, :3]).sum(axis=1) for f in scorer.network.fits]
    weights = ignorable.responsibilities(row) * np.exp(rates[0])
    np.testing.assert_allclose(untold, weights / weights.sum(), rtol=1e-9)


@given(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3))
def test_shifting_a_prior_and_back_changes_nothing(weights):
    new = np.array(weights) / sum(weights)
    old = np.array([0.2, 0.3, 0.5])
    P = np.array([[0.1, 0.2, 0.7], [0.98, 0.01, 0.01]])
    np.testing.assert_allclose(shift_prior(shift_prior(P, old, new), new, old), P)


def test_an_estimated_prior_is_right_for_exact_posteriors():
    rng = np.random.default_rng(1)
    truth = np.array([0.05, 0.95])
    kind = rng.random(20_000) < truth[1]
    x = rng.normal(1.5 * kind, 1.0)
    odds = np.exp(1.5 * x - 1.5**2 / 2)
    P = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    assert estimate_prior(P, np.array([0.5, 0.5])) == pytest.approx(truth, abs=0.01)


def test_shares_by_profiles_as_on_paper():
    """Of two classes with profiles (a, 1 - a) and (b, 1 - b), the first has (m - b) / (a - b)."""
    profiles = Profiles(np.array([[0.8, 0.2], [0.3, 0.7]]), np.full((2, 2), 1e-4))
    P = np.repeat([[0.6, 0.4], [0.2, 0.8]], 5000, axis=0)
    found = match_profiles(P, profiles)
    assert found.shares == pytest.approx([0.2, 0.8], abs=2e-3)
    assert found.low[0] < 0.2 < found.high[0]
    assert found.misfit < 1e-6


@given(seed=st.integers(0, 200), share=st.floats(0.02, 0.98))
@settings(max_examples=20)
def test_shares_by_profiles_hold_the_true_ones_within_three_of_their_intervals(seed, share):
    rng = np.random.default_rng(seed)

    def rows(kind):
        odds = np.exp(1.5 * rng.normal(1.5 * kind, 1.0) - 1.5**2 / 2)
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])

    y = np.repeat([0, 1], 200)
    profiles = find_profiles(rows(y), y)
    found = match_profiles(rows(rng.random(4000) < share), profiles)
    assert abs(found.shares[1] - share) < 3 * (found.high[1] - found.low[1])
    assert found.shares.sum() == pytest.approx(1)


def test_rows_that_no_mixture_explains_are_a_misfit_and_widen_the_intervals():
    profiles = Profiles(0.7 * np.eye(3) + 0.1, np.full((3, 3), 0.01))
    inside = match_profiles(np.full((1000, 3), [0.4, 0.4, 0.2]), profiles)
    outside = match_profiles(np.full((1000, 3), [0.98, 0.01, 0.01]), profiles)
    assert inside.misfit < 1 < NOTABLE_MISFIT < outside.misfit
    assert outside.high[1] > 0.01
    assert (outside.shares > 0).all()


def test_rows_with_unknown_gaps_do_not_count_for_the_shares_if_there_are_enough_others():
    profiles = Profiles(np.array([[0.8, 0.2], [0.3, 0.7]]), np.full((2, 2), 1e-4))
    P = np.repeat([[0.4, 0.6], [0.8, 0.2]], [200, 800], axis=0)
    old, known = np.array([0.5, 0.5]), np.arange(1000) < 200
    found = estimate_shares(P, old, profiles, known)
    assert found.shares == pytest.approx([0.2, 0.8], abs=2e-3)
    assert found.used == 0.2
    few = estimate_shares(P, old, profiles, np.arange(1000) < 99)
    np.testing.assert_array_equal(few.shares, estimate_shares(P, old, profiles).shares)
    assert few.used == 1


def test_a_class_with_one_object_has_no_profile_and_shares_come_by_em():
    assert find_profiles(np.full((3, 2), 0.5), np.array([0, 0, 1])) is None
    P = np.repeat([[0.95, 0.05], [0.05, 0.95]], [90, 10], axis=0)
    found = estimate_shares(P, np.array([0.5, 0.5]), None)
    np.testing.assert_array_equal(found.shares, estimate_prior(P, np.array([0.5, 0.5])))
    assert np.isnan(found.low).all()


@given(seed=st.integers(0, 50), slope=st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=6)
def test_calibration_undoes_a_known_distortion(seed, slope):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([1.0, 1.0, 1.0], size=4000)
    y = (rng.random((4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    bent = truth**slope / (truth**slope).sum(axis=1, keepdims=True)
    found = fit_calibration(bent, y, np.ones(4000), rng)[0]
    assert np.abs(found(bent) - truth).mean() < 0.02


def test_a_calibration_of_slope_one_without_bias_is_the_identity():
    P = np.array([[0.2, 0.8], [0.5, 0.5]])
    same = Calibration("vector", np.ones(2), np.zeros(2))
    np.testing.assert_allclose(same(P), P)
    against = Calibration("odds", np.array([0.0, 1.0]), np.zeros(2))
    np.testing.assert_allclose(against(P), P)


def test_classes_are_moved_against_one_another_only_for_a_clear_gain():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([3.0, 1.0, 0.2], size=3000)
    y = (rng.random((3000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    assert fit_calibration(truth, y, np.ones(3000), rng)[0].kind == "temperature"
    moved = truth * [1.0, 1.0, 5.0]
    moved /= moved.sum(axis=1, keepdims=True)
    found = fit_calibration(moved, y, np.ones(3000), rng)[0]
    assert found.kind != "temperature"
    assert np.abs(found(moved) - truth).mean() < 0.02 < np.abs(moved - truth).mean()


@given(seed=st.integers(0, 1000), times=st.integers(2, 6), bend=st.sampled_from([1.0, 1.3, 3.0]))
@settings(max_examples=10)
def test_the_same_objects_several_times_are_no_more_evidence(seed, times, bend):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([3.0, 1.0, 0.3], size=300)
    y = (rng.random((300, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    moved = truth * [1.0, 1.0, bend] / (truth @ [1.0, 1.0, bend])[:, None]
    once = fit_calibration(moved, y, np.ones(300), np.random.default_rng(seed))[0]
    # The first is worth a half, the others together as much.
    weights = np.repeat([0.5, 0.5 / (times - 1)], [300, 300 * (times - 1)])
    rows = np.tile(np.arange(300), times)
    again = fit_calibration(moved[rows], y[rows], weights, np.random.default_rng(seed), 300)[0]
    assert again.kind == once.kind
    np.testing.assert_allclose(again(moved), once(moved), atol=1e-3)
    others = np.full((300, 3), 1 / 3)
    judges = (y[rows], weights, rows % 5)
    assert is_clearly_better(moved, others, y, np.ones(300), np.arange(300) % 5, 300)
    assert is_clearly_better(moved[rows], others[rows], *judges, 300)
    assert not is_clearly_better(moved[rows], moved[rows], *judges, 300)


def test_odds_of_a_rare_class_keep_their_own_slope():
    """Two classes are half as sure as they say; a third is twice as sure against the first."""
    rng = np.random.default_rng(5)
    odds = rng.normal([0.0, -2.0, -4.0], [0.0, 3.0, 3.0], size=(20_000, 3))
    y = (rng.random((20_000, 1)) > softmax(odds * [1, 0.5, 2], axis=1).cumsum(axis=1)).sum(axis=1)
    found = fit_calibration(softmax(odds, axis=1), y, np.ones(len(y)), rng)[0]
    assert found.kind == "odds"
    assert found.slopes == pytest.approx([0.0, 0.5, 2.0], abs=0.15)
    assert found.bias == pytest.approx(np.zeros(3), abs=0.15)


def test_a_hundred_objects_move_the_slope_of_their_class():
    """A rare class is twice as sure as it says; a class that is often confused is not."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        odds = rng.normal([0.0, -2.0, -6.0], [0.0, 2.0, 4.0], size=(2000, 3))
        P = softmax(odds * [1, 1, 2], axis=1)
        y = (rng.random((2000, 1)) > P.cumsum(axis=1)).sum(axis=1)
        found.append(fit_odds(softmax(odds, axis=1), y, np.ones(2000)))
        assert fit_odds(softmax(odds, axis=1), y, np.ones(2000), 1).slopes.argmin() == 1
    assert np.mean([each.slopes for each in found], axis=0) == pytest.approx([0, 1, 2], abs=0.2)
    assert np.mean([each.bias for each in found], axis=0) == pytest.approx(np.zeros(3), abs=0.1)


def test_contrasts_of_extreme_values_are_no_warning():
    facts = Facts(np.full((1, 2), 1e300), np.full((1, 2), 1e300))
    view = VIEWS["contrasts"](facts, np.array([[0.0, 1e200, 1.0, -1e200]]))
    assert view.shape == (1, 5)
    assert np.isnan(view[0, 4])


def test_values_beyond_the_range_seen_count_as_the_tail_of_a_normal():
    margins = [Margin(np.linspace(-3, 3, 61), np.linspace(-3, 3, 61))] * 2
    one, both, inside = range_score(margins, np.array([[4.0, 0.0], [4.0, -4.0], [3.0, -3.0]]))
    assert one == pytest.approx(-np.log10(2 * 2 * norm.sf(4)), rel=1e-9)  # two values were tried
    assert both == pytest.approx(-np.log10(2 * norm.sf(4)), rel=1e-9)
    assert inside == 0
    assert range_score(margins, np.array([[4.0, np.nan]]))[0] == pytest.approx(both, rel=1e-9)


def test_values_in_other_units_and_sentinels_are_outliers(judge):
    X, _ = stars(200, seed=5)
    seen = ~np.isnan(X).all(axis=1)
    assert judge.score(1000 * X, n_draws=0).outlier[seen].all()
    X[:, 0] = -99.99
    assert judge.score(X, n_draws=0).outlier.all()
