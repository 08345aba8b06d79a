import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.classify import CatalogClassifier
from skyfill.classify.field import shares_for
from skyfill.classify.prior import Profiles, match_profiles
from skyfill.errors import CatalogError, ModelError
from skyfill.impute import NetworkImputer
from skyfill.model import ARRAYS, FACTS, load_model, save_model, train, train_classifier
from skyfill.model.pipeline import arrays_of, facts_of
from skyfill.model.rebuilding import rebuild
from skyfill.network.mixture.margin import BY_CELLS


def make_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    columns = {
        "V": v,
        "I": v - 0.8 + rng.normal(0, 0.2, n),
        "n": rng.integers(0, 3, n).astype(float),
    }
    columns = {name: np.where(rng.random(n) < 0.2, np.nan, x) for name, x in columns.items()}
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}
    return Table.from_columns({**columns, "id": np.arange(n)}, info=info)


@pytest.fixture(scope="module")
def model():
    options = {"n_components": 3, "n_fits": 2, "arcs": "shared", "gaps": "informative"}
    return train(make_table(), ["V", "I", "n"], provenance={"command": "test"}, **options)[0]


@pytest.fixture
def path(model, tmp_path):
    save_model(model, tmp_path / "a.skyfill")
    return tmp_path / "a.skyfill"


def test_a_saved_model_computes_the_same_bit_for_bit(model, path):
    again = load_model(path)
    X = make_table(50, seed=1).numbers("V", "I", "n")
    assert again.features == model.features
    assert again.features[0].unit == "mag"
    assert again.identifier == model.identifier
    assert again.provenance == {"command": "test"}
    assert np.array_equal(again.network.posterior(X).mean, model.network.posterior(X).mean)
    assert np.array_equal(again.network.quantiles(X, [0.1]), model.network.quantiles(X, [0.1]))
    assert np.array_equal(again.network.loglik(X), model.network.loglik(X))
    assert again.network.arcs() == model.network.arcs()


def earlier(network):
    """A network whose moments are taken as those of earlier versions."""
    return replace(network, margins=tuple(replace(m, moments=BY_CELLS) for m in network.margins))


def test_fits_that_differ_in_their_gaps_are_refused(model, tmp_path):
    first, second = model.network.fits
    mixed = replace(model.network, fits=(first, second._replace(gap_rates=None)))
    save_model(replace(model, network=mixed), tmp_path / "mixed.skyfill")
    with pytest.raises(ModelError, match="in all fits or in none"):
        load_model(tmp_path / "mixed.skyfill")


def test_the_file_is_a_plain_zip_of_json_and_arrays_and_always_the_same(model, path, tmp_path):
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted([FACTS, ARRAYS])
        assert json.loads(archive.read(FACTS))["format"] == 7
    old = earlier(model.network)
    assert facts_of(replace(model, network=old))["format"] == 6
    assert facts_of(replace(model, network=replace(old, support=None)))["format"] == 1
    save_model(load_model(path), tmp_path / "b.skyfill")
    assert (tmp_path / "b.skyfill").read_bytes() == path.read_bytes()


def test_ranges_of_what_was_learned_from_are_kept_and_checked(model, tmp_path):
    save_model(model, tmp_path / "s.skyfill")
    again = load_model(tmp_path / "s.skyfill").network.support
    for ours, theirs in zip(again, model.network.support, strict=True):
        assert np.array_equal(ours, theirs)
    wrong = {
        "low": again.high + 1,
        "high": np.full(again.high.shape, np.nan),
        "related": again.related + 1,
        "ends": again.ends[::-1] * [[1], [-1]],
        "doubt": 1e9,
    }
    for name, value in wrong.items():
        network = replace(model.network, support=again._replace(**{name: value}))
        save_model(replace(model, network=network), tmp_path / "forged.skyfill")
        with pytest.raises(ModelError, match=r"ranges|relations"):
            load_model(tmp_path / "forged.skyfill")


def test_shares_of_gaps_beyond_are_kept_and_checked_and_no_result_depends_on_them(model, tmp_path):
    shares = np.array([0.0, 0.25, 0.5])
    support = model.network.support._replace(beyond=shares, is_shared=True)
    told = replace(model, network=replace(model.network, support=support))
    save_model(told, tmp_path / "s.skyfill")
    again = load_model(tmp_path / "s.skyfill")
    assert again.network.columns_beyond == {"I": 0.25, "n": 0.5}
    assert again.network.support.is_shared
    silent = model.network.support._replace(beyond=None)
    silent = replace(model, network=replace(model.network, support=silent))
    assert again.identifier == silent.identifier
    save_model(silent, tmp_path / "s.skyfill")
    assert load_model(tmp_path / "s.skyfill").network.columns_beyond == {}
    for wrong in (shares[:2], shares + 1, shares - 1, shares * np.nan):
        facts = {**facts_of(told), "beyond": {"shares": wrong.tolist(), "is_shared": True}}
        with pytest.raises(ValueError, match="must be shares"):
            rebuild(facts, arrays_of(told))


