"""Laws: neither classes nor draws depend on how an input is cut, and no draws are made twice."""

import numpy as np
import pyarrow as pa
import pytest

from skyfill.catalog import Schema, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.impute import NetworkImputer
from skyfill.model import Filling, Scoring, classify_table, fill_table, train_classifier
from skyfill.scale import Run, apply_model
from skyfill.scale.inputs import plan_parts
from tests.stars import make_table

DRAWS = ("I_draw1", "I_draw2")
NAMED = Schema.from_options(roles=["id=identifier"])


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr("skyfill.scale.inputs.BATCH_ROWS", 16)


@pytest.fixture(scope="module")
def judge():
    """A classifier of objects that all have V."""
    table = make_table(300)
    names = ["RRL" if v < 18 else "QSO" for v in table.numbers("V")[:, 0]]
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1, refine=None))
    return train_classifier(table.with_column("kind", names), ["V", "I"], "kind", classifier=small)[
        0
    ]


def strange_table(n=70):
    """Objects of which some lack V, as no object of the training set does."""
    table = make_table(n, seed=5)
    v = np.where(np.arange(n) % 3 == 0, np.nan, table.numbers("V")[:, 0])
    return table.with_column("V", v)


def take(table, rows):
    return Table(table.arrow.take(pa.array(rows, pa.int64())))


def write_folder(table, folder, sizes):
    """Write a table as files of these sizes, one of which may be empty."""
    folder.mkdir()
    ends = np.cumsum([0, *sizes])
    for k, (start, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        write_table(take(table, range(start, end)), folder / f"part{k}.parquet")
    return folder


def results(work, model, table, folder, rules=None):
    """What files of all kinds and folders give for a table."""
    catalogs = [folder / f"in.{end}" for end in ("parquet", "csv", "fits")]
    for catalog in catalogs:
        write_table(table, catalog)
    sizes = (23, 0, 1, len(table) - 24)
    catalogs.append(write_folder(table, folder / "parts", sizes))
    for k, catalog in enumerate(catalogs):
        apply_model(
            work, model, catalog, folder / f"{k}.parquet", rules=rules, run=Run(part_rows=16)
        )
        yield read_table(folder / f"{k}.parquet")


def test_the_class_of_a_row_does_not_depend_on_how_an_input_is_cut(judge, tmp_path):
    table = strange_table()
    expected = classify_table(judge, table)
    names = ("sf_p_QSO", "sf_p_RRL", "sf_entropy", "sf_gap_share", "sf_outlier_score")
    share = expected.numbers("sf_gap_share")[:, 0]
    assert (share > 0).sum() > 10
    for found in results(Scoring(), judge, table, tmp_path):
        assert found.numbers(*names).tobytes() == expected.numbers(*names).tobytes()
        assert found.column("sf_class").to_pylist() == expected.column("sf_class").to_pylist()
    for row in range(0, 70, 7):
        alone = classify_table(judge, take(table, [row])).numbers(*names)
        assert alone.tobytes() == expected.numbers(*names)[row].tobytes()


@pytest.mark.parametrize("rules", [None, NAMED], ids=["by number", "by identifier"])
def test_draws_do_not_depend_on_how_an_input_is_cut(star_model, rules, tmp_path):
    table, work = strange_table(), Filling(n_draws=2)
    expected = fill_table(star_model, (rules or Schema()).apply(table), work).numbers(*DRAWS)
    for found in results(work, star_model, table, tmp_path, rules):
        assert np.array_equal(found.numbers(*DRAWS), expected, equal_nan=True)


def test_draws_of_a_named_object_are_the_same_in_any_order_and_company(star_model):
    table, work = NAMED.apply(strange_table()), Filling(n_draws=2)
    expected = fill_table(star_model, table, work).numbers(*DRAWS)
    rows = np.random.default_rng(0).permutation(70)[:40]
    found = fill_table(star_model, take(table, rows), work).numbers(*DRAWS)
    assert np.array_equal(found, expected[rows], equal_nan=True)
    words = table.with_column("id", [f"{i}" for i in range(70)])
    assert np.array_equal(
        fill_table(star_model, words, work).numbers(*DRAWS), expected, equal_nan=True
    )


def test_no_draws_are_made_twice(star_model, tmp_path):
    """Equal rows in two batches, two files, and with two seeds: each has draws of its own."""
    once = take(make_table(300), np.flatnonzero(np.isnan(make_table(300).numbers("I")[:, 0]))[:16])
    twice = take(once, [*range(16), *range(16)])
    write_table(twice, tmp_path / "in.parquet")
    folder = write_folder(twice, tmp_path / "in", (16, 16))
    found = []
    for catalog in (tmp_path / "in.parquet", folder):
        for seed in (0, 1):
            apply_model(
                Filling(n_draws=2, seed=seed), star_model, catalog, tmp_path / "out.parquet"
            )
            found.append(read_table(tmp_path / "out.parquet").numbers(*DRAWS))
    file, folder = found[:2], found[2:]
    assert np.array_equal(file, folder)
    assert len(np.unique(file)) == np.size(file)


def test_rows_without_an_identifier_have_draws_by_their_number(star_model):
    table = take(make_table(300), np.flatnonzero(np.isnan(make_table(300).numbers("I")[:, 0]))[:5])
    ids = pa.array(["a", None, "b", "  ", "a"])
    table = take(table, [0] * 5).with_column("id", ids).with_info("id", role="identifier")
    first, null, other, blank, again = fill_table(star_model, table, Filling(n_draws=1)).numbers(
        "I_draw1"
    )[:, 0]
    assert first == again
    assert len({first, null, other, blank}) == 4
    two = table.with_column("id", ["", "", "a", "b", "c"]).with_info("id", role="identifier")
    assert len(set(fill_table(star_model, two, Filling(n_draws=1)).numbers("I_draw1")[:, 0])) == 5


def test_parts_know_the_numbers_of_their_rows_in_all_files(tmp_path):
    folder = write_folder(make_table(100), tmp_path / "in", (40, 0, 25, 35))
    found = [
        (first, int(table.numbers("id")[0, 0]))
        for part in plan_parts([folder], part_rows=16)
        for first, table in part.tables()
        if len(table)
    ]
    assert found == [(first, first) for first, _ in found]
    assert len(found) == 3 + 2 + 3
