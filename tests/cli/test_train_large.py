"""`skyfill train` out of core: the same command, the same file, more rows than memory holds."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.cli import main, terminal, train_large
from skyfill.model import load_model
from skyfill.scale.train_disk import SAMPLE_ROWS

QUICK = ["--components", "1", "--fits", "1", "--refine", "off"]


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def stars(n):
    rng = np.random.default_rng(5)
    v = rng.normal(18, 1, n)
    i = np.where(rng.random(n) < 0.2, np.nan, v - 0.8 + rng.normal(0, 0.2, n))
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}
    columns = {"id": np.arange(n), "name": ["star"] * n, "V": v, "I": i}
    return Table.from_columns({**columns, "class": ["RRL", "LPV"] * (n // 2)}, info=info)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    write_table(stars(300), folder / "few.parquet")
    write_table(stars(300), folder / "few.csv")
    write_table(stars(SAMPLE_ROWS + 10_000), folder / "many.parquet")
    return folder


def test_all_rows_of_a_large_file_count_and_show_reads_the_model(folder, tmp_path):
    out = tmp_path / "m.skyfill"
    said = run("train", folder / "many.parquet", "--out-of-core", *QUICK, "--json", "-o", out)
    assert said.exit_code == 0, said.output
    facts = json.loads(said.stdout)
    n = SAMPLE_ROWS + 10_000
    assert (facts["rows"], facts["converged"], facts["plan"]["n_components"]) == (n, True, 1)
    assert f"{n} rows, 2 features: 1 fit of about 1 component to all rows -> {out}" in said.stderr
    model = load_model(out)
    assert facts["model"] == model.identifier
    # V has no gaps: with one component, the mean of its scores is that of all rows.
    Z = model.network.scores(stars(n).numbers("V", "I"))
    assert model.network.fits[0].means[0, 0] == pytest.approx(Z[:, 0].mean(), abs=1e-9)
    assert [path.name for path in tmp_path.iterdir()] == ["m.skyfill"]
    shown = run("show", out)
    assert shown.exit_code == 0
    for words in (model.identifier, "V ", "mag", "--out-of-core", "many.parquet", "seed: 0"):
        assert words in shown.stdout


@pytest.mark.parametrize("name", ["few.parquet", "few.csv"])
def test_a_small_file_gives_the_model_of_the_table_in_memory(folder, tmp_path, name):
    found = []
    for how in ("--out-of-core", "--in-memory"):
        said = run("train", folder / name, how, "--features", "V,I", *QUICK, "--seed", "3", "-o",
                   tmp_path / "m.skyfill")  # fmt: skip
        assert said.exit_code == 0, said.output
        found.append(load_model(tmp_path / "m.skyfill"))
    assert found[0].identifier == found[1].identifier
    assert found[0].features == found[1].features
    assert found[0].provenance["seed"] == 3


def test_a_seed_gives_the_same_model_again_and_another_seed_another(folder, tmp_path):
    words = ("train", folder / "many.parquet", "--out-of-core", *QUICK, "--json", "-o")
    seeds = (1, 1, 2)
    said = [run(*words, tmp_path / "m.skyfill", "--seed", seed) for seed in seeds]
    a, b, c = (json.loads(each.stdout)["model"] for each in said)
    assert a == b != c


def test_the_number_of_rows_decides_where_the_user_does_not(folder, tmp_path, monkeypatch):
    def is_out_of_core(name, *words):
        said = run("train", folder / name, *QUICK, "--features", "V,I", "--json", *words, "-o",
                   tmp_path / "m.skyfill")  # fmt: skip
        assert said.exit_code == 0, said.output
        return "steps" in json.loads(said.stdout)

    label = ("--label", "class", "--trees", "2", "--method", "paper", "--network", "mixture")
    assert not is_out_of_core("few.parquet")
    monkeypatch.setattr(train_large, "MANY_ROWS", 299)
    assert is_out_of_core("few.parquet")
    assert not is_out_of_core("few.csv")
    assert not is_out_of_core("few.parquet", "--in-memory")
    assert is_out_of_core("few.parquet", *label)
    monkeypatch.setattr(train_large, "MANY_ROWS", 300)
    assert not is_out_of_core("few.parquet")
    help_text = " ".join(run("train", "--help").stdout.split())
    assert "more than 2,000,000 rows]" in help_text


def test_trees_grow_on_the_labelled_rows_and_the_network_on_all(tmp_path):
    table = stars(1200)
    kind = np.where(table.numbers("V")[:, 0] > 18, "LPV", "RRL").astype(object)
    kind[np.arange(1200) % 6 > 0] = None
    write_table(table.with_column("class", kind.tolist()), tmp_path / "t.parquet")
    words = ("train", tmp_path / "t.parquet", "--out-of-core", *QUICK, "--features", "V,I")
    plain = run(*words, "--gaps", "auto", "-o", tmp_path / "plain.skyfill")
    assert plain.exit_code == 0, plain.output
    more = ("--label", "class", "--method", "forest", "--trees", "10", "--json")
    said = run(*words, *more, "-o", tmp_path / "m.skyfill")
    assert said.exit_code == 0, said.output
    facts = json.loads(said.stdout)
    assert (facts["rows"], sum(facts["classes"].values())) == (1200, 200)
    assert "2 classes, 1000 rows without a label, 1 fit of" in said.stderr
    model, bare = (load_model(tmp_path / f"{name}.skyfill") for name in ("m", "plain"))
    for ours, theirs in zip(model.network.fits, bare.network.fits, strict=True):
        assert np.array_equal(ours.means, theirs.means)
    assert 100 < len(model.trained_on) <= 200  # rows with a single value are not remembered
    P = model.scorer.probabilities([[16.5, np.nan], [19.5, 18.7]])
    assert P[0, 1] > 0.8 < P[1, 0]
    assert [path.suffix for path in tmp_path.iterdir()].count(".skyfill") == 2


def test_sentinels_and_roles_of_a_schema_hold_out_of_core_as_in_memory(tmp_path):
    rows = stars(300).numbers("V", "I")
    lines = ["V,I", *(f"{v},{-99 if np.isnan(i) else i}" for v, i in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    rules = '[columns.I]\nsentinels = [-99]\nunit = "mag"\nrole = "feature"\n'
    (tmp_path / "a.toml").write_text(rules + '[columns.V]\nrole = "feature"\n')
    found = []
    for how in ("--out-of-core", "--in-memory"):
        said = run("train", tmp_path / "a.csv", how, "--schema", tmp_path / "a.toml", *QUICK,
                   "-o", tmp_path / "m.skyfill")  # fmt: skip
        assert "features (2): V, I" in said.stderr, said.output
        found.append(load_model(tmp_path / "m.skyfill"))
    assert found[0].identifier == found[1].identifier
    assert found[0].features[1].unit == "mag"
    assert found[0].network.margins[1].x[0] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["few.parquet", "--out-of-core", "--label", "class", "--field", "few.csv"],
            "--field: works with a table in memory",
        ),
        (["few.parquet", "--scheduler", "local", "--in-memory"], "--in-memory: folders, HATS"),
        (["few.parquet", "--out-of-core", "--trees", "9"], "needs --label"),
        (["few.parquet", "--in-memory", "--resume"], "--resume: a table in memory"),
        (["few.parquet", "--out-of-core", "--features", "V,J"], "few.parquet: no column 'J'"),
        (["few.parquet", "--out-of-core", "--features", "V,name"], "'name'"),
        (["nothing.parquet", "--out-of-core"], "nothing.parquet: no such file"),
        (["few.parquet", "--out-of-core", "--components", "none"], "neither a number"),
        (["empty", "--features", "V"], "empty: the folder holds no Parquet files"),
    ],
)
def test_mistakes_are_named_and_write_nothing(folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir(exist_ok=True)
    said = run("train", *words, "-o", tmp_path / "x.skyfill")
    assert said.exit_code == 2
    assert message in said.stderr
    assert [*tmp_path.iterdir()] == []


def test_an_identifier_is_refused_before_the_rows_are_read(tmp_path):
    table = stars(300).with_info("id", role="identifier")
    write_table(table, tmp_path / "a.parquet")
    words = ("train", tmp_path / "a.parquet", "--out-of-core", "--features", "V,id", *QUICK, "-o")
    said = run(*words, tmp_path / "m.skyfill")
    assert said.exit_code == 2
    assert "must not be learned: id (identifier)" in said.stderr
    assert run(*words, tmp_path / "m.skyfill", "--force", "id").exit_code == 0


def test_a_model_is_a_file_also_where_a_cluster_learns_it(folder, tmp_path):
    said = run("train", folder / "few.parquet", "--scheduler", "local", "-o", tmp_path)
    assert said.exit_code == 2
    assert "is a directory; give a file name" in said.stderr


def test_a_log_follows_the_steps(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "SECONDS_PER_LINE", 0.0)
    words = ("train", folder / "many.parquet", "--out-of-core", *QUICK, "-o")
    said = run(*words, tmp_path / "m.skyfill").stderr
    assert re.search(r"^learning: 60,000 rows read$", said, re.MULTILINE)
    assert "learning: a start learned from 50,000 rows" in said
    assert "learning: margins estimated from all rows" in said
    assert re.search(r"^learning: fit 1 of 1: step 1 of EM$", said, re.MULTILINE)
    monkeypatch.undo()
    assert "of EM" not in run(*words, tmp_path / "m.skyfill").stderr
