"""Calibration of a photometric ratio by field sources and positions."""

import numpy as np
import pytest

from skyfill.classify.ratio_curve import fit_curves
from skyfill.sky import Associations

# Counterparts and field are normal around 1 and -1: the log ratio of x is 2 x.
N, N_FIELD = 6000, 20_000


def distorted(x):
    """Raw log ratio: rises with the true one, and exaggerates it."""
    return 3 * np.sinh(x)


@pytest.fixture(scope="module")
def scene():
    """Objects with two candidates, the first of which is theirs in a share of the cases."""
    rng = np.random.default_rng(7)
    p = rng.choice([[0.2, 0.75, 0.05], [0.5, 0.3, 0.2], [0.9, 0.05, 0.05]], N)
    truth = (rng.random(N)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    x = rng.normal(-1, 1, (N, 3))
    x[np.arange(N), truth] += 2 * (truth > 0)
    rows = np.column_stack([np.full(N, -1), np.arange(2 * N).reshape(N, 2)])
    found = Associations(np.arange(0, 3 * N + 1, 3), rows.reshape(-1, 1), np.zeros(3 * N))
    field = distorted(rng.normal(-1, 1, N_FIELD)), np.ones(N_FIELD, np.int64)
    return found, p.ravel(), distorted(x).ravel(), field


def test_the_true_ratio_is_found_from_one_that_exaggerates(scene):
    none, curve = fit_curves(*scene)
    assert none is None
    # Further down there are hardly any counterparts to count.
    x = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    np.testing.assert_allclose(curve(distorted(x)), 2 * x, atol=0.3)
    assert np.all(np.diff(curve.calibrated) >= 0)


def test_the_mean_ratio_over_the_field_is_one(scene):
    curve = fit_curves(*scene)[1]
    assert np.mean(np.exp(curve(scene[3][0]))) == pytest.approx(1, rel=1e-9)


def test_few_counterparts_give_no_curve(scene):
    found, p, raw, field = scene
    few = Associations(found.starts[:101], found.rows[:300], found.log_weight[:300])
    assert fit_curves(few, p[:300], raw[:300], field) == (None, None)
