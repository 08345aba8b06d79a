"""Densities and position errors that are estimated from the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.errors import CatalogError
from skyfill.sky.density import density_of_area, local_density
from skyfill.sky.ellipses import Sources, circles, ellipses
from skyfill.sky.error_fit import fit_error


def test_the_largest_variance_of_an_ellipse_is_that_of_its_first_axis():
    cov = ellipses([3.0, 1.0], [1.0, 2.0], [37.0, 80.0])
    assert_allclose(Sources(np.zeros(2), np.zeros(2), cov).variance, [9.0, 4.0])


def test_an_ellipse_with_equal_axes_is_a_circle_at_any_angle():
    assert_allclose(ellipses([2.0], [2.0], [33.0]), circles([2.0]), atol=1e-12)


def test_the_local_density_follows_a_survey_that_is_twice_as_dense_in_one_half():
    rng = np.random.default_rng(1)
    ra = np.append(rng.uniform(10, 11, 40_000), rng.uniform(11, 12, 80_000))
    survey = ra, rng.uniform(-0.5, 0.5, len(ra))
    centers = rng.uniform(10.1, 10.9, 200), rng.uniform(-0.4, 0.4, 200)
    sparse = local_density(*centers, survey)
    dense = local_density(centers[0] + 1, centers[1], survey)
    assert_allclose(sparse.mean() * 3600**2, 40_000, rtol=0.03)
    assert_allclose(dense.mean() * 3600**2, 80_000, rtol=0.03)


def test_a_row_without_a_position_gets_the_mean_density():
    rng = np.random.default_rng(1)
    survey = rng.uniform(10, 11, 1000), rng.uniform(-0.5, 0.5, 1000)
    found = local_density(np.array([10.5, np.nan]), np.array([0.0, 0.0]), survey)
    assert found[1] == found[0]


@pytest.mark.parametrize("area", [0.0, -1.0, 50_000.0, np.nan])
def test_areas_that_cannot_be_are_refused(area):
    with pytest.raises(CatalogError, match="at most the whole sky, 41253"):
        density_of_area(10, area)


def test_the_error_of_a_survey_is_found_beside_errors_that_differ_from_object_to_object():
    rng = np.random.default_rng(2)
    known = rng.uniform(0.5, 2.0, 5000)
    true = np.hypot(known, 0.8) * rng.rayleigh(size=5000)
    chance = 12 * np.sqrt(rng.uniform(size=8000))
    variance = np.append(known, rng.uniform(0.5, 2.0, 8000)) ** 2
    assert_allclose(fit_error(np.append(true, chance), variance, 12.0), 0.8, rtol=0.07)


def test_separations_that_are_all_by_chance_give_no_error():
    rng = np.random.default_rng(3)
    with pytest.raises(CatalogError, match="too few to estimate position errors"):
        fit_error(5 * np.sqrt(rng.uniform(size=9)), 0.0, 5.0)