def test_margins_of_every_kind_come_back(tmp_path):
    table = Table.from_columns({"a": np.linspace(0, 1, 40), "b": np.full(40, 3.0)})
    for margins in (True, False):
        model, _ = train(table, ["a", "b"], n_components=1, n_fits=1, margins=margins)
        save_model(model, tmp_path / "m.skyfill")
        again = load_model(tmp_path / "m.skyfill")
        kinds = [type(margin).__name__ for margin in again.network.margins]
        assert kinds == ["Margin" if margins else "Identity", "Constant"]
        assert again.network.posterior([[np.nan, np.nan]]).mean[0, 1] == 3.0


def rewritten(path, facts=None, arrays=None, names=(FACTS, ARRAYS)):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in (FACTS, ARRAYS)}
    if facts:
        content[FACTS] = json.dumps({**json.loads(content[FACTS]), **facts}).encode()
    if arrays is not None:
        content[ARRAYS] = arrays
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in zip(names, content.values(), strict=False):
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": {"format": 99}}, "format 99, this skyfill knows formats up to 8; update"),
        ({"facts": {"identifier": "0" * 16}}, "does not match its identifier"),
        ({"facts": {"features": [{"name": "V"}]}}, "damaged"),
        ({"facts": {"features": [{"name": "V", "code": "evil()"}]}}, "damaged"),
        ({"facts": {"fits": []}}, "damaged"),
        ({"facts": {"margins": ["pickle", "ranks", "ranks"]}}, "damaged"),
        ({"arrays": b"\xff" * 100}, "damaged"),
        ({"arrays": save({"fits.0.weights": np.array([np.nan])})}, "finite float64"),
        ({"arrays": save({"fits.0.weights": np.ones(2)})}, "damaged"),
        ({"names": (FACTS,)}, "not a skyfill model"),
        ({"names": (FACTS, "../../evil")}, "not a skyfill model"),
    ],
)
def test_damaged_and_hostile_files_are_refused(path, change, message):
    rewritten(path, **change)
    with pytest.raises(ModelError, match=message):
        load_model(path)


def test_a_zip_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.skyfill"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(FACTS, b"0" * 10_000_000)
        archive.writestr(ARRAYS, b"0" * 1000)
    with pytest.raises(ModelError, match="too many for a model"):
        load_model(path)


@settings(max_examples=300)
@given(data=st.data())
def test_no_mutated_file_does_more_than_raise_a_model_error(model, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "m.skyfill"
    save_model(model, path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut] if data.draw(st.booleans()) else content)
    try:
        assert load_model(path).identifier == model.identifier  # bytes that do not matter
    except ModelError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right


