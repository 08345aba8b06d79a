"""Comparing imputers: the same cells for all, honest errors, tables and JSON."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from skyfill.errors import DataError
from skyfill.evaluate import (
    Comparison,
    Hidden,
    compare_imputers,
    covered,
    hide_blocks,
    hide_faint,
    score_cells,
)
from skyfill.impute import (
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
)
from skyfill.network import GaussianNetwork

NETWORK = GaussianNetwork(
    ["a", "b", "c"], [[], [0], [1]], [10.0, 1.0, -2.0], [[], [1.5], [-0.5]], [4.0, 1.0, 0.25]
)


def complete(n=400, seed=0):
    rng = np.random.default_rng(seed)
    joint = NETWORK.joint()
    return rng.multivariate_normal(joint.mean, joint.cov, n)


class TrueNetwork(BaseEstimator):
    """The network that the data come from: no method can be better or more honest."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.posterior(X).mean

    def posterior(self, X):
        return NETWORK.posterior(X)


class Recorder(MeanImputer):
    """A mean imputer that remembers what it was given."""

    seen: list = []

    def _fit(self, X):
        super()._fit(X)
        Recorder.seen.append(X)

    def _fill(self, X):
        Recorder.seen.append(X)
        return super()._fill(X)


METHODS = {"mean": MeanImputer, "knn": NeighborsImputer, "truth": TrueNetwork}


@pytest.fixture(scope="module")
def found():
    return compare_imputers(complete(2000), METHODS, rates=[0.1, 0.3], repeats=3, rng=1)


def test_the_truth_wins_and_the_mean_has_an_nrmse_of_one(found):
    for rate in (0.1, 0.3):
        mean, knn, truth = (found.mean("nrmse", name, rate).value for name in METHODS)
        assert truth < knn < mean
        assert mean == pytest.approx(1.0, abs=0.06)


def test_the_truth_is_calibrated(found):
    for level in (50, 68, 90):
        share = found.mean(f"coverage_{level}", "truth", 0.3).value
        assert share == pytest.approx(level / 100, abs=0.03)
    counts = np.sum([run.pit for run in found.scores if run.method == "truth"], axis=0)
    expected = counts.sum() / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-squared, 19 dof, 0.1 %


def test_a_point_has_an_mae_and_the_crps_is_the_same(found):
    for run in found.runs("knn", 0.1):
        assert run.crps == pytest.approx(run.mae)
        assert np.isnan(run.coverage_90)
        assert np.isnan(run.log_score)
        assert run.pit == ()


def test_standard_errors_are_over_repeats(found):
    values = [run.nrmse for run in found.runs("knn", 0.1)]
    mean = found.mean("nrmse", "knn", 0.1)
    assert mean.value == pytest.approx(np.mean(values))
    assert mean.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))


def test_all_methods_see_the_same_cells_alone_or_together():
    Recorder.seen = []
    X = complete(100)
    options = {"rates": [0.2], "repeats": 2, "rng": 3}
    together = compare_imputers(X, {"one": Recorder, "two": Recorder}, **options)
    alone = compare_imputers(X, {"two": Recorder}, **options)
    seen = Recorder.seen
    assert len(seen) == 12
    for k in (0, 1, 4, 5):
        np.testing.assert_array_equal(seen[k], seen[k + 2])
    for a, b in zip((2, 3, 6, 7), range(8, 12), strict=True):
        np.testing.assert_array_equal(seen[a], seen[b])
    assert [r.nrmse for r in together.scores[1::2]] == [r.nrmse for r in alone.scores]


def test_train_and_test_rows_are_apart_and_both_have_gaps():
    Recorder.seen = []
    X = np.arange(300.0).reshape(100, 3)
    compare_imputers(X, {"one": Recorder}, rates=[0.3], repeats=1, train_fraction=0.7)
    train, test = Recorder.seen
    assert (len(train), len(test)) == (70, 30)
    assert not set(train[~np.isnan(train)]) & set(test[~np.isnan(test)])
    assert np.isnan(train).mean() == pytest.approx(0.3, abs=0.1)
    assert np.isnan(test).mean() == pytest.approx(0.3, abs=0.15)


