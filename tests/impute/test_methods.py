"""Each baseline by itself: truths on paper and agreement with the algorithm it stands for."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.impute import KNNImputer
from sklearn.preprocessing import StandardScaler

from skyfill.errors import DataError
from skyfill.impute import ForestImputer, GaussianMixtureImputer, MeanImputer, NeighborsImputer
from skyfill.network.single.univariate import UnivariateMixture

NAN = np.nan
CLUMPS = UnivariateMixture(np.array([0.25, 0.75]), np.array([0.0, 4.0]), np.array([1.0, 0.5]))


def test_mean_and_sd_of_a_mixture_by_hand():
    assert CLUMPS.mean == 3.0
    # Within: 0.25 * 1 + 0.75 * 0.25; between: 0.25 * 9 + 0.75 * 1.
    assert CLUMPS.sd == pytest.approx(np.sqrt(0.4375 + 3.0))


@pytest.mark.parametrize("level", [0.01, 0.2, 0.25, 0.5, 0.9, 0.999])
def test_a_quantile_of_a_mixture_has_its_level_below_it(level):
    assert CLUMPS.cdf(CLUMPS.quantile(level)) == pytest.approx(level, abs=1e-10)


def test_the_density_of_a_mixture_is_the_weighted_sum():
    x = np.array([-1.0, 0.3, 4.2])
    truth = 0.25 * norm.pdf(x) + 0.75 * norm(4, 0.5).pdf(x)
    np.testing.assert_allclose(CLUMPS.logpdf(x), np.log(truth))


def test_draws_of_a_mixture_have_its_moments():
    drawn = CLUMPS.draw((40_000,), np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(3.0, abs=0.04)
    assert drawn.std() == pytest.approx(CLUMPS.sd, abs=0.03)


def test_one_gaussian_has_the_quantiles_of_a_gaussian():
    one = UnivariateMixture(np.ones(1), np.array([5.0]), np.array([2.0]))
    assert one.quantile(0.9) == pytest.approx(norm(5, 2).ppf(0.9))


@pytest.fixture(scope="module")
def clumped():
    rng = np.random.default_rng(0)
    return np.column_stack([CLUMPS.draw((4000,), rng), rng.normal(100, 10, 4000)])


@pytest.fixture(scope="module")
def mixtures(clumped):
    return GaussianMixtureImputer(random_state=0).fit(clumped)


def test_mission_8_bic_finds_the_components(mixtures):
    assert [len(mixture.weights) for mixture in mixtures.mixtures_] == [2, 1]
    order = np.argsort(mixtures.mixtures_[0].means)
    np.testing.assert_allclose(mixtures.mixtures_[0].means[order], [0, 4], atol=0.15)
    np.testing.assert_allclose(mixtures.mixtures_[0].weights[order], [0.25, 0.75], atol=0.03)


def test_a_gap_gets_the_margin_and_a_seen_cell_no_spread(mixtures, clumped):
    mean, sd = mixtures.posterior([[NAN, 90.0], [1.0, NAN]])
    assert mean[0, 0] == pytest.approx(clumped[:, 0].mean(), abs=1e-6)
    assert sd[0, 0] == pytest.approx(clumped[:, 0].std(), rel=1e-3)
    assert (mean[0, 1], sd[0, 1], sd[1, 0]) == (90.0, 0.0, 0.0)
    np.testing.assert_array_equal(mean, mixtures.transform([[NAN, 90.0], [1.0, NAN]]))


def test_intervals_and_draws_cover_the_data(mixtures, clumped):
    rows = np.array([[NAN, 90.0]])
    for level in (0.5, 0.9):
        low, high = mixtures.interval(rows, level)
        inside = (low[0, 0] <= clumped[:, 0]) & (clumped[:, 0] <= high[0, 0])
        assert inside.mean() == pytest.approx(level, abs=0.02)
        assert low[0, 1] == high[0, 1] == 90.0
    draws = mixtures.sample(rows, 5000, random_state=1)
    assert draws.shape == (5000, 1, 2)
    assert (draws[:, 0, 1] == 90.0).all()
    # Inside the clumps: between them, at 0.25, a quantile hangs on a few rows.
    drawn = np.quantile(draws[:, 0, 0], [0.1, 0.5, 0.75])
    np.testing.assert_allclose(drawn, np.quantile(clumped[:, 0], [0.1, 0.5, 0.75]), atol=0.25)


def test_the_log_density_is_given_for_gaps_only(mixtures):
    found = mixtures.logpdf([[4.0, 90.0]], [[NAN, 90.0]])
    truth = np.log(0.25 * norm.pdf(4) + 0.75 * norm(4, 0.5).pdf(4))
    assert found[0, 0] == pytest.approx(truth, abs=0.1)
    assert np.isnan(found[0, 1])


def test_samples_differ_by_row_and_follow_the_seed(clumped):
    rows = np.full((50, 2), NAN)
    one, two = (
        GaussianMixtureImputer("sample", random_state=seed).fit(clumped).transform(rows)
        for seed in (1, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert np.unique(one[:, 0]).size == 50


def test_an_unknown_strategy_is_refused():
    with pytest.raises(DataError, match="strategy must be one of"):
        GaussianMixtureImputer("median").fit([[1.0], [2.0]])


def correlated(n=300, seed=0, rate=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) * [1, 100, 0.01] + rng.normal(size=(n, 3)) * [0.3, 30, 0.003]
    gaps = np.where(rng.random(X.shape) < rate, NAN, X)
    return X, gaps


def test_mission_8_neighbors_are_those_of_scikit_learn_on_standard_columns():
    _, X = correlated()
    scaler = StandardScaler().fit(X)
    search = KNNImputer(n_neighbors=7, weights="distance").fit(scaler.transform(X))
    truth = scaler.inverse_transform(search.transform(scaler.transform(X[:50])))
    np.testing.assert_allclose(NeighborsImputer(7).fit(X).transform(X[:50]), truth, rtol=1e-9)


def test_a_weighted_mean_of_two_neighbors_by_hand():
    imputer = NeighborsImputer(2).fit([[0.0, 10.0], [3.0, 40.0], [100.0, 0.0]])
    # Distances 1 and 2, weights 1 and 1/2.
    assert imputer.transform([[1.0, NAN]])[0, 1] == pytest.approx((10 + 40 / 2) / 1.5)


@pytest.fixture(scope="module")
def curve():
    """A parabola: no linear method sees it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 600)
    X = np.column_stack([x, x**2, rng.normal(size=600)])
    gaps = np.where(rng.random(X.shape) < 0.1, NAN, X)
    return X, gaps


