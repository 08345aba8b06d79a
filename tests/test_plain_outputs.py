"""What every command writes as plain CSV is a table like any other: nothing of it reads as data."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from astropy.io import ascii as astropy_text
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.model import load_model

N = 260
FEATURES = ("V", "I", "K")
SMALL = [
    "--components",
    "1",
    "--fits",
    "1",
    "--refine",
    "off",
    "--method",
    "forest",
    "--trees",
    "5",
]
# Each writes a file from the files before it.
COMMANDS = {
    "matched.csv": "match stars.csv near.csv --radius 1",
    "filled.csv": "impute m.skyfill stars.csv --quantiles 0.16,0.975 --draws 2",
    "filled_matched.csv": "impute m.skyfill matched.csv",
    "classified.csv": "classify m.skyfill stars.csv",
    "both.csv": "classify m.skyfill filled.csv",
    "filled_last.csv": "impute m.skyfill classified.csv",
    "ranked.csv": "candidates classified.csv --class QSO --min-probability 1e-9 --compare near.csv "
    "--model m.skyfill",
    "planned.csv": "next m.skyfill ranked.csv",
    "published.csv": "publish both.csv",
    "twice.csv": "classify m.skyfill planned.csv",
    "without.csv": "classify m.skyfill bare.csv",
    "filled_without.csv": "impute m.skyfill bare.csv",
    "whole.csv": "impute m.skyfill complete.csv",
}


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def stars(seed=0):
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(N) < 0.4, "QSO", "RRL")
    V = rng.normal(18, 1, N)
    I = V - 0.5 - 0.5 * (kind == "QSO") + rng.normal(0, 0.2, N)  # noqa: E741 - the band
    columns = {"V": V, "e_V": rng.uniform(0.01, 0.1, N), "I": I, "K": I - rng.normal(1, 0.3, N)}
    for name, share in (("I", 0.3), ("K", 0.5)):
        columns[name] = np.where(rng.random(N) < share, np.nan, columns[name])
    places = {"ra": rng.uniform(80, 81, N), "dec": rng.uniform(-69, -68, N)}
    ids = 4_650_000_000_000_000_001 + rng.permutation(N)
    return Table.from_columns({"source_id": ids, **places, **columns, "var_class": kind})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        table = stars()
        write_table(table, "stars.csv")
        write_table(table.drop(["K"]), "bare.csv")
        rows = ~np.isnan(table.numbers(*FEATURES)).any(axis=1)
        write_table(Table(table.arrow.filter(rows)), "complete.csv")
        near = table.select(["source_id", "ra", "dec"])
        write_table(near.with_column("J", table.numbers("V")[:, 0] - 2), "near.csv")
        run("train", "stars.csv", "--label", "var_class", *SMALL, "-o", "m.skyfill")
        for name, words in COMMANDS.items():
            run(*words.split(), "-o", name)
    return folder


def originals(name):
    """The table that a file was made from."""
    words = {"without": "bare.csv", "whole": "complete.csv"}
    return next((file for word, file in words.items() if word in name), "stars.csv")


def rows_of(table, *names):
    """Numbers by identifier, to the bit."""
    ids = table.column("source_id").to_pylist()
    order = np.argsort(np.array(ids))
    return table.numbers(*names)[order].view(np.int64).tolist()


@pytest.mark.parametrize("name", COMMANDS)
def test_train_takes_the_features_and_nothing_that_skyfill_wrote(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("train", name, "--label", "var_class", *SMALL, "-o", "again.skyfill")
    found = set(load_model("again.skyfill").names)
    expected = set(FEATURES) - ({"K"} if "without" in name else set())
    assert found == (expected | {"J_near"} if "matched" in name else expected)


@pytest.mark.parametrize("name", COMMANDS)
def test_classify_says_of_every_output_what_it_says_of_the_table(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("classify", "m.skyfill", name, "-o", "out.csv")
    run("classify", "m.skyfill", originals(name), "-o", "first.csv")
    found, first = read_table("out.csv"), read_table("first.csv")
    names = [each for each in first.names if each.startswith("sf_") and each != "sf_class"]
    assert [each for each in found.names if each in first.names and each.startswith("sf_")] == [
        each for each in first.names if each.startswith("sf_")
    ]
    assert rows_of(found, *names) == rows_of(first, *names)
    # Behind the identifier.
    place = found.names.index("source_id") + 1
    assert found.names[place : place + 2] == ("sf_class", "sf_p_QSO")


@pytest.mark.parametrize("name", COMMANDS)
def test_impute_fills_every_output_as_it_fills_the_table(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("impute", "m.skyfill", name, "-o", "out.csv")
    run("impute", "m.skyfill", originals(name), "-o", "first.csv")
    found, first = read_table("out.csv"), read_table("first.csv")
    names = [each for f in FEATURES for each in (f, f"{f}_sd")]
    assert rows_of(found, *names) == rows_of(first, *names)
    for each in FEATURES:
        place = found.names.index(each)
        assert {f"{each}_sd", f"{each}_gap"} <= set(found.names[place + 1 : place + 9])
        assert not any(f.startswith(f"{each}_q") for f in found.names)


@pytest.mark.parametrize("name", COMMANDS)
def test_report_shows_every_output(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("report", "m.skyfill", name, "-o", "page.html")
    page = (folder / "page.html").read_text()
    has_classes = any(each.startswith("sf_p_") for each in read_table(name).names)
    assert ('"predicted":null' in page) is not has_classes


@pytest.mark.parametrize("name", COMMANDS)
def test_other_programs_read_every_output_to_the_same_values(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    ours = read_table(name)
    frames = [
        pd.read_csv(name, dtype={"source_id": "Int64"}),
        pl.read_csv(name, infer_schema_length=None),
        astropy_text.read(name, format="csv", fast_reader=False),
    ]
    for frame in frames:
        columns = frame.colnames if hasattr(frame, "colnames") else list(frame.columns)
        assert columns == list(ours.names)
        assert [int(each) for each in frame["source_id"]] == ours.column("source_id").to_pylist()
        for each in ("ra", "V", "I"):
            wanted = ours.column(each).to_numpy()
            cells = np.ma.filled(np.ma.masked_invalid(np.ma.asarray(frame[each], float)), np.nan)
            assert np.array_equal(cells, wanted, equal_nan=True)
    assert {str(frames[0][n].dtype) for n in ours.names if n == "sf_outlier"} <= {"bool"}


def test_a_column_of_the_user_is_no_result_because_it_has_such_an_end(folder, monkeypatch):
    monkeypatch.chdir(folder)
    table = stars(1).with_column("V_sd", np.random.default_rng(0).uniform(0.1, 0.2, N))
    write_table(table.with_column("sf_rate", table.numbers("V")[:, 0] ** 2), "own.csv")
    run("train", "own.csv", "--label", "var_class", *SMALL, "-o", "own.skyfill")
    assert set(load_model("own.skyfill").names) == {*FEATURES, "sf_rate"}
    done = CliRunner().invoke(main, ["impute", "own.skyfill", "own.csv", "-o", "refused.csv"])
    assert done.exit_code == 2
    assert "'V_sd' has the name of a result" in done.stderr
