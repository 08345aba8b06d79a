"""`skyfill train --label` and `skyfill classify`, also with bad input."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.errors import ModelError
from skyfill.impute import NetworkImputer
from skyfill.model import Scoring, classify_table, load_model, train
from skyfill.scale import apply_model, estimate_field_prior, open_source

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I", "K")}
INFO |= {"class": ColumnInfo(role=Role.LABEL), "id": ColumnInfo(role=Role.IDENTIFIER)}
OPTIONS = ("--components", 2, "--fits", 1, "--refine", "off", "--method", "forest", "--trees", 10)


def stars(n=300, seed=0):
    rng = np.random.default_rng(seed)
    red = rng.random(n) < 0.4
    v = rng.normal(18, 1, n)
    i = v - np.where(red, 2.5, 0.5) + rng.normal(0, 0.2, n)
    k = i - np.where(red, 2.0, 0.3) + rng.normal(0, 0.2, n)
    columns = {"V": v, "I": i, "K": k}
    columns = {name: np.where(rng.random(n) < 0.2, np.nan, x) for name, x in columns.items()}
    classes = [None if i % 20 == 0 else "LPV" if r else "RRL" for i, r in enumerate(red)]
    return Table.from_columns({"id": np.arange(n), **columns, "class": classes}, info=INFO)


def field(n, seed):
    return stars(n, seed).drop(["class"])


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    write_table(stars(), folder / "train.parquet")
    said = run(
        "train", folder / "train.parquet", "--label", "class", *OPTIONS, "-o",
        folder / "m.skyfill", "--json",
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    assert "2 classes, 15 rows without a label" in said.stderr
    assert sum(json.loads(said.stdout)["classes"].values()) == 285
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return load_model(folder / "m.skyfill")


def test_a_classifier_takes_as_many_fits_on_the_command_line_as_in_python(folder, tmp_path):
    out, one = tmp_path / "m.skyfill", ("--components", 1, "--refine", "off")
    run("train", folder / "train.parquet", "--label", "class", *one, "--method", "forest",
        "--trees", 2, "-o", out)  # fmt: skip
    table = stars()
    fitted = CatalogClassifier("forest", n_trees=2).fit(
        table.select(["V", "I"]), table.column("class")
    )
    assert len(load_model(out).network.fits) == len(fitted.imputer_.network_.fits) == 3
    run("train", folder / "train.parquet", *one, "-o", out)
    assert len(load_model(out).network.fits) == NetworkImputer().n_fits


RESULTS = ("sf_class", "sf_p_LPV", "sf_p_RRL", "sf_entropy", "sf_gap_share", "sf_outlier",
           "sf_outlier_score", "sf_trained_on")  # fmt: skip


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "csv"])
def test_a_catalog_is_classified_from_the_command_line(folder, extension):
    table = field(200, seed=1)
    write_table(table, folder / f"in.{extension}")
    out = folder / f"out.{extension}"
    said = run("classify", folder / "m.skyfill", folder / f"in.{extension}", "-o", out, "--json")
    assert said.exit_code == 0, said.output
    counts = json.loads(said.stdout)
    found = read_table(out)
    assert found.names == (table.names[0], *RESULTS, *table.names[1:])
    assert counts["rows"] == len(found) == 200
    truth = np.array(stars(200, seed=1).column("class").to_pylist(), dtype=object)
    right = np.array(found.column("sf_class").to_pylist(), dtype=object) == truth
    assert right[truth != None].mean() > 0.9  # noqa: E711 - elementwise
    np.testing.assert_allclose(found.numbers("sf_p_LPV", "sf_p_RRL").sum(axis=1), 1.0)
    P = found.numbers("sf_p_LPV", "sf_p_RRL")
    bits = -(P * np.log2(np.maximum(P, 1e-300))).sum(axis=1)
    np.testing.assert_allclose(found.numbers("sf_entropy")[:, 0], bits, atol=1e-9)
    assert counts["classes"]["LPV"] == (P.argmax(axis=1) == 0).sum()


def test_the_output_describes_its_columns_and_where_it_comes_from(folder, model):
    write_table(stars(20, seed=2), folder / "few.parquet")
    words = ("classify", folder / "m.skyfill", folder / "few.parquet", "-o", folder / "few.vot")
    said = run(*words, "--prefix", "")
    assert said.exit_code == 2
    assert "column 'class' has the name of a result" in said.stderr
    run(*words)
    found = read_table(folder / "few.vot")
    assert found.info("sf_class").role is Role.LABEL
    assert found.info("sf_entropy").unit == "bit"
    assert "Probability of class LPV" in found.info("sf_p_LPV").description
    assert model.identifier in found.meta["provenance"]
    assert found.column("class").to_pylist() == stars(20, seed=2).column("class").to_pylist()


def test_batches_give_what_one_piece_gives(folder, model, monkeypatch):
    write_table(field(150, seed=3), folder / "b.parquet")
    monkeypatch.setattr("skyfill.scale.inputs.BATCH_ROWS", 40)
    done = apply_model(Scoring(), model, folder / "b.parquet", folder / "b.out.parquet")
    whole = classify_table(model, read_table(folder / "b.parquet"))
    names = ("sf_p_LPV", "sf_p_RRL", "sf_entropy", "sf_outlier_score")
    found = read_table(folder / "b.out.parquet")
    assert done.rows == 150
    classes = found.column("sf_class").to_pylist()
    assert done.counts["class.LPV"] == classes.count("LPV")
    np.testing.assert_allclose(found.numbers(*names), whole.numbers(*names), rtol=1e-12)


def test_other_order_units_and_unknown_columns_change_nothing(model):
    table = field(60, seed=4)
    plain = classify_table(model, table).numbers("sf_p_LPV", "sf_entropy")
    turned = table.select(["K", "V", "id", "I"]).with_column("junk", np.zeros(60))
    assert np.array_equal(classify_table(model, turned).numbers("sf_p_LPV", "sf_entropy"), plain)
    milli = table.with_column("V", table.numbers("V")[:, 0] * 1000).with_info("V", unit="mmag")
    np.testing.assert_allclose(
        classify_table(model, milli).numbers("sf_p_LPV", "sf_entropy"), plain
    )


def test_a_feature_that_the_catalog_lacks_is_a_gap_with_a_warning(folder, model):
    table = field(60, seed=5)
    write_table(table.drop(["K"]), folder / "noK.parquet")
    said = run("classify", folder / "m.skyfill", folder / "noK.parquet", "-o", folder / "o.parquet")
    assert said.exit_code == 0
    assert "lacks K: gaps in every row" in said.stderr
    found = read_table(folder / "o.parquet")
    assert "K" not in found.names
    empty = table.with_column("K", np.full(60, np.nan))
    expected = classify_table(model, empty).numbers("sf_p_LPV")
    if model.network.fits[0].gap_rates is None:
        assert np.array_equal(found.numbers("sf_p_LPV"), expected)


def test_a_prior_of_the_field_is_given_or_estimated(folder, model):
    write_table(field(100, seed=6), folder / "p.parquet")
    words = ("classify", folder / "m.skyfill", folder / "p.parquet", "-o", folder / "p.out.parquet")
    assert run(*words).exit_code == 0
    plain = read_table(folder / "p.out.parquet").numbers("sf_p_LPV")
    assert run(*words, "--prior", "LPV=0.001,RRL=0.999").exit_code == 0
    assert (read_table(folder / "p.out.parquet").numbers("sf_p_LPV") < plain).all()
    said = run(*words, "--prior", "estimate", "--json")
    assert sum(json.loads(said.stdout)["prior"].values()) == pytest.approx(1)
    # A hundred stars like those of the training set do not speak for other shares.
    words = r"shares of the training set, which may be .* LPV 0\.\d+ \(0\.\d+ to 0\.\d+\)"
    assert re.search(words, " ".join(said.stderr.split()))
    assert json.loads(said.stdout)["prior"] == pytest.approx(
        dict(zip(("LPV", "RRL"), model.scorer.shares, strict=True))
    )
    found = estimate_field_prior(model, open_source(folder / "p.parquet"))
    true = stars(100, 6).column("class").to_pylist().count("LPV") / 100
    assert found.low[0] < true < found.high[0]


def test_draws_marginalize_and_gap_share_can_be_left_out(model):
    table = field(50, seed=7)
    found = classify_table(model, table, Scoring(n_draws=0, marginalize=20))
    gaps = np.isnan(table.numbers("V", "I", "K")).any(axis=1)
    assert (np.isnan(found.numbers("sf_gap_share")[:, 0]) == gaps).all()
    assert not np.array_equal(
        found.numbers("sf_p_LPV"), classify_table(model, table).numbers("sf_p_LPV")
    )


def test_a_model_trained_for_a_field_knows_its_shares(folder, tmp_path):
    many = stars(3000, seed=11)
    names = np.array(many.column("class").to_pylist(), dtype=object)
    red = names == "LPV"
    rows = np.flatnonzero((names == "RRL") | (red & (np.arange(3000) % 8 == 1)))
    write_table(Table(many.arrow.take(rows)).drop(["class"]), tmp_path / "field.parquet")
    words = ("train", folder / "train.parquet", "--label", "class", *OPTIONS, "--json")
    words += ("--field", tmp_path / "field.parquet", "-o", tmp_path / "f.skyfill")
    said = run(*words)
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)["field"]
    assert found["rows"] == len(rows)
    true = red[rows].mean()
    assert found["shares"]["LPV"]["low"] < true < found["shares"]["LPV"]["high"]
    assert "estimated shares (5 to 95 %): LPV 0.0" in said.stderr
    assert "what other columns say" not in said.stderr
    # The densities of these classes do not help, so a field teaches none.
    assert found["taught"] is None
    scorer = load_model(tmp_path / "f.skyfill").scorer
    assert scorer.prior[0] == pytest.approx(found["shares"]["LPV"]["share"])
    assert scorer.shares[0] == pytest.approx(load_model(folder / "m.skyfill").scorer.shares[0])
    given = run(*words, "--prior", "LPV=0.5,RRL=0.5")
    assert given.exit_code == 0
    assert load_model(tmp_path / "f.skyfill").scorer.prior.tolist() == [0.5, 0.5]


def test_a_tree_of_classes_is_kept_in_the_model_and_used_by_classify(folder, tmp_path):
    (tmp_path / "tree.toml").write_text('LPV = "red"\nRRL = "any star"\nred = "any star"\n')
    words = ("train", folder / "train.parquet", "--label", "class", *OPTIONS, "--tree")
    said = run(*words, tmp_path / "tree.toml", "-o", tmp_path / "t.skyfill")
    assert said.exit_code == 0, said.output
    write_table(field(80, seed=12), tmp_path / "f.parquet")
    words = ("classify", tmp_path / "t.skyfill", tmp_path / "f.parquet", "-o")
    assert run(*words, tmp_path / "c.parquet", "--sure", "0.9").exit_code == 0
    table = read_table(tmp_path / "c.parquet")
    lpv, rrl, red, star = table.numbers("sf_p_LPV", "sf_p_RRL", "sf_any_red", "sf_any_any star").T
    assert np.array_equal(lpv, red)
    np.testing.assert_allclose(star, 1.0)
    wanted = np.where(lpv >= 0.9, "LPV", np.where(rrl >= 0.9, "RRL", "any star"))
    assert table.column("sf_class_sure").to_pylist() == wanted.tolist()
    words = ("candidates", tmp_path / "c.parquet", "--class", "red", "-o")
    assert run(*words, tmp_path / "red.parquet").exit_code == 0
    assert len(read_table(tmp_path / "red.parquet")) == (lpv >= 0.8).sum()
    (tmp_path / "tree.toml").write_text('QSO = "red"\n')
    words = ("train", folder / "train.parquet", "--label", "class", *OPTIONS, "--tree")
    said = run(*words, tmp_path / "tree.toml", "-o", tmp_path / "x.skyfill")
    assert said.exit_code == 2
    assert "tree.toml: no class QSO for the tree; the classes are LPV, RRL" in said.stderr


def test_a_field_with_another_zero_point_is_warned_about(folder, tmp_path):
    sample = field(400, seed=13)
    moved = sample.with_column("I", sample.numbers("I")[:, 0] + 1, sample.info("I"))
    write_table(moved, tmp_path / "field.parquet")
    words = ("train", folder / "train.parquet", "--label", "class", *OPTIONS, "-o")
    said = run(*words, tmp_path / "f.skyfill", "--field", tmp_path / "field.parquet")
    assert said.exit_code == 0, said.output
    warned = " ".join(said.stderr.split())
    assert re.search(r"--field \S+: I lies (0\.9|1)\S* mag above what other columns say", warned)


def test_a_field_without_the_features_is_refused(folder, tmp_path):
    write_table(Table.from_columns({"x": [1.0]}), tmp_path / "x.parquet")
    words = ("train", folder / "train.parquet", "--label", "class", *OPTIONS, "-o")
    words += (tmp_path / "m.skyfill", "--field")
    for name, message in (("x.parquet", "none of the features V, I, K"), ("y.fits", "y.fits")):
        said = run(*words, tmp_path / name)
        assert said.exit_code == 2
        assert message in " ".join(said.stderr.split())


def test_gaps_unlike_those_of_the_training_set_are_averaged_by_default(folder, tmp_path):
    full = Table(stars(400, seed=9).arrow.drop_null())
    write_table(full, tmp_path / "full.parquet")
    words = ("train", tmp_path / "full.parquet", "--label", "class", *OPTIONS)
    assert run(*words, "-o", tmp_path / "full.skyfill").exit_code == 0
    write_table(field(100, seed=10).drop(["I"]), tmp_path / "field.parquet")
    words = ("classify", tmp_path / "full.skyfill", tmp_path / "field.parquet", "--json")
    entropy = {}
    for draws in ("auto", "0"):
        said = run(*words, "--draws", draws, "-o", tmp_path / f"{draws}.parquet")
        assert str(json.loads(said.stdout)["draws"]) == draws
        entropy[draws] = read_table(tmp_path / f"{draws}.parquet").numbers("sf_entropy").mean()
    assert entropy["auto"] > entropy["0"]
    said = run(*words, "--draws", "few", "-o", tmp_path / "x.parquet")
    assert said.exit_code == 2
    assert "'few' is neither a number from 0 nor auto" in said.stderr


def test_quick_is_small_and_what_is_given_counts_all_the_same(folder, tmp_path):
    out = tmp_path / "quick.skyfill"
    words = ("train", folder / "train.parquet", "--quick", "-o", out)
    assert run(*words).exit_code == 0
    assert [len(fit.weights) for fit in load_model(out).network.fits] == [6]
    said = run(*words, "--label", "class", "--trees", 7, "--components", 2)
    assert said.exit_code == 0, said.output
    model = load_model(out)
    assert [len(fit.weights) for fit in model.network.fits] == [2]
    assert model.refinement is None
    n_trees = [forest.n_trees for _, forest in model.scorer.forests]
    assert n_trees == [7, 7]


@pytest.mark.parametrize(("label", "n_fits"), [((), 16), (("--label", "class"), 8)])
def test_thorough_averages_more_fits(folder, tmp_path, label, n_fits):
    out, small = tmp_path / "thorough.skyfill", OPTIONS[:2] + OPTIONS[4:6]
    small = (*small, *OPTIONS[6:8]) if label else small
    said = run("train", folder / "train.parquet", *label, "--thorough", *small, "-o", out)
    assert said.exit_code == 0, said.output
    model = load_model(out)
    assert len(model.network.fits) == n_fits
    if label:
        assert {forest.n_trees for _, forest in model.scorer.forests} == {500}


@pytest.mark.parametrize(
    "quick", [("--quick",), ("--quick", "--network", "bic"), ("--quick", "--method", "paper")]
)
def test_quick_goes_with_one_network(folder, tmp_path, quick):
    words = ("--label", "class", "-o", tmp_path / "one.skyfill")
    said = run("train", folder / "train.parquet", *quick, *words)
    assert said.exit_code == 0, said.output
    assert len(load_model(tmp_path / "one.skyfill").network.fits) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--label", "kind"), "no column 'kind'"),
        (("--label", "class", "--features", "V,id"), "must not be learned: id (identifier)"),
        (("--label", "class", "--features", "V,class"), "must not be learned: class (label)"),
        (("--trees", "5"), "--trees: needs --label COLUMN"),
        (("--merge", "A,B=C"), "--merge: needs --label COLUMN"),
        (("--quick", "--thorough"), "leave out one of --quick and --thorough"),
        (("--field", "train.parquet"), "needs --label COLUMN"),
        (("--label", "class", "--prior", "LPV"), "write CLASS=NUMBER"),
        (("--label", "class", "--prior", "QSO=1,RRL=2"), "no class QSO and no share for LPV"),
    ],
)
def test_mistakes_in_training_are_named(folder, words, message):
    said = run("train", folder / "train.parquet", *words, *OPTIONS[:6], "-o", folder / "x.skyfill")
    assert said.exit_code == 2
    assert message in " ".join(said.stderr.split())
    assert not (folder / "x.skyfill").exists()


def test_one_class_is_refused_and_few_objects_are_told(folder):
    table = stars()
    one = table.with_column("class", ["RRL"] * 300)
    write_table(one, folder / "one.parquet")
    words = ("train", folder / "one.parquet", "--label", "class", *OPTIONS, "-o")
    said = run(*words, folder / "one.skyfill")
    assert said.exit_code == 2
    assert "all labels are of one class, RRL" in said.stderr
    three = ["QSO"] * 3 + table.column("class").to_pylist()[3:]
    write_table(table.with_column("class", three), folder / "one.parquet")
    said = run(*words, folder / "three.skyfill")
    assert said.exit_code == 0, said.output
    assert "whose probabilities are rough: QSO (3)" in said.stderr


def test_a_model_without_labels_cannot_classify_and_says_so(folder):
    plain, _ = train(stars(), ["V", "I"], n_components=1, n_fits=1)
    with pytest.raises(ModelError, match="trained without labels"):
        classify_table(plain, stars(5))


def test_a_catalog_with_none_of_the_features_is_refused(folder):
    write_table(Table.from_columns({"x": [1.0]}), folder / "x.csv")
    said = run("classify", folder / "m.skyfill", folder / "x.csv", "-o", folder / "x.out.csv")
    assert said.exit_code == 2
    assert "has none of the model's features (V, I, K)" in said.stderr
