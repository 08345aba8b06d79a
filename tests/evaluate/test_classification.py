"""Cross-validation of classifiers: no leak, the same folds, tables, differences, surveys."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from skyfill.catalog import Table
from skyfill.classify import CatalogClassifier
from skyfill.errors import DataError
from skyfill.evaluate import (
    ClassComparison,
    FilledClassifier,
    OutOfFold,
    classifiers,
    cross_validate,
    without_surveys,
)
from skyfill.evaluate.methods import CLASSIFIERS, IMPUTERS
from skyfill.impute import MeanImputer, NetworkImputer
from skyfill.model import train_classifier


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers which rows (first column) it was fitted on; the shares of classes as opinion."""

    fitted = []

    def fit(self, X, y):
        type(self).fitted.append(set(X[:, 0].tolist()))
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        assert not self.fitted[-1] & set(X[:, 0].tolist())
        return np.tile(self.shares_, (len(X), 1))


def bayes():
    return FilledClassifier(MeanImputer(), GaussianNB())


@pytest.fixture(scope="module")
def stars():
    rng = np.random.default_rng(0)
    y = np.repeat(["QSO", "RRL", "CEPH"], [30, 120, 60])
    X = rng.normal(size=(210, 3))
    X[:, 0] += 3.0 * (y == "QSO")
    X[:, 2] += 2.5 * (y == "CEPH")
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


@pytest.fixture(scope="module")
def found(stars):
    return cross_validate(*stars, {"bayes": bayes, "spy": Spy}, folds=5, repeats=2)


def test_no_object_is_classified_by_what_learned_from_it():
    Spy.fitted = []
    X = np.arange(40.0)[:, None]
    cross_validate(X, ["a", "b"] * 20, {"spy": Spy}, folds=4, repeats=3)
    assert len(Spy.fitted) == 12
    assert all(len(rows) == 30 for rows in Spy.fitted)


def test_labels_that_have_nothing_to_do_with_the_features_stay_at_chance():
    rng = np.random.default_rng(3)
    y = rng.choice(["a", "b"], 200)
    noise = rng.normal(size=(200, 2))
    noise[rng.random(noise.shape) < 0.3] = np.nan
    found = cross_validate(noise, y, {"bayes": bayes}, folds=10)
    assert found.mean("accuracy", "bayes").value < 0.62


def test_blanks_around_a_label_make_no_class_of_their_own(stars):
    """Text columns of fixed width are padded: training and evaluation read them alike."""
    X, y = stars
    padded = [f"{label} " if i % 2 else str(label) for i, label in enumerate(y)]
    names = ["a", "b", "c"]
    table = Table.from_columns({**dict(zip(names, X.T, strict=True)), "class": padded})
    small = CatalogClassifier(
        "forest", n_trees=3, n_folds=2, imputer=NetworkImputer(1, n_fits=1, refine=None)
    )
    model, _ = train_classifier(table, names, "class", classifier=small)
    found = cross_validate(X, padded, {"bayes": bayes}, folds=3)
    fitted = small.fit(X, padded)
    assert model.scorer.classes == found.classes == tuple(fitted.classes_) == ("CEPH", "QSO", "RRL")


def test_folds_follow_the_seed_and_not_the_methods(stars):
    def probabilities(methods, seed):
        found = cross_validate(*stars, methods, folds=3, rng=seed)
        return found.of("bayes")[0].probabilities

    alone = probabilities({"bayes": bayes}, 1)
    np.testing.assert_array_equal(alone, probabilities({"spy": Spy, "bayes": bayes}, 1))
    assert not np.array_equal(alone, probabilities({"bayes": bayes}, 2))


def test_every_labelled_object_gets_probabilities_in_every_repeat(found, stars):
    assert found.classes == ("CEPH", "QSO", "RRL")
    assert len(found.runs) == 4
    for run in found.runs:
        assert run.probabilities.shape == (210, 3)
        np.testing.assert_allclose(run.probabilities.sum(axis=1), 1)


def test_objects_without_label_are_not_scored_but_teach_to_fill(stars):
    X, y = stars
    some = y.astype(object)
    some[::3] = [None] * 30 + [float("nan")] * 20 + [" "] * 20
    seen = []

    class Listener(FilledClassifier):
        def fit(self, X, y):
            seen.append((len(X), sum(label is None for label in y)))
            return super().fit(X, y)

    found = cross_validate(
        X, some, {"l": lambda: Listener(MeanImputer(), GaussianNB()), "nb": Spy}, folds=5
    )
    assert len(found.truth) == 140
    assert found.rows.tolist() == [i for i in range(210) if i % 3]
    assert all(missing == 70 for _, missing in seen)


