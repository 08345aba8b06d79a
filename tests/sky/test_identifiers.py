import numpy as np
import pytest

from skyfill.catalog import Table
from skyfill.errors import CatalogError
from skyfill.sky import MatchRules, Survey, join_surveys

BASE = Table.from_columns({"id": ["a", "b", None, "a"], "V": [15.0, 16.0, 17.0, 18.0]})


def joined(names, **columns):
    survey = Survey("lc", Table.from_columns({"id": names, **columns}), 0.0, key="id")
    return join_surveys(BASE, [survey], MatchRules())


def test_rows_with_the_same_identifier_stand_side_by_side():
    table, (report,) = joined(["z", "a"], period=[1.0, 2.0])
    assert table.column("period_lc").to_pylist() == [2.0, None, None, 2.0]
    assert table.reasons("period_lc").to_pylist() == [None, "unmatched", "unmatched", None]
    assert table.column("flag_lc").to_pylist() == ["matched", "unmatched", "unmatched", "matched"]
    assert (report.matched, report.unmatched, report.key) == (2, 2, "id")


def test_neither_table_needs_positions_and_no_separation_is_claimed():
    table, _ = joined(["a"], period=[1.0])
    assert np.isnan(table.numbers("sep_lc")).all()


def test_numbers_and_texts_compare_as_texts():
    base = Table.from_columns({"id": ["7", " 8 "]})
    survey = Survey("n", Table.from_columns({"id": [8, 7], "x": [1.0, 2.0]}), 0.0, key="id")
    table, _ = join_surveys(base, [survey], MatchRules())
    assert table.column("x_n").to_pylist() == [2.0, 1.0]


def test_an_identifier_that_stands_twice_is_refused_by_name():
    with pytest.raises(CatalogError, match="lc: 'b' is in 2 rows of column 'id'"):
        joined(["b", "b"], period=[1.0, 2.0])


def test_a_column_that_is_not_there_is_named_with_its_owner():
    survey = Survey("lc", Table.from_columns({"name": ["a"]}), 0.0, key="name")
    with pytest.raises(CatalogError, match="the base: no column 'name'"):
        join_surveys(BASE, [survey], MatchRules())


def test_advice_where_no_identifier_is_known():
    _, (report,) = joined(["y"], period=[1.0])
    assert "none of the identifiers" in report.advice
