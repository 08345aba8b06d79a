"""`skyfill evaluate`: tables, JSON, masks, figure, mistakes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.cli.evaluate import command
from skyfill.cli.main import LazyGroup
from skyfill.cli.main import main as skyfill


@pytest.fixture
def run(monkeypatch):
    # The group as it is run: errors become one line and exit code 2.
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    return lambda *words: CliRunner().invoke(skyfill, ["evaluate", *map(str, words)])


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    rng = np.random.default_rng(0)
    V = rng.normal(18, 1, 200)
    columns = {
        "id": [f"star {i}" for i in range(200)],
        "V": V,
        "I": V - 1 + rng.normal(0, 0.1, 200),
        "period": 10 ** rng.normal(0, 1, 200),
        "depth": rng.normal(size=200),
    }
    info = {name: ColumnInfo(role=Role.FEATURE) for name in ("V", "I", "period")}
    path = tmp_path_factory.mktemp("catalog") / "stars.parquet"
    write_table(Table.from_columns(columns, info=info), path)
    return path


QUICK = ("--rates", "10,30", "--repeats", "2", "--methods", "mean,knn")


def test_tables_show_methods_by_rates_with_the_best_in_bold(run, catalog):
    done = run(catalog, *QUICK)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "| nrmse | 10 % | 30 % |"
    assert lines[3].startswith("| knn | **0.")
    assert "| crps | 10 % | 30 % |" in lines
    assert "200 rows, 3 columns, 2 methods, 2 repeats" in done.stderr


def test_json_holds_all_runs_of_the_asked_columns(run, catalog):
    done = run(catalog, *QUICK, "--columns", "V,depth", "--json")
    found = json.loads(done.stdout)
    assert len(found["runs"]) == 8
    assert set(found["runs"][0]["by_feature"]["nrmse"]) == {"V", "depth"}


def test_the_seed_decides(run, catalog):
    def means(seed):
        runs = json.loads(run(catalog, *QUICK, "--json", "--seed", seed).stdout)["runs"]
        return [one["nrmse"] for one in runs]

    assert means(1) == means(1)
    assert means(1) != means(2)


def test_logarithms_change_a_column(run, catalog):
    plain = run(catalog, *QUICK).stdout
    assert run(catalog, *QUICK, "--log", "period").stdout != plain


@pytest.mark.parametrize(
    "mask",
    [["--mask", "faint"], ["--mask", "blocks", "--survey", "optical=V,I", "--survey", "period"]],
)
def test_other_masks_run(run, catalog, mask):
    done = run(catalog, *QUICK, *mask)
    assert done.exit_code == 0, done.output
    assert done.stdout != run(catalog, *QUICK).stdout


def test_a_figure_is_written(run, catalog, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")
    done = run(catalog, *QUICK, "--figure", tmp_path / "errors.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rates", "ten"], "--rates ten: write percentages such as 5,10,15,20"),
        (["--rates", "0,10"], "each must lie between 0 and 100"),
        (["--methods", "mean,magic"], "no method 'magic'; the methods are mean, mixture"),
        (["--columns", "V,Imag"], "no column 'Imag'"),
        (["--columns", "V,id"], "column 'id', row 1: 'star 0' is not a number"),
        (["--log", "depth", "--columns", "V,depth"], "has no logarithm"),
        (["--mask", "blocks"], "name two surveys or more with --survey NAME"),
        (["--mask", "blocks", "--survey", "V", "--survey", "W"], "no feature 'W'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, catalog, words, message):
    done = run(catalog, "--methods", "mean", "--repeats", "1", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_folds_none_learns_from_the_table_that_is_filled(run, catalog):
    inside, outside = (run(catalog, *QUICK, *words) for words in (("--folds", "none"), ()))
    assert inside.exit_code == 0, inside.output
    assert inside.stdout.startswith("| nrmse, in sample | 10 % | 30 % |")
    assert "2 repeats, learned from the table that is filled" in inside.stderr
    assert "in sample" not in outside.output
    runs = json.loads(run(catalog, *QUICK, "--folds", "none", "--json").stdout)["runs"]
    assert all(one["in_sample"] for one in runs)


def test_a_missing_file_is_named(run):
    done = run("absent.parquet")
    assert (done.exit_code, "absent.parquet" in done.stderr) == (2, True)


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr("skyfill.evaluate.methods.N_TREES", 15)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    rng = np.random.default_rng(1)
    kind = np.repeat(["QSO", "RRL"], [40, 80])
    columns = {
        "id": [f"star {i}" for i in range(120)],
        "V": rng.normal(size=120),
        "I": rng.normal(size=120) + 2.0 * (kind == "QSO"),
        "J_sage": np.where(rng.random(120) < 0.3, np.nan, rng.normal(size=120)),
        "class": kind,
    }
    info = {name: ColumnInfo(role=Role.FEATURE) for name in ("V", "I", "J_sage")}
    path = tmp_path_factory.mktemp("labelled") / "stars.parquet"
    write_table(Table.from_columns(columns, info=info), path)
    return path


CLASSES = ("--label", "class", "--folds", "3", "--methods", "nan-forest,mixture")


def test_with_a_label_classifiers_are_compared(run, few_trees, labelled):
    done = run(labelled, *CLASSES)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("| class | n | nan-forest precision | recall | F | mixture")
    assert lines[2].startswith("| QSO | 40 | ")
    assert any(line.startswith("| nan-forest minus mixture |") for line in lines)
    assert "120 rows, 3 columns, 2 classes, 2 methods, 3 folds, 1 repeat" in done.stderr


def test_what_is_complete_is_compared_on_all_objects_and_on_complete_ones(run, few_trees, labelled):
    words = (*CLASSES[:-1], "complete-rows,complete-columns,mixture")
    done = run(labelled, *words)
    assert done.exit_code == 0, done.output
    whole = np.isfinite(read_table(labelled).numbers("J_sage")).sum()
    assert f"complete-rows: {whole} of 120 rows have no gap" in done.stderr
    assert "complete-columns: V, I\n" in done.stderr
    assert f"the {whole} objects without a gap:" in done.stdout
    found = json.loads(run(labelled, *words, "--json").stdout)
    part = found["objects"]["without a gap"]
    assert sum(part["support"]) == whole < sum(found["support"]) == 120
    rows, columns, _ = part["methods"]
    assert rows["method"] == "complete-rows"
    assert columns["accuracy"]["value"] > 0.6


def test_without_a_survey_there_are_tables_for_matched_and_unmatched_objects(
    run, few_trees, labelled
):
    done = run(labelled, *CLASSES, "--methods", "nan-forest", "--without", "sage")
    for part in ("all", "matched", "unmatched"):
        assert f"{part} objects, with and without the survey:" in done.stdout
    assert "nan-forest without precision" in done.stdout


def test_classifiers_as_json_and_figure(run, few_trees, labelled, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")
    done = run(
        labelled,
        *CLASSES,
        "--json",
        "--without",
        "optical=I,V",
        "--figure",
        tmp_path / "classes.png",
    )
    found = json.loads(done.stdout)
    assert [m["method"] for m in found["methods"]] == ["nan-forest", "mixture"]
    assert set(found["without"]) == {"all", "matched"}
    assert (tmp_path / "classes.png").read_bytes().startswith(b"\x89PNG")


def test_levels_of_a_tree_of_classes_are_scored(run, few_trees, tmp_path):
    rng, kind = np.random.default_rng(3), np.repeat(["RRL", "CEPH", "QSO"], 40)
    columns = {"V": rng.normal(size=120) + 3.0 * (kind == "QSO"), "I": rng.normal(size=120)}
    write_table(Table.from_columns({**columns, "class": kind}), tmp_path / "t.parquet")
    (tmp_path / "tree.toml").write_text('RRL = "pulsating"\nCEPH = "pulsating"\n')
    words = (tmp_path / "t.parquet", "--label", "class", "--folds", 3, "--columns", "V,I")
    words += ("--methods", "nan-forest", "--tree")
    done = run(*words, tmp_path / "tree.toml", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (level,) = found["levels"]
    assert dict(zip(level["classes"], level["support"], strict=True)) == {
        "pulsating": 80,
        "QSO": 40,
    }
    # The two kinds of pulsating stars look alike; all of them do not look like quasars.
    accuracy = [facts["methods"][0]["accuracy"]["value"] for facts in (found, level)]
    assert accuracy[1] > accuracy[0] + 0.1
    assert "level 1 of the tree:" in run(*words, tmp_path / "tree.toml").stdout
    (tmp_path / "tree.toml").write_text('AGN = "nuclei"\n')
    done = run(*words, tmp_path / "tree.toml")
    assert done.exit_code == 2
    assert "tree.toml: no class AGN" in done.stderr


def test_scores_in_a_field_have_its_shares(run, few_trees, labelled, tmp_path):
    rng = np.random.default_rng(2)
    quasar = rng.random(500) < 0.1
    columns = {"I": rng.normal(size=500) + 2.0 * quasar, "V": rng.normal(size=500)}
    write_table(Table.from_columns(columns), tmp_path / "field.parquet")
    words = (labelled, *CLASSES, "--columns", "V,I", "--field", tmp_path / "field.parquet")
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["field"]
    assert (found["rows"], found["used"]) == (500, 1.0)
    assert found["shares"]["QSO"]["low"] < 0.1 < found["shares"]["QSO"]["high"]
    n = found["support"]
    assert n[0] / sum(n) == pytest.approx(found["shares"]["QSO"]["share"])
    done = run(*words)
    assert "field.parquet, where objects of a class look as they do" in done.stdout
    assert "estimated shares (5 to 95 %): QSO 0." in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--field", "stars.parquet"], "--field: needs --label COLUMN"),
        (["--without", "gaia"], "--without: needs --label COLUMN"),
        (["--merge", "A,B=C"], "--merge: needs --label COLUMN"),
        (["--min-class", "5"], "--min-class: needs --label COLUMN"),
        (["--label", "kind"], "no column 'kind'"),
        (["--label", "class", "--methods", "magic"], "no method 'magic'"),
        (["--label", "class", "--without", "wise"], "no feature 'wise'"),
        (["--label", "class", "--folds", "none"], "--folds: none is for filling"),
        (["--label", "id"], "120 different values, none in 2 rows or more: is it an"),
        (["--label", "id", "--min-class", "50"], "none in 50 rows or more: is it an"),
        (["--label", "class", "--columns", "V,class"], "must not be learned: class (label)"),
    ],
)
def test_mistakes_with_labels_are_one_line_and_exit_code_2(run, labelled, words, message):
    done = run(labelled, *words)
    assert done.exit_code == 2
    assert message in done.stderr
