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
    return make_scene()


def make_scene(far=0.0):
    """Objects with two candidates and how probable each is; a share of counterparts lies far."""
    rng = np.random.default_rng(7)
    p = rng.choice([[0.2, 0.75, 0.05], [0.5, 0.3, 0.2], [0.9, 0.05, 0.05]], N)
    truth = (rng.random(N)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    x = rng.normal(-1, 1, (N, 3))
    x[np.arange(N), truth] += np.where(rng.random(N) < far, 5, 2) * (truth > 0)
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


def test_counterparts_unlike_any_field_source_leave_fewer_for_other_ratios():
    """Seven in ten counterparts lie where the field has nothing: the log ratio of x is lower."""
    found, p, raw, field = make_scene(far=0.7)
    curve = fit_curves(found, p, raw, field)[1]
    x = np.array([-0.5, 0.0, 0.5])
    np.testing.assert_allclose(curve(distorted(x)), 2 * x + np.log(0.3), atol=0.3)
    assert curve(np.array([40.0]))[0] > 5


def test_few_counterparts_give_no_curve(scene):
    found, p, raw, field = scene
    few = Associations(found.starts[:101], found.rows[:300], found.log_weight[:300])
    assert fit_curves(few, p[:300], raw[:300], field) == (None, None)
