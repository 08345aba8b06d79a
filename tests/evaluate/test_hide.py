"""Hiding cells: rates, patterns, dependence, and the last value of a row."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.errors import DataError
from skyfill.evaluate import hide_blocks, hide_cells, hide_faint, hide_like, hide_mar

GROUPS = [[0, 1], [2, 3]]
TEMPLATE = np.array([[True, True, False, False], [False, False, True, True], [True] * 4])


def hide_as_template(X, rate, rng):
    return hide_like(X, TEMPLATE, rng)


RULES = {
    "cells": hide_cells,
    "blocks": partial(hide_blocks, groups=GROUPS),
    "like": hide_as_template,
    "mar": partial(hide_mar, driver=1),
    "faint": partial(hide_faint, columns=[0, 2]),
}
every_rule = pytest.mark.parametrize("hide", RULES.values(), ids=RULES)


def table(n, seed, rate=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < rate] = np.nan
    return X


@every_rule
@given(seed=st.integers(0, 10**6), rate=st.floats(0, 1))
def test_only_seen_cells_are_hidden_and_never_the_last_of_a_row(hide, seed, rate):
    X = table(30, seed)
    before = X.copy()
    hidden = hide(X, rate=rate, rng=seed)
    np.testing.assert_array_equal(X, before)
    assert not (hidden.mask & np.isnan(X)).any()
    np.testing.assert_array_equal(np.isnan(hidden.X), np.isnan(X) | hidden.mask)
    kept = ~hidden.mask & ~np.isnan(X)
    np.testing.assert_array_equal(hidden.X[kept], X[kept])
    some = ~np.isnan(X).all(axis=1)
    assert (~np.isnan(hidden.X[some])).any(axis=1).all()


@every_rule
def test_the_same_seed_hides_the_same_cells(hide):
    X = table(200, 1)
    one, two, other = (hide(X, rate=0.4, rng=seed).mask for seed in (5, 5, 6))
    assert (one == two).all()
    assert (one != other).any()


@pytest.mark.parametrize("name", ["cells", "blocks", "mar", "faint"])
def test_the_share_of_hidden_cells_is_the_rate(name):
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    mask = RULES[name](X, rate=0.2, rng=0).mask
    # Two blocks: the one row in 25 that would lose both keeps one of them.
    expected = {"blocks": 0.2 - 0.04 / 2}.get(name, 0.2)
    touched = mask[:, mask.any(axis=0)]
    assert touched.mean() == pytest.approx(expected, abs=0.005)


def test_blocks_are_hidden_together():
    mask = hide_blocks(np.ones((500, 5)), GROUPS, 0.5, 0).mask
    assert (mask[:, 0] == mask[:, 1]).all()
    assert (mask[:, 2] == mask[:, 3]).all()
    assert not mask[:, 4].any()
    assert (mask[:, 0] != mask[:, 2]).any()


def test_patterns_come_from_the_template_in_its_proportions():
    template = np.array([[True, False, False, False]] + 3 * [[False, True, True, False]])
    mask = hide_like(np.ones((4000, 4)), template, 0).mask
    assert mask[:, 0].mean() == pytest.approx(0.25, abs=0.03)
    assert (mask[:, 1] == mask[:, 2]).all()
    assert (mask[:, 0] != mask[:, 1]).all()


def test_mar_depends_on_the_driver_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    X[:, 1] += X[:, 0]
    mask = hide_mar(X, 0.3, 0, rng).mask
    assert not mask[:, 0].any()
    assert np.corrcoef(X[:, 0], mask[:, 1])[0, 1] > 0.2
    # Given the driver the hidden value itself does not matter.
    middle = np.abs(X[:, 0]) < 0.05
    left = X[middle, 1] - X[middle, 0]
    assert abs(np.corrcoef(left, mask[middle, 1])[0, 1]) < 0.1


def test_faint_hides_large_magnitudes_behind_a_soft_limit():
    X = np.column_stack([np.random.default_rng(0).normal(18, 1, 5000), np.zeros(5000)])
    hard = hide_faint(X, 0.3, [0], 1, softness=0.0)
    assert X[hard.mask[:, 0], 0].min() > np.nanmax(hard.X[:, 0])
    soft = hide_faint(X, 0.3, [0], 1)
    overlap = X[soft.mask[:, 0], 0].min() < np.nanmax(soft.X[:, 0])
    assert overlap
    assert soft.mask[:, 0].sum() == hard.mask[:, 0].sum() == 1500


def test_faint_gives_the_limits_beyond_which_hidden_values_lie():
    X = np.column_stack([np.random.default_rng(0).normal(18, 1, 5000), np.zeros(5000)])
    hard = hide_faint(X, 0.3, [0], 1, softness=0.0)
    np.testing.assert_array_equal(~np.isnan(hard.lower), hard.mask)
    assert (X[hard.mask] > hard.lower[hard.mask]).all()
    assert np.nanmax(hard.X[:, 0]) < np.nanmin(hard.lower)
    assert (hard.errors[hard.mask] == 0).all()
    soft = hide_faint(X, 0.3, [0], 1, softness=0.2)
    np.testing.assert_allclose(soft.errors[soft.mask], 0.2 * X[:, 0].std())
    assert hide_cells(X, 0.3, 1).limits == {}


@pytest.mark.parametrize("rate", [-0.1, 1.5, np.nan])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(DataError, match="rate must be between 0 and 1"):
        hide_cells(np.ones((3, 3)), rate, 0)


def test_a_template_of_another_width_is_refused():
    with pytest.raises(DataError, match=r"a template of shape \(3, 4\)"):
        hide_like(np.ones((3, 3)), TEMPLATE, 0)
