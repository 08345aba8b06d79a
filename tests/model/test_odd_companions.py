"""Errors, limits and features that cannot be what they seem."""

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.model import Feature
from skyfill.model.leaks import find_leaks
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


CODES = RNG.integers(0, 3, 300)
KINDS = np.array(["a", "b", "c"])[CODES]


@pytest.mark.parametrize(
    ("values", "is_leak"),
    [
        (CODES * 1.0, True),
        (-5.0 * CODES + RNG.normal(0, 0.1, 300), True),
        (np.where(np.arange(300) < 100, np.nan, CODES), True),
        (np.where(np.arange(300) < 2, 1 - CODES, CODES), True),
        (CODES + RNG.normal(0, 0.4, 300), False),
        (RNG.normal(size=300), False),
        ((CODES > 0) * 1.0, False),
        (np.full(300, 3.0), False),
        (np.full(300, np.nan), False),
    ],
    ids=["code", "noisy code", "gaps", "two wrong", "strong", "noise", "flag", "constant", "empty"],
)
def test_a_feature_that_is_nearly_the_class_is_found_and_a_strong_one_is_not(values, is_leak):
    table = Table.from_columns({"x": values, "kind": KINDS})
    assert find_leaks(table, ["x"], "kind") == ["x"] * is_leak


def test_rare_classes_and_objects_without_a_class_do_not_make_a_leak():
    few = np.where(np.arange(300) < 15, "rare", "common")
    assert find_leaks(Table.from_columns({"x": np.arange(300.0), "kind": few}), ["x"], "kind") == []
    none = [None if i % 2 else kind for i, kind in enumerate(KINDS)]
    assert find_leaks(Table.from_columns({"x": CODES * 1.0, "kind": none}), ["x"], "kind") == ["x"]
