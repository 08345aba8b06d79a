"""The two estimators: columns by their names, what scikit-learn expects, and their files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skyfill
from skyfill.catalog import read_table
from skyfill.cli.main import main
from skyfill.errors import DataError, MissingLimitsWarning, ModelError, SkyfillWarning

BESIDE = {"errors": {"V": "V_err"}, "upper": {"F": "F_lim"}}


def stars(n=120, seed=0):
    """V with errors, a flux that is seen down to a limit, J with gaps; and a class."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < 0.5, "RRL", "QSO")
    V = rng.normal(18, 1, n)
    flux = 21 - V + rng.normal(0, 0.1, n)
    frame = pd.DataFrame(
        {
            "V_err": rng.uniform(0.1, 0.3, n),
            "V": V + rng.normal(0, 0.2, n),
            "J": V - 1 + (kind == "RRL"),
            "F": np.where(flux > 2.5, flux, np.nan),
            "F_lim": np.where(flux > 2.5, np.nan, 2.5),
        }
    )
    frame.loc[rng.random(n) < 0.2, "J"] = np.nan
    return frame, kind


def as_arrays(frame):
    """The same limits and errors as arrays beside the features."""
    X = frame[["V", "J", "F"]]
    errors, upper = (np.full(X.shape, np.nan) for _ in range(2))
    errors[:, 0], upper[:, 2] = frame["V_err"], frame["F_lim"]
    return X, {"errors": errors, "upper": upper}


def new_imputer():
    return skyfill.NetworkImputer(2, n_fits=1, refine=None, random_state=0)


def new_classifier():
    return skyfill.CatalogClassifier("forest", n_trees=10, imputer=new_imputer(), random_state=0)


@pytest.fixture(scope="module")
def imputer():
    return new_imputer().fit(stars()[0], **BESIDE)


@pytest.fixture(scope="module")
def classifier():
    return new_classifier().fit(*stars(), **BESIDE)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_names_of_columns_say_what_arrays_say(kind, imputer, classifier):
    frame, labels = stars()
    new = stars(seed=1)[0]
    X, known = as_arrays(frame)
    X_new, known_new = as_arrays(new)
    by_arrays = new_imputer().fit(X, **known).transform(X_new, **known_new)
    by_names = new_imputer().fit(kind(frame), **BESIDE)
    assert by_names.get_feature_names_out().tolist() == ["V", "J", "F"]
    # What fit was told by names holds for new rows that have these columns.
    np.testing.assert_array_equal(by_names.transform(kind(new)), by_arrays)
    np.testing.assert_array_equal(by_names.transform(kind(new), **BESIDE), by_arrays)
    np.testing.assert_array_equal(imputer.transform(kind(new)), by_arrays)
    P = new_classifier().fit(X, labels, **known).predict_proba(X_new, **known_new)
    np.testing.assert_array_equal(classifier.predict_proba(kind(new)), P)


def test_columns_are_put_in_order_by_name(imputer, classifier):
    new = stars(seed=1)[0]
    mixed = new[new.columns[::-1]]
    np.testing.assert_array_equal(imputer.transform(mixed), imputer.transform(new))
    np.testing.assert_array_equal(classifier.predict_proba(mixed), classifier.predict_proba(new))
    X, known = as_arrays(new)
    known = {name: pd.DataFrame(array, columns=X.columns) for name, array in known.items()}
    back = {name: frame[frame.columns[::-1]] for name, frame in known.items()}
    other = imputer.transform(X[X.columns[::-1]], **back)
    np.testing.assert_array_equal(other, imputer.transform(new))
    with pytest.raises(ValueError, match="feature names"):
        imputer.transform(new.rename(columns={"J": "K"}))


def test_what_is_wrong_is_named(imputer):
    frame, labels = stars()
    with pytest.raises(DataError, match=r"errors=: no column 'V_er'; did you mean 'V_err'"):
        new_imputer().fit(frame, errors={"V": "V_er"})
    with pytest.raises(DataError, match=r"upper=: no column 'f'; did you mean 'F'"):
        new_classifier().fit(frame, labels, upper={"f": "F_lim"})
    with pytest.raises(DataError, match="errors= by names needs a table whose columns have names"):
        new_imputer().fit(frame.to_numpy(), errors={"V": "V_err"})
    for estimator in (new_imputer(), new_classifier()):
        for text in (frame.assign(J="K0V"), pl.from_pandas(frame.assign(J="K0V"))):
            with pytest.raises(ValueError, match=r"column 'J'.*'K0V' is not a number"):
                estimator.fit(text, labels)
    with pytest.warns(MissingLimitsWarning, match="fit was given upper= and errors=, this call"):
        imputer.transform(stars(seed=1)[0][["V", "J", "F"]])


