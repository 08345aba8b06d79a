"""Labels as people write them: which words mean no class, everywhere and in any spelling."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import Schema, Table
from skyfill.catalog.class_labels import UNLABELLED, class_texts, label_texts, look_alike
from skyfill.classify.training_set import ClassCounts

BLANKS = st.sampled_from(["", " ", "\t", "  "])
NONE = st.builds(
    lambda before, word, change, after: before + change(word) + after,
    BLANKS, st.sampled_from(sorted(UNLABELLED)), st.sampled_from([str, str.upper, str.title]),
    BLANKS,
)  # fmt: skip
CLASS = st.sampled_from(["RRL", "QSO", "Be star", "bcu", "other", "nova", "unidentical"])
ROWS = st.lists(st.one_of(NONE, CLASS, st.none(), BLANKS), min_size=1, max_size=40)


@given(ROWS)
def test_words_that_mean_no_class_are_no_labels_in_any_case_with_any_blanks(rows):
    table, kinds = Table.from_columns({"kind": pa.array(rows, pa.string())}), set(CLASS.elements)
    wanted = [row if row in kinds else None for row in rows]
    assert class_texts(table, "kind").tolist() == wanted
    counts = ClassCounts.of(table, "kind", Schema().unlabelled("kind"))
    assert counts.classes.total() + counts.without == len(rows)
    blank = sum(row is None or not row.strip() for row in rows)
    assert counts.words.total() == counts.without - blank


@given(ROWS)
def test_parts_of_a_table_are_counted_as_the_table(rows):
    words = Schema().unlabelled("kind")
    first, second, whole = (
        ClassCounts.of(Table.from_columns({"kind": pa.array(part, pa.string())}), "kind", words)
        for part in (rows[::2], rows[1::2], rows)
    )
    assert first + second == whole


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ("", ["RRL", None, None, "junk", "JUNK "]),
        ('columns.kind.sentinels = ["Junk"]', ["RRL", None, None, None, None]),
        ("columns.kind.sentinels = []", ["RRL", "unid", "?", "junk", "JUNK "]),
    ],
)
def test_a_schema_adds_such_words_or_keeps_them_all(schema, wanted):
    table = Table.from_columns({"kind": ["RRL", "unid", "?", "junk", "JUNK "]})
    rules = Schema.from_toml(schema)
    found = class_texts(rules.apply(table), "kind", rules.unlabelled("kind")).tolist()
    assert found == [word and word.strip() for word in wanted]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, None, 2.0, float("nan")]),
        pa.array(["1.0", "", "2.0", "nan"]).dictionary_encode(),
        pa.array(["1.0", None, "2.0 ", "NaN"]),
    ],
    ids=["numbers", "categories", "text"],
)
def test_nan_is_no_label_in_any_type_of_column(column):
    table = Table.from_columns({"kind": column})
    assert class_texts(table, "kind").tolist() == ["1.0", None, "2.0", None]


def test_a_column_without_rows_or_values_has_no_labels():
    for column in (pa.array([], pa.string()), pa.nulls(3)):
        table = Table.from_columns({"kind": column})
        assert class_texts(table, "kind").tolist() == [None] * len(column)


def test_bare_labels_of_an_estimator_keep_their_words():
    assert label_texts(["unid", None, " ", np.nan]).tolist() == ["unid", None, None, None]


def test_classes_that_look_alike_are_named():
    names = ["RRL", "rrl", "RRL:", "QSO", "QS O", "Be", "Ce"]
    assert look_alike(names) == [["QS O", "QSO"], ["RRL", "RRL:", "rrl"]]