def test_what_is_not_a_zip_or_not_there_is_said(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ModelError, match=r"a\.csv: not a skyfill model"):
        load_model(tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.skyfill")


def test_identifiers_positions_and_labels_are_no_features():
    table = make_table().with_info("id", role="identifier")
    with pytest.raises(CatalogError, match=r"id \(identifier\)"):
        train(table, ["V", "id"])
    train(table, ["V", "id"], force=["id"], n_components=1, n_fits=1)


def labelled(n=200):
    table = make_table(n)
    bright = table.numbers("V")[:, 0] < 18
    names = [None if i % 10 == 0 else "LPV" if b else "RRL" for i, b in enumerate(bright)]
    return table.with_column("class", names, ColumnInfo(role=Role.LABEL))


def classifier(method="both"):
    imputer = NetworkImputer(2, n_fits=2, refine=None, gaps="informative", shrinkage=5.0)
    return CatalogClassifier(
        method, n_trees=4, n_rounds=2, n_folds=2, imputer=imputer, random_state=0
    )


@pytest.fixture(scope="module")
def judge():
    return train_classifier(labelled(), ["V", "I"], "class", classifier=classifier())[0]


@pytest.mark.parametrize("method", ["both", "forest", "boosting", "paper"])
def test_a_saved_classifier_gives_the_same_probabilities_bit_for_bit(method, tmp_path):
    asked = classifier(method).set_params(prior={"LPV": 0.1, "RRL": 0.9})
    model, fitted = train_classifier(labelled(), ["V", "I"], "class", classifier=asked)
    save_model(model, tmp_path / "c.skyfill")
    again = load_model(tmp_path / "c.skyfill")
    new = make_table(80, seed=3).select(["V", "I"])
    X = new.numbers("V", "I")
    assert again.network.names == ("V", "I")
    assert again.scorer.classes == ("LPV", "RRL")
    assert again.identifier == model.identifier
    assert np.array_equal(again.scorer.probabilities(X), fitted.predict_proba(new))
    for ours, theirs in zip(again.scorer.score(X), model.scorer.score(X), strict=True):
        assert np.array_equal(ours, theirs)
    save_model(again, tmp_path / "d.skyfill")
    assert (tmp_path / "d.skyfill").read_bytes() == (tmp_path / "c.skyfill").read_bytes()


def test_profiles_of_classes_are_kept_and_checked_and_older_versions_are_told(judge, tmp_path):
    network = replace(earlier(judge.network), support=None)
    model = replace(judge, trained_on=None, network=network)
    assert facts_of(model)["format"] == 4
    save_model(model, tmp_path / "p.skyfill")
    again = load_model(tmp_path / "p.skyfill").scorer.profiles
    assert np.array_equal(np.stack(again), np.stack(model.scorer.profiles))
    for mean in (np.full((2, 2), np.nan), np.full((2, 2), 0.6), np.full((3, 3), 1 / 3)):
        forged = replace(model.scorer, profiles=Profiles(mean, np.zeros(mean.shape)))
        save_model(replace(model, scorer=forged), tmp_path / "forged.skyfill")
        with pytest.raises(ModelError, match=r"profiles"):
            load_model(tmp_path / "forged.skyfill")


def test_held_out_objects_are_kept_and_models_without_them_use_their_profiles(judge, tmp_path):
    save_model(judge, tmp_path / "h.skyfill")
    scorer = load_model(tmp_path / "h.skyfill").scorer
    for ours, theirs in zip(scorer.held_out, judge.scorer.held_out, strict=True):
        assert np.array_equal(ours, theirs)
    P = scorer.held_out.P[scorer.held_out.P[:, 0] > 0.4][:20]
    rows = np.full((len(P), len(scorer.network)), np.nan), np.ones(len(P), bool)
    older = shares_for(replace(scorer, held_out=None), P, *rows)
    assert np.array_equal(older.shares, match_profiles(P, scorer.profiles).shares)
    assert not np.array_equal(older.shares, shares_for(scorer, P, *rows).shares)


def test_the_identifier_tells_classifiers_apart(judge):
    model, _ = train_classifier(
        labelled(), ["V", "I"], "class", classifier=classifier().set_params(prior=[0.2, 0.8])
    )
    assert model.identifier != judge.identifier


@settings(max_examples=100)
@given(data=st.data())
def test_no_mutated_classifier_does_more_than_raise_a_model_error(judge, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "m.skyfill"
    save_model(judge, path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert load_model(path).identifier == judge.identifier
    except ModelError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right


def test_trees_that_would_never_end_are_refused(judge, tmp_path):
    path = tmp_path / "loop.skyfill"
    save_model(judge, path)
    with zipfile.ZipFile(path) as archive:
        arrays = load(archive.read(ARRAYS))
    target = arrays["scorer.forests.0.target"].copy()
    target[0] = 0
    rewritten(path, arrays=save({**arrays, "scorer.forests.0.target": target}))
    with pytest.raises(ModelError, match="damaged"):
        load_model(path)


def test_rows_without_a_label_and_blanks_around_names_are_understood():
    table = labelled()
    texts = [None if t is None else f" {t} " for t in table.column("class").to_pylist()]
    texts[1:4] = ["", " ", None]
    model, _ = train_classifier(
        table.with_column("class", texts), ["V", "I"], "class", classifier=classifier("paper")
    )
    assert model.scorer.classes == ("LPV", "RRL")


def test_what_looks_like_a_position_or_a_class_is_refused_unless_forced():
    table = labelled().with_column("hjd", np.arange(200.0)).with_column("ra", np.arange(200.0))
    small = classifier("paper")
    with pytest.raises(CatalogError, match=r"hjd \(date or time of an observation\)"):
        train_classifier(table, ["V", "hjd"], "class", classifier=small)
    bare = Table.from_columns({name: table.column(name) for name in table.names})
    with pytest.raises(CatalogError, match=r"must not be learned: ra \(position\)"):
        train_classifier(bare, ["V", "ra"], "class", classifier=small)
    with pytest.raises(CatalogError, match=r"class \(label\)"):
        train_classifier(bare, ["V", "class"], "class", classifier=small)
    forced, _ = train_classifier(
        table, ["V", "hjd", "ra"], "class", classifier=small, force=["hjd", "ra"]
    )
    assert forced.names == ("V", "hjd", "ra")