def test_in_sample_a_method_learns_from_the_very_table_that_it_fills():
    Recorder.seen = []
    X = complete(100)
    how = {"rates": [0.1, 0.3], "repeats": 2, "train_fraction": None}
    found = compare_imputers(X, {"one": Recorder}, **how)
    assert all(run.in_sample for run in found.scores)
    assert len(Recorder.seen) == 8
    for learned, filled in zip(Recorder.seen[::2], Recorder.seen[1::2], strict=True):
        np.testing.assert_array_equal(learned, filled)
        assert learned.shape == X.shape
        np.testing.assert_array_equal(learned[~np.isnan(learned)], X[~np.isnan(learned)])
    assert found.table().startswith("| nrmse, in sample | 10 % | 30 % |")
    assert Comparison.from_json(found.to_json()).table() == found.table()


def test_a_nearest_neighbor_of_few_rows_looks_better_in_sample():
    """Twins: each row is there twice, so that in sample the other one has the hidden value."""
    X = np.repeat(complete(60), 2, axis=0)
    methods = {"knn": lambda: NeighborsImputer(1)}
    how = {"rates": [0.2], "repeats": 3}
    inside, outside = (
        compare_imputers(X, methods, **how, train_fraction=part).mean("nrmse", "knn", 0.2).value
        for part in (None, 0.5)
    )
    assert inside < 0.8 * outside


def test_gaps_of_the_table_itself_are_never_scored():
    X = complete(500)
    X[:, 1] = np.where(np.arange(500) % 2, X[:, 1], np.nan)
    found = compare_imputers(X, {"truth": TrueNetwork}, rates=[0.2], repeats=2)
    assert np.isfinite([run.nrmse for run in found.scores]).all()


def test_blocks_and_names_of_a_table():
    table = pa.table(dict(zip("abc", complete(200).T, strict=True)))
    mask = partial(hide_blocks, groups=[[0, 1], [2]])
    found = compare_imputers(table, {"mean": MeanImputer}, rates=[0.3], mask=mask, repeats=1)
    assert list(found.scores[0].by_feature["nrmse"]) == ["a", "b", "c"]


def test_the_table_has_the_best_in_bold(found):
    lines = found.table("nrmse").splitlines()
    assert lines[0] == "| nrmse | 10 % | 30 % |"
    assert [line.count("**") for line in lines[2:]] == [0, 0, 4]
    assert lines[2].startswith("| mean | ")
    assert "±" in lines[2]


def test_a_coverage_is_best_near_its_level():
    methods = {"truth": TrueNetwork, "mixture": lambda: GaussianMixtureImputer(max_components=1)}
    lines = compare_imputers(complete(600), methods, rates=[0.2], repeats=2).table("coverage_90")
    assert lines.count("**") == 2


def test_methods_without_a_score_get_a_dash(found):
    assert found.table("log_score").splitlines()[2] == "| mean | – | – |"


def test_rows_and_json_hold_every_run(found):
    rows = found.to_rows()
    assert len(rows) == 2 * 3 * 3
    assert {"method", "rate", "repeat", "nrmse", "crps", "coverage_90"} <= set(rows[0])
    read = json.loads(found.to_json())
    assert read["runs"][0]["method"] == "mean"
    assert read["runs"][0]["log_score"] is None
    assert read["means"][0]["nrmse"]["value"] == pytest.approx(rows[0]["nrmse"], abs=0.1)
    assert len(read["runs"][0]["example"]["true"]) == len(read["runs"][0]["example"]["filled"])


