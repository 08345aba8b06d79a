"""Maps of columns with errors or limits: ranks where shapes matter, otherwise linear ones."""

import numpy as np
import pytest

from skyfill.network.cells import Cells
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.map_choice import (
    choose_limited_maps,
    choose_noisy_maps,
    choose_plain_maps,
    log_slopes,
)
from skyfill.network.mixture.maps import kinds_of, map_columns
from skyfill.network.mixture.network import MixtureNetwork

NONE = np.array(False)  # no column is positive


def seen(shape, error, seed=0):
    """Two columns of values with errors."""
    rng = np.random.default_rng(seed)
    true = shape(rng.multivariate_normal(np.zeros(2), [[1.0, 0.8], [0.8, 1.0]], 600))
    noise = error * rng.uniform(0.2, 1.8, true.shape)
    return Cells(true + noise * rng.normal(size=true.shape), errors=noise)


@pytest.mark.parametrize(
    ("shape", "error", "kind"),
    [(lambda z: z, 1.0, "linear"), (lambda z: np.exp(1.5 * z), 0.01, "ranks")],
    ids=["normal", "lognormal"],
)
def test_the_shape_of_a_column_decides(shape, error, kind):
    cells = seen(shape, error)
    assert choose_noisy_maps(cells, Plan(1, 5.0), np.random.default_rng(0), NONE) == kind


@pytest.mark.parametrize(
    ("shape", "kind"),
    [(lambda z: z, "linear"), (lambda z: np.exp(1.5 * z), "ranks")],
    ids=["normal", "lognormal"],
)
def test_beyond_limits_the_shape_of_what_was_seen_decides(shape, kind):
    X = shape(np.random.default_rng(1).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 500))
    limit = np.quantile(X[:, 1], 0.7)
    faint = (limit < X) & [False, True]
    cells = Cells(np.where(faint, np.nan, X), np.where(faint, limit, np.nan))
    assert choose_limited_maps(cells, Plan(1, 5.0, pooling=(1.0, 3.0)), NONE) == kind


def one_factor(n_clumped, n=1200, p=20):
    """Columns of one factor, the first of them with two clumps that no linear map makes one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, p))
    clumped = X[:, :n_clumped]
    X[:, :n_clumped] = np.sign(clumped) * np.abs(clumped) ** 0.2
    return Cells(np.where(rng.random(X.shape) < 0.1, np.nan, X))


def test_each_column_has_the_kind_of_map_that_fills_it_best():
    kinds = choose_plain_maps(one_factor(6), Plan(1, 5.0), np.random.default_rng(0), NONE)
    assert kinds[:6] == ("ranks",) * 6
    assert "ranks" not in kinds[6:]


def test_columns_that_are_normal_are_not_mapped_by_ranks():
    kind = choose_plain_maps(one_factor(0), Plan(1, 5.0), np.random.default_rng(0), NONE)
    assert set(kinds_of(kind, 20)) <= {"smooth", "straight"}


def test_a_linear_map_rises_by_one_score_per_standard_deviation():
    cells = seen(lambda z: z, 0.5)
    bare = MixtureNetwork(("a", "b"), map_columns(cells, "linear"), ())
    expected = -len(cells) * np.log(cells.values.std(axis=0)).sum()
    assert log_slopes(bare, cells).sum() == pytest.approx(expected)
