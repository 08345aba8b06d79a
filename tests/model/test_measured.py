"""What a model filled is a gap again to every command, with the reason that it had before."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Table, read_table, with_guessed_roles, write_table
from skyfill.catalog.filled_names import known_by_name
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Filling,
    before_filling,
    cells_of,
    classify_table,
    fill_table,
    load_model,
    save_model,
    train,
    train_classifier,
)
from skyfill.model.results import EVIDENCE, NUMBERS, PREFIX, probability_columns
from skyfill.scale import train_file
from tests.model.test_cells import survey

NAMES = ["V", "K", "H"]
FORMATS = ["parquet", "fits", "vot", "ecsv", "csv"]
OPTIONS = {"n_components": 1, "n_fits": 1, "errors": "on", "calibrate": False, "refine": None}


def table_of(n=400, seed=0):
    """`survey` with a third band that lacks values without a reason, and two classes."""
    table, true = survey(n, seed)
    rng = np.random.default_rng(seed + 100)
    y = rng.choice(["QSO", "RRL"], n)
    h = np.where(rng.random(n) < 0.3, np.nan, true - 0.2 + 0.5 * (y == "QSO"))
    table = table.with_column("H", h, ColumnInfo("mag", "phot.mag;em.IR.H", role=Role.FEATURE))
    table = table.with_column("id", [f"s{i}" for i in range(n)], ColumnInfo(role=Role.IDENTIFIER))
    return table.with_column("kind", y, ColumnInfo(role=Role.LABEL))


def small():
    imputer = NetworkImputer(1, n_fits=1, refine=None)
    return CatalogClassifier("forest", n_trees=20, n_folds=2, imputer=imputer, random_state=0)


@pytest.fixture(scope="module")
def model():
    return train_classifier(table_of(), NAMES, "kind", classifier=small(), errors="on")[0]


@pytest.fixture(scope="module")
def filler():
    return train(table_of(), NAMES, **OPTIONS)[0]


def results_of(model, table):
    done = classify_table(model, table)
    numbers = [PREFIX + name for name in NUMBERS]
    names = [*probability_columns(done.names, PREFIX).values(), *numbers]
    return done.numbers(*names)


def written(table, folder, extension):
    write_table(table, folder / f"t.{extension}")
    return read_table(folder / f"t.{extension}")


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("kept", [["V", "K", "H"], ["V", "K"], ["V"]])
def test_a_filled_table_is_classified_as_it_was_before(model, filler, tmp_path, extension, kept):
    table = table_of(200, seed=1)
    beside = [n for n in table.names if table.info(n).of in kept]
    table = written(table.select(["id", *kept, *beside]), tmp_path, extension)
    done = fill_table(filler, table, Filling((0.16,), n_draws=1, denoise=True))
    done = written(done, tmp_path, extension)
    assert not np.isnan(done.numbers(*NAMES)).any()
    assert_array_equal(results_of(model, done), results_of(model, table))
    assert_array_equal(cells_of(model, done)[0].lower, cells_of(model, table)[0].lower)
    # Filled values stay in the table that is classified.
    assert classify_table(model, done).select(done.names).arrow.equals(done.arrow)


def test_without_roles_names_tell_which_values_were_filled(filler, tmp_path):
    """As after a program that keeps names and values alone, as in a plain CSV file."""
    table = table_of(100, seed=2)
    done = fill_table(filler, table)
    bare = Table(done.arrow.replace_schema_metadata(None))
    bare = Table.from_columns({name: bare.column(name) for name in bare.names})
    again = before_filling(known_by_name(bare))
    assert_array_equal(again.numbers(*NAMES), table.numbers(*NAMES))
    assert again.column("K_gap").to_pylist() == table.reasons("K").to_pylist()


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), prefix=st.sampled_from(["", "sf_"]),
       other=st.sampled_from(["", "sf_", "x_"]), data=st.data())  # fmt: skip
def test_a_second_fill_starts_from_what_was_measured(filler, seed, n, prefix, other, data):
    table = table_of(n, seed=seed)
    gone = data.draw(st.sets(st.sampled_from(["V", "K", "H", "K_gap", "K_limit", "e_K"])))
    table = table.drop(gone)
    first = fill_table(filler, table, Filling((0.16,), n_draws=1, prefix=prefix))
    assert before_filling(first).select(table.names).arrow.to_pylist() == table.arrow.to_pylist()
    again = fill_table(filler, first, Filling((0.16,), n_draws=1, prefix=prefix))
    assert again.arrow.equals(first.arrow)
    # Under another prefix, and with other quantiles, nothing is left of the first run.
    second = fill_table(filler, first, Filling((0.84,), prefix=other))
    fresh = fill_table(filler, table, Filling((0.84,), prefix=other))
    assert_array_equal(second.numbers(*NAMES), fresh.numbers(*NAMES))
    assert_array_equal(second.numbers(f"{other}K_q84"), fresh.numbers(f"{other}K_q84"))
    assert not {f"{prefix}K_q16", f"{prefix}K_draw1"} & set(second.names)


def test_a_cell_measured_since_then_is_no_gap(filler):
    table = table_of(60, seed=3)
    done = fill_table(filler, table)
    values, words = done.numbers("K")[:, 0].copy(), done.reasons("K").to_pylist()
    row = words.index("filled")
    values[row], words[row] = 15.5, None
    done = done.with_column("K", values).with_reasons("K", words)
    assert fill_table(filler, done).numbers("K")[row, 0] == 15.5
    assert cells_of(filler, done)[0].values[row, 1] == 15.5


@pytest.mark.parametrize("extension", FORMATS)
def test_a_filled_table_teaches_what_it_taught_before(filler, tmp_path, extension):
    table = written(table_of(300, seed=4), tmp_path, extension)
    # In plain CSV only its name tells that a column is an error.
    table = with_guessed_roles(table)
    done = written(fill_table(filler, table, Filling((0.16,))), tmp_path, extension)
    done = with_guessed_roles(done)
    found, wanted = (train(t, NAMES, **OPTIONS)[0] for t in (done, table))
    assert found.identifier == wanted.identifier
    found, wanted = (
        train_classifier(t, NAMES, "kind", classifier=small(), errors="on")[0]
        for t in (done, table)
    )
    assert found.identifier == wanted.identifier


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_filled_file_teaches_what_it_taught_before(filler, tmp_path, is_plain):
    table = table_of(900, seed=5)
    if is_plain:
        table = table.drop(["K_gap", "K_limit", "e_K"])
    options = {**OPTIONS, "errors": "off" if is_plain else "on", "sample_rows": 300}
    found = []
    for each in (table, fill_table(filler, table)):
        write_table(each, tmp_path / "t.parquet")
        found.append(train_file(tmp_path / "t.parquet", NAMES, **options).model.identifier)
    assert found[0] == found[1]


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory, model, filler):
    folder = tmp_path_factory.mktemp("filled")
    save_model(model, folder / "m.skyfill")
    save_model(filler, folder / "filler.skyfill")
    write_table(table_of(300, seed=6), folder / "before.parquet")
    run("impute", folder / "filler.skyfill", folder / "before.parquet", "-o",
        folder / "after.parquet")  # fmt: skip
    return folder


QUICK = ("--features", ",".join(NAMES), "--components", "1", "--fits", "1", "--refine", "off")


@pytest.mark.parametrize("how", [["--in-memory"], ["--out-of-core"]])
@pytest.mark.parametrize("label", [[], ["--label", "kind", "--trees", "5", "--method", "forest"]])
def test_train_learns_the_same_model(files, tmp_path, how, label):
    found = []
    for name in ("before", "after"):
        words = (*QUICK, *how, *label, "--errors", "on", "-o", tmp_path / "t.skyfill")
        run("train", files / f"{name}.parquet", *words)
        found.append(load_model(tmp_path / "t.skyfill"))
    assert found[0].identifier == found[1].identifier


def timeless(facts):
    """Leave out what took how long."""
    if isinstance(facts, list):
        return [timeless(each) for each in facts]
    if not isinstance(facts, dict):
        return facts
    return {name: timeless(each) for name, each in facts.items() if "seconds" not in name}


@pytest.mark.parametrize(
    "words",
    [
        ["--methods", "mean,knn", "--repeats", "1", "--rates", "10"],
        ["--label", "kind", "--methods", "nan-forest", "--folds", "2"],
    ],
)
def test_evaluate_hides_measured_cells_only(files, words):
    how = ("--columns", "V,K,H", "--json", *words)
    found = (run("evaluate", files / f"{n}.parquet", *how).stdout for n in ("before", "after"))
    before, after = (timeless(json.loads(text)) for text in found)
    # What the model wrote is listed, too.
    listed, more = before.pop("columns"), after.pop("columns")
    assert {name: more[name] for name in listed} == listed
    assert before == after


def test_candidates_next_and_the_page_explain_what_was_measured(files, tmp_path):
    found = []
    for name in ("before", "after"):
        classes, listed = tmp_path / f"{name}.parquet", tmp_path / "candidates.parquet"
        run("classify", files / "m.skyfill", files / f"{name}.parquet", "-o", classes)
        run("candidates", classes, "--class", "QSO", "--min-probability", "0.1", "--model",
            files / "m.skyfill", "-o", listed)  # fmt: skip
        columns = ["id", *(f"sf_{n}" for n in ("rank", "probability", *EVIDENCE))]
        gains = run("next", files / "m.skyfill", files / f"{name}.parquet", "--json").stdout
        found.append((read_table(listed).select(columns).arrow.to_pylist(), gains))
        run("report", files / "m.skyfill", classes, "-o", tmp_path / f"{name}.html")
    assert found[0] == found[1]
    pages = [(tmp_path / f"{name}.html").read_text() for name in ("before", "after")]
    before, after = (re.search(r'"values":\{[^}]*\}', page)[0] for page in pages)
    assert before == after