def test_quantiles_and_gaussians_of_one_method_score_alike():
    X = complete(3000)
    imputer = GaussianMixtureImputer(max_components=1, random_state=0).fit(X)
    mask = np.random.default_rng(0).random(X.shape) < 0.2
    hidden = Hidden(np.where(mask, np.nan, X), mask)
    quantile = score_cells(imputer, hidden, true=X)
    gaussian = score_cells(OnlyPosterior(imputer), hidden, true=X)
    np.testing.assert_allclose(quantile.crps.mean(), gaussian.crps.mean(), rtol=2e-3)
    np.testing.assert_allclose(quantile.log_score, gaussian.log_score, rtol=1e-6)
    for level in (0.5, 0.68, 0.9):
        a, b = (covered(scores.pit, level) for scores in (quantile, gaussian))
        assert a.mean() == pytest.approx(b.mean(), abs=0.01)


class OnlyPosterior:
    def __init__(self, imputer):
        self.posterior = imputer.posterior


def test_intervals_between_draws_cover_what_they_say():
    rng = np.random.default_rng(0)
    X = np.full((20_000, 2), np.nan)
    true = rng.normal(size=X.shape)
    imputer = Draws()
    pit = score_cells(imputer, Hidden(X, np.isnan(X)), true=true, rng=rng).pit
    for level in (0.5, 0.68, 0.9):
        assert covered(pit, level).mean() == pytest.approx(level, abs=0.01)


class Draws:
    def sample(self, X, n_draws, random_state=None):
        return np.random.default_rng(7).normal(size=(n_draws, *X.shape))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": {}}, "no methods"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"train_fraction": 1.0}, "train_fraction must lie between"),
        ({"mask": "blocks"}, "give 'cells' or a function"),
        ({"rates": [2.0]}, "rate must be between 0 and 1, not 2.0"),
    ],
)
def test_impossible_designs_are_refused(options, message):
    options = {"methods": METHODS, "rates": [0.1]} | options
    with pytest.raises(DataError, match=message):
        compare_imputers(complete(50), options.pop("methods"), **options)


def test_a_column_that_loses_all_its_values_is_named():
    X = complete(40)
    X[1:, 2] = np.nan
    with pytest.raises(DataError, match="column 'x2' has no value"):
        compare_imputers(X, METHODS, rates=[0.5], repeats=6)


def test_progress_is_told_from_nothing_to_all():
    told = []
    compare_imputers(
        complete(50),
        {"mean": MeanImputer},
        rates=[0.1, 0.2],
        repeats=2,
        progress=lambda *step: told.append(step),
    )
    assert told == [(k, 4, "mean") for k in range(4)] + [(4, 4, "")]


def test_a_comparison_comes_back_from_its_json() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = compare_imputers(X, {"mean": MeanImputer}, rates=[0.1], repeats=2)
    again = Comparison.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.table("crps") == found.table("crps")


def test_methods_that_can_use_limits_are_given_those_of_faint_values():
    rng = np.random.default_rng(0)
    v = rng.normal(18, 1, 600)
    X = np.column_stack([v, v - 1 + rng.normal(0, 0.1, 600)])
    one = partial(NetworkImputer, 1, n_fits=1, margins=False, refine=None)
    methods = {"mean": MeanImputer, "network": one}
    faint = partial(hide_faint, columns=[1])
    found = compare_imputers(X, methods, rates=[0.4], mask=faint, repeats=1)
    assert [run.uses_limits for run in found.scores] == [False, True]
    head, _, mean, network = found.table().splitlines()
    assert [line.split("|")[-2].strip() for line in (head, mean, network)] == [
        "limits",
        "no",
        "yes",
    ]
    assert found.mean("nrmse", "network", 0.4).value < 0.2
    assert Comparison.from_json(found.to_json()).scores[1].uses_limits
    at_random = compare_imputers(X, methods, rates=[0.4], repeats=1)
    assert not any(run.uses_limits for run in at_random.scores)
    assert "limits" not in at_random.table()
