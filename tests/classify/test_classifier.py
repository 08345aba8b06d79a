"""The classifier: scikit-learn's contract, laws, and what it does with bad input."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from skyfill.classify import CatalogClassifier
from skyfill.classify.views import VIEWS, Facts, choose_contrasts
from skyfill.errors import DataError, EmptyColumnWarning
from skyfill.impute import NetworkImputer

QUICK = {"n_trees": 10, "n_rounds": 5, "n_folds": 2, "random_state": 0}


def quick(method="forest", **options):
    imputer = NetworkImputer(2, n_fits=1, refine=None, shrinkage=5.0, max_iter=500)
    return CatalogClassifier(method, imputer=imputer, **{**QUICK, **options})


# All rows are equal to the imputer.
UNWEIGHTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "weights count for the classes alone"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [quick("both", n_rounds=1, n_trees=2)], expected_failed_checks=lambda _: UNWEIGHTED
)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


def stars(n=300, seed=0, rate=0.2, classes=("LPV", "QSO", "RRL")):
    rng = np.random.default_rng(seed)
    codes = rng.integers(len(classes), size=n)
    X = rng.normal(size=(n, 4)) + 1.5 * codes[:, None] * np.array([1, -1, 0.5, 0])
    X[rng.random(X.shape) < rate] = np.nan
    return X, np.array(classes)[codes]


@pytest.fixture(scope="module")
def fitted():
    return quick("both").fit(*stars())


def test_it_classifies_rows_with_gaps_better_than_chance_and_certain_rows_with_certainty(fitted):
    X, y = stars(seed=1)
    assert (fitted.predict(X) == y).mean() > 0.7
    row = [[5.0, -5.0, 2.5, np.nan]]
    assert fitted.predict(row) == ["RRL"]
    assert fitted.predict_proba(row)[0, 2] > 0.9


@given(seed=st.integers(0, 1000), rate=st.floats(0.0, 1.0))
@settings(max_examples=20)
def test_probabilities_are_probabilities_whatever_is_missing(fitted, seed, rate):
    P = fitted.predict_proba(stars(20, seed, rate)[0])
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_a_row_is_classified_alone_as_among_others(fitted):
    X, _ = stars(20, seed=2)
    alone = np.vstack([fitted.predict_proba(row[None]) for row in X])
    np.testing.assert_allclose(alone, fitted.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("method", ["both", "forest", "boosting", "paper"])
def test_the_same_seed_gives_the_same_probabilities(method):
    X, y = stars(100)
    first, second = (quick(method).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(first, second)


def test_the_papers_method_is_a_plain_forest_on_filled_values():
    from sklearn.ensemble import RandomForestClassifier

    X, y = stars()
    new, _ = stars(50, seed=3)
    ours = quick("paper", n_trees=60).fit(X, y)
    filled = [ours.imputer_.transform(table) for table in (X, new)]
    assert [view for view, _ in ours.scorer_.forests] == ["filled"]
    assert ours.scorer_.calibration.kind == "none"
    plain = RandomForestClassifier(60, random_state=0).fit(filled[0], y)
    # Unpruned trees have pure leaves: every probability is a share of 60 votes.
    P = ours.predict_proba(new)
    np.testing.assert_allclose(P * 60, np.round(P * 60), atol=1e-4)
    assert (plain.predict(filled[1]) == ours.predict(new)).mean() > 0.9


@pytest.mark.parametrize("view", list(VIEWS))
def test_every_view_can_be_asked_for(view):
    X, y = stars(120)
    found = quick("both", views=[view]).fit(X, y)
    assert {name for name, _ in found.scorer_.forests} == {view}
    assert (found.predict(X) == y).mean() > 0.6


def test_contrasts_are_differences_of_what_rises_together():
    V = np.linspace(0.0, 1.0, 50)
    noise = np.random.default_rng(0).normal(size=50)
    table = np.column_stack([V, 2 * V + 0.01 * noise, -V + 0.02 * noise, np.full(50, 3.0)])
    pairs = choose_contrasts(table)
    assert sorted((int(a), int(b)) for a, b in pairs[:, [0, 2]]) == [(0, 1), (0, 2), (1, 2)]
    seen = VIEWS["contrasts"](Facts(table, table), pairs)[:, 8:]
    assert (seen.std(axis=0) < 0.15).all()


def test_differences_of_columns_with_a_common_scale_are_those_of_measured_values():
    """B and V differ by a color; a period has nothing to do with either."""
    rng = np.random.default_rng(0)
    V = rng.normal(18.0, 1.0, 100)
    filled = np.column_stack([V + rng.normal(0.5, 0.1, 100), V, rng.normal(0.0, 9.0, 100)])
    X = np.where(np.arange(100)[:, None] == [[7, 8, 9]], np.nan, filled)
    seen = VIEWS["differences"](Facts(X, filled), choose_contrasts(filled))
    np.testing.assert_array_equal(seen, np.column_stack([X, X[:, 0] - X[:, 1]]))
    assert np.isnan(seen[7:9, 3]).all()


def test_rows_without_a_label_help_the_imputer_only():
    X, y = stars(200)
    marked = y.astype(object)
    marked[100:] = [None, float("nan"), "", None] * 25
    some = quick().fit(X, marked)
    assert some.classes_.tolist() == ["LPV", "QSO", "RRL"]
    assert len(some.out_of_fold_) == 100
    alone = NetworkImputer(2, n_fits=1, refine=None, shrinkage=5.0, max_iter=500)
    alone.set_params(random_state=some.imputer_.random_state).fit(X)
    assert np.array_equal(alone.transform(X), some.imputer_.transform(X))


def test_numbers_as_labels_may_be_missing_too():
    X, y = stars(60, classes=(1.0, 2.0))
    y[::3] = np.nan
    assert quick().fit(X, y).classes_.tolist() == [1.0, 2.0]


def test_one_class_or_none_is_refused():
    X, _ = stars(30)
    with pytest.raises(DataError, match="all labels are of one class, RRL"):
        quick().fit(X, ["RRL"] * 30)
    with pytest.raises(DataError, match="no row has a class label"):
        quick().fit(X, [None] * 30)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("method", ["both", "paper"])
def test_a_class_with_few_objects_is_learned(method, count):
    X, y = stars(120, classes=("LPV", "RRL"))
    y = y.astype("<U9")
    X[:count], y[:count] = 30.0 + np.arange(count)[:, None], "SUPERNOVA"
    found = quick(method, n_folds=5).fit(X, y)
    assert found.classes_.tolist() == ["LPV", "RRL", "SUPERNOVA"]
    P = found.predict_proba([[30.0, 30.0, np.nan, 30.0]])[0]
    usual = found.predict_proba(X[count:])[:, 2]
    assert P[2] > usual.max()
    out = found.out_of_fold_
    if method == "both":
        assert np.isnan(out).all(axis=1).sum() == (count == 1)


def test_calibrated_probabilities_match_frequencies():
    X, y = stars(1500)
    new, truth = stars(3000, seed=5)
    found = quick("forest", n_trees=50, n_folds=5).fit(X, y)
    P = found.predict_proba(new)
    best, hit = P.max(axis=1), found.predict(new) == truth
    for low in (0.4, 0.6, 0.8, 0.9):
        inside = (best >= low) & (best < low + 0.2)
        assert abs(best[inside].mean() - hit[inside].mean()) < 0.06


def test_a_given_prior_multiplies_the_odds():
    X, y = stars(200, classes=("QSO", "RRL"))
    plain = quick().fit(X, y)
    share = (y == "QSO").mean()
    shifted = quick(prior={"QSO": 0.01, "RRL": 0.99}).fit(X, y)
    P, Q = plain.predict_proba(X), shifted.predict_proba(X)
    inside = (P > 1e-3).all(axis=1)
    ratio = (Q[:, 0] / Q[:, 1])[inside] / (P[:, 0] / P[:, 1])[inside]
    np.testing.assert_allclose(ratio, 0.01 / 0.99 / (share / (1 - share)))


def test_an_estimated_prior_finds_the_shares_of_the_field():
    X, y = stars(600, classes=("QSO", "RRL"), rate=0.1)
    new, truth = stars(1500, seed=7, classes=("QSO", "RRL"), rate=0.1)
    keep = (truth == "RRL") | (np.arange(1500) % 10 == 0)
    found = quick(prior="estimate", n_trees=50, n_folds=5).fit(X, y)
    assert found.predict_proba(new[keep])[:, 0].mean() == pytest.approx(
        (truth[keep] == "QSO").mean(), abs=0.03
    )


def test_class_weights_favor_rare_classes():
    X, y = stars(400, classes=("QSO", "RRL"))
    keep = (y == "RRL") | (np.arange(400) % 8 == 0)
    plain = quick().fit(X[keep], y[keep])
    for weight in ("balanced", {"QSO": 8.0}):
        weighed = quick(class_weight=weight).fit(X[keep], y[keep])
        assert (weighed.predict(X) == "QSO").sum() > (plain.predict(X) == "QSO").sum()
        assert weighed.scorer_.shares[0] > 2 * plain.scorer_.shares[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method must be one of both, forest, boosting, paper"),
        (
            {"views": ["magic"]},
            "no view 'magic'; they are raw, differences, filled, indicators, gaps, contrasts",
        ),
        ({"n_trees": 0}, "n_trees must be at least 1"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"prior": "guess"}, 'prior must be shares, "estimate", "field" or None'),
        ({"prior": {"LPV": 1.0}}, "no share for QSO, RRL; the classes are LPV, QSO, RRL"),
        ({"prior": [0.5, 0.5, -1]}, "give a positive share for each of LPV, QSO, RRL"),
        ({"class_weight": "heavy"}, "class_weight must be"),
    ],
)
def test_options_that_make_no_sense_are_named(options, message):
    with pytest.raises(DataError, match=message):
        quick().set_params(**options).fit(*stars(60))


def test_columns_unseen_or_absent_are_refused_by_the_estimator():
    X, y = stars(60)
    table = pa.table({name: X[:, j] for j, name in enumerate("JHKV")})
    found = quick().fit(table, y)
    for names in (["J", "H", "K"], ["J", "H", "K", "W"]):
        columns = {name: X[:, j] for j, name in enumerate(names)}
        with pytest.raises(ValueError, match="feature names"):
            found.predict(pa.table(columns))


def test_a_column_without_values_is_left_out_with_a_warning():
    X, y = stars(60)
    X[:, 2] = np.nan
    with pytest.warns(EmptyColumnWarning, match="column 'x2' has no value in 60 rows and is left"):
        found = quick().fit(X, y)
    new, _ = stars(20, seed=1)
    kept = [0, 1, 3]
    plain = quick().fit(X[:, kept], y)
    assert np.array_equal(found.predict_proba(new), plain.predict_proba(new[:, kept]))


def test_masked_labels_are_no_class_and_masked_cells_are_gaps():
    X, y = stars(90)
    lost = np.arange(90) % 4 == 0
    masked = np.ma.array(np.where(np.isnan(X), -999, X), mask=np.isnan(X))
    words = np.ma.array(np.where(lost, "N/A", y), mask=lost)
    found = quick().fit(masked, words)
    assert found.classes_.tolist() == ["LPV", "QSO", "RRL"]
    plain = quick().fit(X, np.where(lost, None, y))
    assert np.array_equal(found.predict_proba(masked), plain.predict_proba(X))


@pytest.mark.parametrize("method", ["forest", "both"])
@pytest.mark.parametrize(("scale", "offset"), [(1e43, 0.0), (1.0, 1e9), (1e-46, 0.0), (1e-3, -1e6)])
def test_units_and_offsets_do_not_cost_accuracy(method, scale, offset):
    X, y = stars(300, rate=0.1)
    new, truth = stars(2000, seed=1, rate=0.1)
    plain = quick(method).fit(X, y).predict(new)
    moved = quick(method).fit(X * scale + offset, y).predict(new * scale + offset)
    assert (moved == truth).mean() > (plain == truth).mean() - 0.03
    assert (moved == plain).mean() > 0.85


def test_draws_marginalize_the_gaps_and_leave_complete_rows_alone(fitted):
    X, _ = stars(40, seed=9, rate=0.5)
    full = ~np.isnan(X).any(axis=1)
    plain = fitted.predict_proba(X)
    drawn = fitted.set_params(n_draws=30).predict_proba(X)
    fitted.set_params(n_draws=0)
    assert np.array_equal(plain[full], drawn[full])
    assert np.abs(plain - drawn)[~full].max() > 0
    assert np.abs(plain - drawn).mean() < 0.1


def test_weights_of_rows_are_those_of_their_classes_where_they_agree():
    X, y = stars(150)
    weights = np.where(y == "QSO", 4.0, 1.0)
    by_row = quick("forest").fit(X, y, weights).predict_proba(X)
    by_class = quick("forest", class_weight={"QSO": 4.0}).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(by_row, by_class, atol=1e-6)


def test_a_row_that_weighs_nothing_has_no_label():
    X, y = stars(150)
    weights = (np.arange(150) % 3 > 0).astype(float)
    words = np.where(weights > 0, y, None)
    weighed = quick("both").fit(X, y, weights).predict_proba(X)
    np.testing.assert_allclose(weighed, quick("both").fit(X, words).predict_proba(X), atol=1e-9)


def test_objects_are_never_on_both_sides_of_a_fold():
    X, y = stars(60, rate=0.0)
    X, y, groups = np.repeat(X, 3, axis=0), np.repeat(y, 3), np.repeat(np.arange(60), 3)
    leaking = quick("forest", n_trees=30).fit(X, y)
    honest = quick("forest", n_trees=30).fit(X, y, groups=groups)
    right = [
        (np.array(fitted.classes_)[fitted.out_of_fold_.argmax(axis=1)] == y).mean()
        for fitted in (leaking, honest)
    ]
    assert right[0] > right[1] + 0.05