def test_tables_may_be_given_in_place_of_arrays(stars):
    X, y = stars
    table = Table.from_columns({f"x{j}": X[:, j] for j in range(3)})
    one, two = (cross_validate(A, y, {"bayes": bayes}, folds=3) for A in (X, table))
    np.testing.assert_array_equal(one.runs[0].probabilities, two.runs[0].probabilities)


def test_mission_13_precision_recall_and_f_of_two_methods_side_by_side(found):
    lines = found.class_table().splitlines()
    assert lines[0] == ("| class | n | bayes precision | recall | F | spy precision | recall | F |")
    assert lines[3].startswith("| QSO | 30 | **0.")
    assert [line.split(" | ")[0] for line in lines[-2:]] == [
        "| weighted average",
        "| macro average",
    ]
    # The spy says the most frequent class of all: 120 of 210 are right.
    assert lines[4].endswith("| 0.571 | **1.000** | 0.727 |")
    assert found.mean("accuracy", "spy").value == pytest.approx(120 / 210)


def test_the_summary_has_the_best_in_bold_and_errors(found):
    lines = found.summary_table().splitlines()
    head = "| method | accuracy | macro f | weighted f | log loss | brier | ece | seconds |"
    assert lines[0] == head
    assert lines[2].startswith("| bayes | **0.")
    assert lines[2].count("±") == 6
    assert "**" in lines[3].split(" | ")[6]  # the shares of the classes are well calibrated


def test_differences_are_paired(found):
    text = found.difference_table("spy").splitlines()[2]
    assert text.startswith("| bayes minus spy | **+0.")
    gap = found.difference("log_loss", "bayes", "spy")
    both = (found.mean("log_loss", m).value for m in ("bayes", "spy"))
    assert gap.value == pytest.approx(next(both) - next(both))
    assert gap.low < gap.value < gap.high < 0
    assert found.difference("log_loss", "spy", "spy") == (0, 0, 0)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    # Two methods that are right with chance 0.8 and 0.7, independently: the difference is 0.1.
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(60):
        right = rng.random((2, 300)) < [[0.8], [0.7]]
        runs = tuple(
            OutOfFold(name, 0, np.column_stack([r, 1.0 - r]).astype(float), 0, 0)
            for name, r in zip("ab", right, strict=True)
        )
        found = ClassComparison(("x", "y"), np.zeros(300, dtype=np.int64), runs, np.arange(300))
        gap = found.difference("accuracy", "a", "b")
        inside.append(gap.low <= 0.1 <= gap.high)
    assert 0.85 <= np.mean(inside) <= 1.0


def test_curves_agree_with_scikit_learn(found):
    truth = found.truth == found.classes.index("QSO")
    p = found.of("bayes")[0].probabilities[:, 1]
    assert found.roc("bayes", "QSO").area == pytest.approx(roc_auc_score(truth, p))
    area = found.precision_recall("bayes", "QSO").area
    assert area == pytest.approx(average_precision_score(truth, p))


def test_reliability_of_a_class_or_of_the_best_class(found):
    assert found.reliability("spy").share[8] == pytest.approx(120 / 210)
    assert found.reliability("spy", "QSO").share[2] == pytest.approx(30 / 210)


def test_confusion_counts_every_object(found):
    assert found.confusion("spy").sum() == 210
    assert found.confusion_table("spy").splitlines()[3] == "| QSO | 0 | 0 | 30 |"