def test_mission_8_forests_trained_once_fill_new_rows(curve):
    X, gaps = curve
    gaps[:, 0] = X[:, 0]  # the parabola does not tell the sign of a lost x
    imputer = ForestImputer(50, max_features=1.0, random_state=0).fit(gaps[:400])
    new = X[400:].copy()
    new[:, 1] = NAN
    error = imputer.transform(new)[:, 1] - X[400:, 1]
    assert np.sqrt((error**2).mean()) < 0.25 * X[:, 1].std()
    assert list(imputer.forests_) == np.argsort(np.isnan(gaps[:400]).sum(0), kind="stable").tolist()


def test_rounds_stop_when_the_change_grows(curve, monkeypatch):
    _, gaps = curve
    changes = iter([5.0, 3.0, 4.0, 0.0])
    monkeypatch.setattr("skyfill.impute.missforest._change", lambda *_: next(changes))
    assert ForestImputer(5, random_state=0).fit(gaps).n_iter_ == 2


def test_rounds_end_at_max_iter(curve):
    assert ForestImputer(5, max_iter=1, random_state=0).fit(curve[1]).n_iter_ == 1


def test_a_forest_without_other_columns_gives_the_mean():
    X = np.array([[1.0], [2.0], [6.0]])
    assert ForestImputer(5).fit(X).transform([[NAN]])[0, 0] == pytest.approx(3.0)


def test_better_methods_have_smaller_errors():
    X, gaps = correlated(n=600)
    rows = slice(300, 600)
    lost = np.isnan(gaps[rows])
    errors = []
    for imputer in (ForestImputer(30, random_state=0), NeighborsImputer(), MeanImputer()):
        filled = imputer.fit(gaps[:300]).transform(gaps[rows])
        errors.append((((filled - X[rows]) / X.std(axis=0))[lost] ** 2).mean())
    assert max(errors[:2]) < 0.5 * errors[2]
