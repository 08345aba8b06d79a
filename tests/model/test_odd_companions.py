"""Errors, limits and features that cannot be what they seem."""

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.model import Feature
from skyfill.model.odd_companions import find_odd_errors, find_odd_limits
from tests.datasets.conftest import load_or_skip

RNG = np.random.default_rng(0)
K = RNG.uniform(10, 16, 200)


def limited(values, limit):
    info = {"l": ColumnInfo(role=Role.LIMIT, of="x")}
    return Table.from_columns({"x": values, "l": np.full(len(values), limit)}, info=info)


@pytest.mark.parametrize(
    ("unit", "values", "limit", "is_odd"),
    [
        ("mag", K, 16.0, False),
        ("mag", K, 14.0, False),
        ("mag", K, 17.5, False),
        (None, K, 16.0, True),
        ("mag", K, 10.5, True),
        ("mag", K, -16.0, True),
        ("mag", K, 160.0, True),
        ("Jy", 10 ** (-0.4 * K), 10 ** (-0.4 * 16.0), False),
        ("Jy", 10 ** (-0.4 * K), 16.0, True),
        ("Jy", 10 ** (-0.4 * K), -16.0, True),
    ],
)
def test_limits_on_the_wrong_side_or_far_away_are_found(unit, values, limit, is_odd):
    found = find_odd_limits([Feature("x", unit)], limited(values, limit))
    assert [each.name for each in found] == ["x"] * is_odd


def with_errors(errors):
    info = {"e": ColumnInfo(role=Role.ERROR, of="x")}
    return Table.from_columns({"x": K, "e": errors}, info=info)


@pytest.mark.parametrize(
    ("errors", "n_without", "is_large"),
    [
        (np.full(200, 0.05), 0, False),
        (np.where(np.arange(200) < 3, 0.0, 0.05), 3, False),
        (np.where(np.arange(200) < 3, -99.0, 0.05), 3, False),
        (np.full(200, 50.0), 0, True),
    ],
)
def test_errors_of_0_negative_ones_and_those_in_other_units_are_found(errors, n_without, is_large):
    found = find_odd_errors([Feature("x")], with_errors(errors))
    assert bool(found) == bool(n_without or is_large)
    assert all((each.n_without, each.median > each.scatter) == (n_without, is_large)
               for each in found)  # fmt: skip


def test_errors_are_compared_in_the_units_of_the_feature():
    table = with_errors(np.full(200, 50.0)).with_info("e", unit="mmag")
    assert find_odd_errors([Feature("x", "mag")], table) == []


def test_real_errors_are_not_odd():
    table = load_or_skip("chandra")
    features = [Feature(name, table.info(name).unit) for name in table.names_with(Role.FEATURE)]
    assert find_odd_errors(features, table) == []
