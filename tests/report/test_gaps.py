"""Counts of gaps by reason."""

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.catalog.filled_names import before_info
from skyfill.model import Feature, cells_of, fill_table
from skyfill.report import count_gaps
from skyfill.report.gaps import REASONS, limit_values, reason_codes, seen_values


@pytest.fixture
def table():
    info = {"J": ColumnInfo(unit="mag", role=Role.FEATURE)}
    columns = {"J": [14.0, None, None, None], "K": [1.0, 2.0, None, 4.0]}
    return Table.from_columns(columns, info=info).with_reasons(
        "J", [None, "undetected", "uncovered", None]
    )


def test_gaps_are_counted_by_reason(table):
    gaps = count_gaps(table, [Feature("J"), Feature("K"), Feature("absent")])
    found = {
        name: dict(zip(REASONS, row, strict=True))
        for name, row in zip(gaps.names, gaps.counts, strict=True)
    }
    assert found["J"] == {
        "unmatched": 0,
        "uncovered": 1,
        "undetected": 1,
        "rejected": 0,
        "unknown": 1,
    }
    assert found["K"]["unknown"] == 1
    assert found["absent"]["unknown"] == 4
    np.testing.assert_allclose(gaps.share, [0.75, 0.25, 1])


def test_counts_of_parts_add_up_to_those_of_the_whole(catalog):
    parts = [Table(catalog.arrow.slice(start, 100)) for start in (0, 100, 200)]
    first, second, third = map(count_gaps, parts)
    whole, summed = count_gaps(catalog), first + second + third
    np.testing.assert_array_equal(summed.counts, whole.counts)
    assert summed.n_rows == len(catalog)


def test_filled_values_are_no_measurements_and_keep_their_reason(table):
    filled = table.with_column("J", [14.0, 15.0, 16.0, 17.0])
    filled = filled.with_column("J_was", table.reasons("J"), before_info("J"))
    filled = filled.with_reasons("J", [None, "filled", "filled", "filled"])
    features = [Feature("J", "mag")]
    np.testing.assert_array_equal(np.isnan(seen_values(filled, features)[:, 0]), [0, 1, 1, 1])
    np.testing.assert_array_equal(reason_codes(filled, features), reason_codes(table, features))


def test_values_are_in_the_units_of_the_model():
    info = {"angle": ColumnInfo(unit="deg")}
    table = Table.from_columns({"angle": [1.0]}, info=info)
    assert seen_values(table, [Feature("angle", "arcsec")])[0, 0] == pytest.approx(3600)


def test_limits_are_those_of_undetected_cells_in_the_units_of_the_model(table):
    info = ColumnInfo(unit="mag", role=Role.LIMIT, of="J")
    table = table.with_column("J_limit", [18.0, 18.1, 18.2, 18.3], info)
    found = limit_values(table, [Feature("J", "mag"), Feature("K")])
    np.testing.assert_array_equal(found[:, 0], [np.nan, 18.1, np.nan, np.nan])
    assert np.isnan(found[:, 1]).all()


def test_a_filled_table_says_of_its_features_what_it_said_before(model, results):
    before, after = (cells_of(model, t)[0] for t in (results, fill_table(model, results)))
    for name in ("values", "lower", "errors"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    lost = np.isnan(results.numbers("J")[:, 0])
    np.testing.assert_array_equal(before.lower[lost, 3], 16.25)
    np.testing.assert_array_equal(before.lower[lost, 4], 15.75)
    assert np.isnan(before.lower[~lost]).all()
    assert before.upper is None
