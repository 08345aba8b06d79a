"""Rows of one object are found, and never on both sides of a fold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import Table
from skyfill.classify.repeats import find_groups
from skyfill.classify.training_set import deal_folds

NAMES = ("V", "I", "P")


def table(ids, rows):
    columns = dict(zip(NAMES, np.array(rows, float).T, strict=True))
    return Table.from_columns({"id": ids, **columns})


def test_rows_of_one_object_have_the_same_identifier_or_equal_values():
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [4, 5, 6], [1, 1, 1]]
    groups = find_groups(table(["a", "b", "c", "d", "a"], rows), NAMES)
    assert groups.column == "id"
    assert groups.codes[0] == groups.codes[4]
    assert groups.codes[1] == groups.codes[3]
    assert len(set(groups.codes.tolist())) == 3
    assert groups.n_repeated == 2


def test_a_named_column_alone_decides():
    rows = [[1, 2, 3], [1, 2, 3], [7, 8, 9]]
    groups = find_groups(table(["a", "b", "a"], rows), NAMES, "id")
    assert groups.codes.tolist() == [0, 1, 0]


def test_a_column_that_names_fields_does_not_name_objects():
    groups = find_groups(table(["f1"] * 5 + ["f2"] * 5, np.arange(30).reshape(10, 3)), NAMES)
    assert (groups.column, groups.n_repeated) == (None, 0)


def test_rows_with_few_values_or_no_identifier_are_objects_of_their_own():
    rows = [[1, 2, np.nan], [1, 2, np.nan], [np.nan] * 3, [np.nan] * 3]
    assert find_groups(table([None, None, "a", "b"], rows), NAMES).n_repeated == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=4, max_size=60),
       st.integers(2, 5))  # fmt: skip
def test_folds_never_divide_an_object(rows, n_folds):
    codes, groups = (np.array(column) for column in zip(*rows, strict=True))
    fold = deal_folds(codes, n_folds, np.random.default_rng(0), groups)
    for group in np.unique(groups):
        assert len(set(fold[groups == group].tolist())) == 1


def test_without_repeated_objects_the_folds_are_those_without_groups():
    codes = np.repeat([0, 1, 2], 20)
    plain, grouped = (
        deal_folds(codes, 4, np.random.default_rng(1), groups) for groups in (None, np.arange(60))
    )
    assert np.array_equal(plain, grouped)


@pytest.mark.parametrize("n", [0, 1])
def test_small_tables_have_groups_too(n):
    empty = table(["a"], [[1, 2, 3]])
    assert len(find_groups(Table(empty.arrow.slice(0, n)), NAMES).codes) == n
