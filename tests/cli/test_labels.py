"""Columns of classes as people write them, in `train`, `inspect` and `evaluate` alike."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, write_table
from skyfill.cli import main

QUICK = ["--components", "1", "--fits", "1", "--method", "forest", "--trees", "10"]


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture(scope="module")
def stars(tmp_path_factory):
    """Three classes, and a third of the rows without one, in the words of six people."""
    rng, n = np.random.default_rng(0), 240
    kinds = ["agn", "psr", "snr", "agn", "psr", "snr", "unid", "UNID ", "?"] * 30
    kinds = [*kinds[: n - 3], "pwn", "AGN", "AGN"]
    x = rng.normal(size=(n, 2)) + 3 * (np.array(kinds) == "psr")[:, None]
    path = tmp_path_factory.mktemp("labels") / "stars.parquet"
    write_table(Table.from_columns({"flux": x[:, 0], "index": x[:, 1], "kind": kinds}), path)
    return path


SAID = "labels that count as unlabelled: unid (26 rows), UNID (26 rows), ? (26 rows)"
ALIKE = "differ only in blanks, case or a colon at the end: 'AGN' and 'agn'"


def test_all_commands_say_which_labels_count_as_none(stars, tmp_path):
    train = run("train", stars, "--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill", "--json")
    inspect = run("inspect", stars, "--label", "kind", "--json")
    evaluate = run("evaluate", stars, "--label", "kind", "--methods", "nan-forest", "--folds", "2")
    for done in (train, inspect, evaluate):
        assert done.exit_code == 0, done.output
        assert done.stderr.count(SAID) == 1, done.stderr
        assert done.stderr.count(ALIKE) == 1
        assert "fewer than 2 objects count as unlabelled: pwn (1)" in done.stderr
    counts = {"agn": 53, "psr": 53, "snr": 53, "AGN": 2}
    assert json.loads(train.stdout)["classes"] == counts
    assert json.loads(inspect.stdout)["classes"] == counts | {"pwn": 1}
    assert json.loads(inspect.stdout)["unlabelled"] == 78


def test_a_schema_keeps_the_words_as_classes_or_adds_some(stars, tmp_path):
    model = tmp_path / "m.skyfill"
    keep = ["--declare", "columns.kind.sentinels = []", "--merge", "AGN=agn", "--json"]
    done = run("train", stars, "--label", "kind", *QUICK, *keep, "-o", model)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"] == {
        "agn": 55, "psr": 53, "snr": 53, "unid": 26, "UNID": 26, "?": 26,
    }  # fmt: skip
    assert "unlabelled: unid" not in done.stderr
    add = ["--declare", 'columns.kind.sentinels = ["SNR", "agn"]', "--json"]
    done = run("train", stars, "--label", "kind", *QUICK, *add, "-o", model)
    assert done.exit_code == 2  # psr alone is left
    assert "all labels are of one class, psr" in done.stderr


def test_out_of_core_takes_the_same_labels(stars, tmp_path):
    model = tmp_path / "m.skyfill"
    done = run("train", stars, "--label", "kind", *QUICK, "--out-of-core", "--json", "-o", model)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"] == {"agn": 53, "psr": 53, "snr": 53, "AGN": 2}
    assert SAID in done.stderr


def test_a_word_that_is_merged_is_a_class(stars, tmp_path):
    merge = ["--merge", "unid,UNID=new", "--json", "-o", tmp_path / "m.skyfill"]
    done = run("train", stars, "--label", "kind", *QUICK, *merge)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"]["new"] == 52


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["agn", "unid"], "all labels are of one class, agn"),
        (["?", "none"], "column 'kind': no label"),
        (range(1000), "1000 different values, .*is it an identifier"),
    ],
)
def test_what_is_no_column_of_classes_is_refused_everywhere(kinds, message, tmp_path):
    import re

    path, kinds = tmp_path / "stars.parquet", [str(kind) for kind in kinds]
    kinds = kinds * (20 if len(kinds) < 10 else 1)
    x = np.random.default_rng(0).normal(size=(2, len(kinds)))
    write_table(Table.from_columns({"J": x[0], "K": x[1], "kind": kinds}), path)
    for words in (
        ["train", path, "--label", "kind", "-o", tmp_path / "m.skyfill"],
        ["train", path, "--label", "kind", "--out-of-core", *QUICK, "-o", tmp_path / "m.skyfill"],
        ["evaluate", path, "--label", "kind"],
    ):
        done = run(*words)
        assert done.exit_code == 2, done.output
        assert re.search(message, done.stderr), done.stderr
        assert not (tmp_path / "m.skyfill").exists()
    done = run("inspect", path, "--label", "kind")
    assert done.exit_code == 0
    assert re.search(f"train would refuse this label: .*{message}", done.stderr)


def test_a_name_that_is_no_column_is_answered_with_the_nearest(stars, tmp_path):
    for words in (["train", stars, "-o", tmp_path / "m"], ["inspect", stars], ["evaluate", stars]):
        done = run(*words, "--label", "kinds")
        assert done.exit_code == 2
        assert "no column 'kinds'" in done.stderr
        assert "kind" in done.stderr.split("no column 'kinds'")[1]
