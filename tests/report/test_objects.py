"""Results tables: columns for the page, samples of long files."""

import numpy as np
import pytest

from skyfill.catalog import Table, write_table
from skyfill.errors import CatalogError
from skyfill.report import read_results
from skyfill.report.gaps import count_gaps
from skyfill.report.objects import export_objects, gather_results
from skyfill.report.page_data import unpack

from .conftest import CLASSES


def gather(table, model, most=10_000, cuts=1):
    step = -(-len(table) // cuts)
    parts = [Table(table.arrow.slice(s, step)) for s in range(0, len(table), step)]
    return gather_results(parts, model.features, most, empty=Table(table.arrow.slice(0, 0)))


def test_objects_keep_values_classes_and_names(results, model):
    found = export_objects(gather(results, model), model)
    np.testing.assert_array_equal(unpack(found["values"]), results.numbers(*model.names))
    assert found["classes"] == list(CLASSES)
    names = [CLASSES[code] for code in unpack(found["predicted"])]
    assert names == results.column("class").to_pylist()
    assert found["ids"] == results.column("id").to_pylist()
    assert found["label"]["name"] == "class (label)"
    assert list(found["facts"]) == ["entropy"]


def test_a_catalog_without_names_places_or_classes_is_shown_too(catalog, model):
    found = export_objects(gather(catalog, model), model)
    assert found["ids"][:2] == ["row 1", "row 2"]
    assert found["position"] is None
    assert found["classes"] == []
    assert found["predicted"] is None


def test_a_sample_does_not_depend_on_how_the_file_is_cut(results, model):
    whole, cut = gather(results, model, 20), gather(results, model, 20, cuts=7)
    assert whole.table.arrow.equals(cut.table.arrow)
    assert len(cut.table) == 20
    assert cut.n_rows == 60


def test_gaps_are_counted_over_all_rows_of_a_sampled_file(results_file, results, model):
    found = read_results(results_file, model.features, 5)
    np.testing.assert_array_equal(found.gaps.counts, count_gaps(results, model.features).counts)
    ids = found.table.column("id").to_pylist()
    order = results.column("id").to_pylist()
    assert sorted(ids, key=order.index) == ids


def test_a_table_of_another_model_is_refused(model, tmp_path):
    write_table(Table.from_columns({"x": [1.0]}), tmp_path / "other.csv")
    with pytest.raises(CatalogError, match=r"other\.csv: has none of the model's features"):
        read_results(tmp_path / "other.csv", model.features)


def test_the_next_measurement_is_a_sentence(results, model):
    n = len(results)
    table = results.with_column("next", ["J", *[None] * (n - 1)])
    table = table.with_column("next_bits", np.full(n, 0.25))
    said = export_objects(gather(table, model), model)["next"]
    assert said[0].startswith("Measuring J is expected to reduce")
    assert "0.25 bit" in said[0]
    assert said[1] is None


def test_columns_of_a_candidate_list_come_along(results, model):
    n = len(results)
    table = results.with_column("rank", np.arange(n)).with_column("new", [True, *[False] * (n - 1)])
    table = table.with_column("in_kim2012", [False] * n).with_column("evidence_for", ["V, I"] * n)
    found = {e["name"]: e for e in export_objects(gather(table, model), model)["extras"]}
    assert list(found) == ["rank", "new", "in kim2012", "evidence for"]
    assert found["rank"]["number"]
    assert found["new"]["values"][:2] == ["yes", "no"]
    assert found["evidence for"]["values"][0] == "V, I"


def test_objects_of_one_name_are_told_apart(results, model):
    n = len(results)
    table = results.with_column("id", ["twin", "twin", None, *map(str, range(n - 3))])
    ids = export_objects(gather(table, model), model)["ids"]
    assert ids[:4] == ["twin (row 1)", "twin (row 2)", "row 3", "0"]