def test_json_holds_scores_differences_confusion_and_reliability(found):
    facts = json.loads(found.to_json())
    assert facts["support"] == [60, 30, 120]
    first, second = facts["methods"]
    assert first["minus_first"]["brier"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert second["by_class"][1]["roc_area"] == pytest.approx(0.5, abs=0.1)
    assert np.sum(second["confusion"]) == 210


def test_a_subset_scores_some_objects(found):
    keep = np.zeros(210, dtype=bool)
    keep[:30] = True
    part = found.subset(keep)
    assert part.truth.tolist() == [1] * 30
    assert part.mean("accuracy", "spy").value == 0
    assert "| QSO | 30 |" in part.class_table()
    assert "| RRL | 0 | – | – | – | – | – | – |" in part.class_table()
    json.loads(part.to_json())


def test_comparisons_of_other_objects_do_not_add(found):
    with pytest.raises(DataError, match="not about the same objects"):
        _ = found + found.subset(np.arange(210) < 100)


def test_mission_14_with_and_without_the_columns_of_a_survey(stars):
    X, y = stars
    methods = {"bayes": bayes}
    found = cross_validate(X, y, methods, folds=5)
    parts = without_surveys(X, y, methods, columns=[0], found=found, folds=5)
    assert list(parts) == ["all", "matched", "unmatched"]
    assert parts["all"].methods == ("bayes", "bayes without")
    matched = parts["matched"]
    # Only the survey's column tells quasars: without it their recall falls where it was measured,
    recall = {m: matched.by_class(m).recall[1] for m in matched.methods}
    assert recall["bayes without"] < 0.2
    assert recall["bayes"] > 0.6
    # and for those that it does not have, the other columns say about the same in both.
    gap = parts["unmatched"].difference("accuracy", "bayes without", "bayes")
    assert abs(gap.value) < 0.1
    assert len(parts["matched"].truth) + len(parts["unmatched"].truth) == 210


def test_nothing_may_be_left_without_columns(stars):
    X, y = stars
    found = cross_validate(X, y, {"spy": Spy}, folds=3)
    with pytest.raises(DataError, match="nothing left to classify by"):
        without_surveys(X, y, {"spy": Spy}, columns=[0, 1, 2], found=found, folds=3)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["a"] * 20, {}, "all labels are of one class, a"),
        ([None] * 20, {}, "no row has a class label"),
        (["a"] * 19 + ["b"], {}, "class 'b' has 1 object"),
        (["a", "b"] * 9, {}, "18 labels for 20 rows"),
        (["a", "b"] * 10, {"folds": 21}, "21 folds for 20 labelled objects"),
        (["a", "b"] * 10, {"repeats": 0}, "repeats must be at least 1"),
        (["a", "b"] * 10, {"methods": {}}, "no methods to compare"),
    ],
)
def test_mistakes_are_named(labels, options, message):
    options = {"methods": {"spy": Spy}, "folds": 5} | options
    with pytest.raises(DataError, match=message):
        cross_validate(np.ones((20, 1)) * np.arange(20)[:, None], labels, **options)


def test_a_class_of_three_objects_is_classified_in_ten_folds():
    X = np.arange(43.0)[:, None]
    found = cross_validate(X, ["a"] * 40 + ["b"] * 3, {"spy": Spy}, folds=10)
    assert found.by_class("spy").support.tolist() == [40, 3]
    assert (found.runs[0].probabilities > 0).all()


@pytest.mark.parametrize("name", sorted(CLASSIFIERS))
def test_every_method_classifies_objects_with_gaps(name, stars):
    X, y = stars
    model = classifiers([name])[name]()
    small = {"n_trees": 20, "n_rounds": 10, "n_estimators": 20, "max_iter": 3}
    small |= {"classifier__n_estimators": 20, "imputer__n_estimators": 5, "random_state": 0}
    known = model.get_params()
    model.set_params(**{key: value for key, value in small.items() if key in known})
    if name in ("skyfill", "skyfill-thorough"):
        model.set_params(imputer=NetworkImputer(2, n_fits=1, refine=None), n_folds=2)
    if name in ("skyfill-refined", "skyfill-unrefined"):
        model.set_params(imputer__n_components=2, imputer__n_fits=1)
    p = model.fit(X, y).predict_proba(X)
    assert (p.shape, np.isfinite(p).all()) == ((210, 3), True)
    # No column is complete: what is left is the most frequent class of all.
    least = 0.5 if name == "complete-columns" else 0.6
    assert (model.classes_[p.argmax(axis=1)] == y).mean() > least


