"""Values that gaps were filled with are found; atoms, codes and counts are left alone."""

import numpy as np
import pytest

from skyfill.catalog import Table
from skyfill.catalog.fillers import FILLED, ONE_VALUE, find_filler

X = np.random.default_rng(0).normal(15, 1, 400)
SOME = np.arange(400) % 10 == 0


def found(values):
    return find_filler(Table.from_columns({"x": values}), "x")


def test_the_mean_in_place_of_gaps_is_found():
    suspect = found(np.where(SOME, X.mean(), X))
    assert (suspect.value, suspect.count, suspect.why) == (X.mean(), 40, FILLED)


def test_a_column_of_one_value_is_told():
    assert found(np.full(50, 3.5)).why == ONE_VALUE
    assert found(np.full(5, 3.5)) is None


@pytest.mark.parametrize(
    "values",
    [
        X,
        np.where(SOME, 0.0, X),
        np.where(SOME, X.max(), X),
        X.round(1),
        np.where(np.arange(400) < 8, 15.0, X),
        np.where(SOME, 15, X).astype(int),
        np.full(400, np.nan),
        np.where(SOME, 1.0, 2.0),
    ],
    ids=["plain", "zeros", "ceiling", "rounded", "rare", "counts", "empty", "flags"],
)
def test_atoms_at_the_ends_rounded_values_and_counts_are_no_fillers(values):
    assert found(values) is None