def test_scikit_learn_searches_pipes_and_weighs():
    frame, labels = stars()
    search = GridSearchCV(new_classifier(), {"n_trees": [2, 5]}, cv=2, scoring="neg_log_loss")
    search.fit(frame, labels, sample_weight=np.linspace(1, 2, len(frame)), **BESIDE)
    assert search.best_estimator_.columns_ == BESIDE
    assert search.predict_proba(stars(seed=1)[0]).shape == (len(frame), 2)
    assert clone(search.best_estimator_).get_params()["method"] == "forest"
    forest = RandomForestClassifier(5, random_state=0)
    pipe = make_pipeline(new_imputer().set_output(transform="pandas"), forest)
    pipe.fit(frame, labels, **{f"networkimputer__{k}": v for k, v in BESIDE.items()})
    assert pipe[1].feature_names_in_.tolist() == ["V", "J", "F"]
    assert pipe.score(frame, labels) > 0.8
    some = make_column_transformer((new_imputer(), ["V", "J"]), remainder="drop")
    assert some.set_output(transform="pandas").fit_transform(frame).index.equals(frame.index)


def test_an_estimator_comes_back_from_its_file(imputer, classifier, tmp_path):
    new = stars(seed=1)[0]
    for estimator, call in ((imputer, "transform"), (classifier, "predict_proba")):
        estimator.save(tmp_path / "e.skyfill")
        again = type(estimator).load(tmp_path / "e.skyfill")
        np.testing.assert_array_equal(getattr(again, call)(new), getattr(estimator, call)(new))
        with pytest.warns(MissingLimitsWarning, match="fit was given upper= and errors="):
            getattr(again, call)(new[["V", "J", "F"]])
        again.save(tmp_path / "again.skyfill")
        one, two = (skyfill.load_model(tmp_path / f"{name}.skyfill") for name in ("e", "again"))
        assert one.identifier == two.identifier
    assert again.classes_.tolist() == ["QSO", "RRL"]
    imputer.save(tmp_path / "i.skyfill")
    with pytest.raises(ModelError, match="was trained without labels"):
        skyfill.CatalogClassifier.load(tmp_path / "i.skyfill")
    plain = new_imputer().fit(as_arrays(new)[0].to_numpy())
    plain.save(tmp_path / "p.skyfill")
    X = np.array([[18.0, np.nan, np.nan]])
    loaded = skyfill.NetworkImputer.load(tmp_path / "p.skyfill")
    np.testing.assert_array_equal(loaded.transform(X), plain.transform(X))


def test_the_shell_reads_the_file_of_an_estimator(classifier, tmp_path):
    new = stars(seed=1)[0]
    new.to_csv(tmp_path / "new.csv", index=False)
    classifier.save(tmp_path / "c.skyfill")
    for command in ("classify", "impute"):
        words = [command, tmp_path / "c.skyfill", tmp_path / "new.csv", "--prefix", "sf_"]
        words += ["-o", tmp_path / f"{command}.parquet"]
        result = CliRunner().invoke(main, list(map(str, words)))
        assert result.exit_code == 0, result.output
    P = read_table(tmp_path / "classify.parquet").numbers("sf_p_QSO", "sf_p_RRL")
    np.testing.assert_array_equal(P, classifier.predict_proba(new))
    filled = read_table(tmp_path / "impute.parquet").numbers("V", "J", "F")
    X, known = as_arrays(new)
    np.testing.assert_array_equal(filled, classifier.imputer_.transform(X, **known))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkyfillWarning)
        found = skyfill.load_model(tmp_path / "c.skyfill").classify(new, prefix="sf_")
    np.testing.assert_array_equal(found[["sf_p_QSO", "sf_p_RRL"]], P)


def test_an_estimator_reads_the_file_of_the_shell(tmp_path):
    frame, labels = stars()
    frame["type"] = labels
    small = {"components": 2, "fits": 1, "refine": "off", "method": "forest", "trees": 10}
    roles = {"V_err": "error:V", "F_lim": "limit:F"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkyfillWarning)
        declare = ['columns.F.unit="mJy"', 'columns.F.ucd="phot.flux"']
        model = skyfill.train(frame, "type", role=roles, errors="on", declare=declare, **small)
        model.save(tmp_path / "m.skyfill")
        found = model.classify(stars(seed=1)[0], prefix="sf_", declare=declare)
    classifier = skyfill.CatalogClassifier.load(tmp_path / "m.skyfill")
    assert classifier.columns_ == BESIDE
    P = classifier.predict_proba(stars(seed=1)[0])
    np.testing.assert_array_equal(P, found[["sf_p_QSO", "sf_p_RRL"]])