def gappy(n=400):
    """Columns with 0, 0.25 % and 30 % of gaps, and labels of three classes, one of them rare."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n, 3)), np.repeat(["a", "b", "c"], [n // 2, n // 2 - 4, 4])
    X[:, 2] += 2.0 * (y == "b")
    X[5, 1] = np.nan
    X[rng.random(n) < 0.3, 2] = np.nan
    X[y == "c", 2] = np.nan
    return X, y


def test_complete_rows_is_a_forest_on_them_and_the_shares_of_the_classes_elsewhere():
    X, y = gappy()
    model = classifiers(["complete-rows"])["complete-rows"]().set_params(random_state=3)
    p = model.fit(X, y).predict_proba(X)
    whole = ~np.isnan(X).any(axis=1)
    forest = RandomForestClassifier(300, random_state=3).fit(X[whole], y[whole])
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(p[whole][:, :2], forest.predict_proba(X[whole]))
    np.testing.assert_allclose(p[~whole], np.tile([0.5, 0.49, 0.01], ((~whole).sum(), 1)))
    assert (p[whole][:, 2] == 0).all()  # no row of the rare class is complete


def test_complete_columns_leaves_out_those_with_more_gaps_than_round_to_none():
    X, y = gappy()
    model = classifiers(["complete-columns"])["complete-columns"]().set_params(random_state=3)
    p = model.fit(X, y).predict_proba(X)
    assert model.columns_.tolist() == [0, 1]
    forest = RandomForestClassifier(300, random_state=3)
    rows = np.delete(np.arange(len(X)), 5)
    np.testing.assert_allclose(p[rows], forest.fit(X[rows, :2], y[rows]).predict_proba(X[rows, :2]))
    np.testing.assert_allclose(p[5], [0.5, 0.49, 0.01])
    X[::100] = np.nan
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X)[7], [0.5, 0.49, 0.01])


def test_incomplete_rows_teach_more_than_the_complete_ones_alone():
    """The paper's second claim where it must hold: one row in ten is complete."""
    rng = np.random.default_rng(5)
    y = np.repeat(["a", "b"], 150)
    X = rng.normal(size=(300, 5)) + 1.2 * (y == "b")[:, None]
    X[rng.random(X.shape) < 0.37] = np.nan
    names = ["complete-rows", "complete-columns", "paper-bic"]
    found = cross_validate(X, y, classifiers(names), folds=4)
    for name in names[:2]:
        assert found.difference("log_loss", name, "paper-bic").low > 0


def test_filling_can_be_learned_from_complete_rows_alone():
    rng = np.random.default_rng(6)
    V = rng.normal(18, 1, 300)
    X = np.column_stack([V, V - 1 + rng.normal(0, 0.1, 300)])
    X[rng.random(X.shape) < 0.3] = np.nan
    whole = ~np.isnan(X).any(axis=1)
    small = {"n_components": 1, "n_fits": 1, "refine": None, "random_state": 0}
    model = IMPUTERS["complete-rows"]().set_params(**small)
    expected = NetworkImputer(**small).fit(X[whole])
    np.testing.assert_array_equal(model.fit(X).transform(X), expected.transform(X))
    X[:, 1] = np.where(np.isnan(X[:, 0]), 17.0, np.nan)
    with pytest.raises(DataError, match="complete-rows: 0 of 300 rows to learn from have all 2"):
        model.fit(X)


def test_fillers_have_the_same_name_as_imputers_and_in_classifiers():
    both = set(IMPUTERS) & set(CLASSIFIERS)
    assert both == set(IMPUTERS)
    for name in both - {"complete-rows"}:  # there nothing is filled
        classifier, imputer = CLASSIFIERS[name](), IMPUTERS[name]()
        inside = classifier.imputer if classifier.imputer is not None else NetworkImputer()
        assert type(inside) is type(imputer)


def test_an_unknown_method_is_named_with_those_there_are():
    with pytest.raises(DataError, match="no method 'magic'; the methods are mean, mixture"):
        classifiers(["magic"])


def test_figures_show_every_method_and_class(found):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    from matplotlib import pyplot

    from skyfill.evaluate.score_figures import draw_classification

    figure = draw_classification(found)
    figure.canvas.draw()
    scores, losses, _, roc, recall, confusion = figure.axes
    assert [t.get_text() for t in scores.get_legend().get_texts()] == ["bayes", "spy"]
    np.testing.assert_allclose(scores.lines[0].get_xdata(), found.by_class("bayes").f)
    shown = [bars.lines[0].get_xdata()[0] for bars in losses.containers]
    np.testing.assert_allclose(shown, [found.mean("log_loss", m).value for m in found.methods])
    for ax, kind in ((roc, "roc"), (recall, "precision_recall")):
        assert ax.get_title() == "bayes"
        for line, name in zip(ax.lines, found.classes, strict=True):
            curve = getattr(found, kind)("bayes", name)
            assert line.get_label() == f"{name} {curve.area:.3f}"
            np.testing.assert_array_equal(line.get_xydata(), np.transpose([curve.x, curve.y]))
    assert [t.get_text() for t in confusion.get_yticklabels()] == ["CEPH", "QSO", "RRL"]
    counts = found.confusion("bayes")
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(confusion.images[0].get_array(), shares)
    pyplot.close("all")
