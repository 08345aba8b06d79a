"""Pairs of positions that can be checked on paper."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.errors import CatalogError
from skyfill.sky import match_positions, nearest_arcsec
from tests.sky.fields import pairs_of

ARCSEC = 1 / 3600


def test_a_pair_one_arcsec_apart_in_declination_is_found_at_one_arcsec():
    found = match_positions([150.0], [2.0], [150.0], [2.0 + ARCSEC], 1.0)
    assert pairs_of(found) == [(0, 0)]
    assert_allclose(found.separation_arcsec, 1.0, rtol=1e-9)
    assert len(match_positions([150.0], [2.0], [150.0], [2.0 + ARCSEC], 0.999)) == 0


def test_right_ascension_shrinks_with_the_cosine_of_the_declination():
    found = match_positions([10.0], [60.0], [10.0 + 2 * ARCSEC], [60.0], 1.5)
    assert_allclose(found.separation_arcsec, 1.0, rtol=1e-6)


def test_zero_and_360_degrees_are_the_same_meridian():
    found = match_positions([0.0, 359.9999], [5.0, 0.0], [360.0, 0.0001], [5.0, 0.0], 1.0)
    assert pairs_of(found) == [(0, 0), (1, 1)]
    assert_allclose(found.separation_arcsec, [0.0, 0.72], rtol=1e-9)
    assert len(match_positions([-10.0], [0.0], [350.0], [0.0], 0.0)) == 1


@pytest.mark.parametrize("pole", [90.0, -90.0])
def test_at_a_pole_all_right_ascensions_are_one_place(pole: float):
    found = match_positions([0.0], [pole], [123.4], [pole], 0.0)
    assert pairs_of(found) == [(0, 0)]
    across = match_positions([0.0], [pole - np.sign(pole) * ARCSEC], [180.0], [pole], 1.0)
    assert_allclose(across.separation_arcsec, 1.0, rtol=1e-6)


def test_symmetric_gives_the_right_row_to_the_closest_left_row_and_nothing_to_the_other():
    ra1, ra2 = np.array([10.0, 10.0, 30.0]), np.array([10.0])
    dec1, dec2 = np.array([0.0, 0.4, 0.0]) * ARCSEC, np.array([0.3]) * ARCSEC
    assert pairs_of(match_positions(ra1, dec1, ra2, dec2, 1.0)) == [(1, 0)]
    assert pairs_of(match_positions(ra1, dec1, ra2, dec2, 1.0, keep="best")) == [(0, 0), (1, 0)]


def test_symmetric_gives_no_second_choice():
    """On a line: left at 0 and 1, right at 0.9 and -1.5; left 0 loses 0.9 and gets nothing."""
    left, right = np.array([0.0, 1.0, 10.0]) * ARCSEC, np.array([0.9, -1.5]) * ARCSEC
    found = match_positions(np.full(3, 10.0), left, np.full(2, 10.0), right, 2.0)
    assert pairs_of(found) == [(1, 0)]


def test_all_gives_every_pair_sorted_by_left_row_and_separation():
    dec = np.array([0.0, 0.5, 3.0]) * ARCSEC
    found = match_positions(np.full(3, 10.0), dec, np.full(3, 10.0), dec[::-1], 1.0, keep="all")
    assert pairs_of(found) == [(0, 2), (0, 1), (1, 1), (1, 2), (2, 0)]
    assert_array_equal(found.n_candidates, [2, 2, 1])


def test_candidates_are_counted_for_rows_that_lose_their_match_too():
    dec = np.array([0.0, 0.1, 0.2]) * ARCSEC
    found = match_positions(np.full(3, 10.0), dec, [10.0], [0.0], 1.0)
    assert_array_equal(found.n_candidates, [1, 1, 1])
    assert pairs_of(found) == [(0, 0)]


@pytest.mark.parametrize("keep", ["symmetric", "best", "all"])
def test_rows_without_a_position_never_match(keep):
    ra, dec = np.array([10.0, np.nan, 10.0, np.inf]), np.array([0.0, 0.0, np.nan, 0.0])
    found = match_positions(ra, dec, ra, dec, 3600.0 * 180, keep=keep)
    assert pairs_of(found) == [(0, 0)]
    assert_array_equal(found.n_candidates, [1, 0, 0, 0])


@pytest.mark.parametrize("keep", ["symmetric", "best", "all"])
@pytest.mark.parametrize(("n1", "n2"), [(0, 0), (0, 2), (2, 0)])
def test_empty_catalogues_match_nothing(keep, n1: int, n2: int):
    found = match_positions(np.ones(n1), np.ones(n1), np.ones(n2), np.ones(n2), 1.0, keep=keep)
    assert len(found) == 0
    assert_array_equal(found.n_candidates, np.zeros(n1))


def test_radius_zero_matches_equal_positions_only():
    found = match_positions([10.0, 20.0], [1.0, 2.0], [10.0, 20.0000001], [1.0, 2.0], 0.0)
    assert pairs_of(found) == [(0, 0)]


def test_a_radius_beyond_the_whole_sky_counts_everything():
    ra, dec = np.array([0.0, 90.0, 180.0]), np.array([0.0, 80.0, 0.0])
    found = match_positions(ra, dec, ra, dec, 1e9, keep="all")
    assert len(found) == 9
    assert_allclose(found.separation_arcsec.max(), 180 * 3600)


@pytest.mark.parametrize("radius", [-1.0, np.nan])
def test_a_radius_that_is_no_length_is_refused(radius: float):
    with pytest.raises(CatalogError, match="must not be negative"):
        match_positions([1.0], [1.0], [1.0], [1.0], radius)


def test_a_declination_beyond_the_pole_is_refused_with_its_row():
    with pytest.raises(CatalogError, match="row 2: declination 99 is beyond 90"):
        match_positions([1.0, 1.0], [1.0, 99.0], [1.0], [1.0], 1.0)


def test_lists_of_unequal_length_and_unknown_rules_are_refused():
    with pytest.raises(CatalogError, match="2 right ascensions but 1 declinations"):
        match_positions([1.0, 2.0], [1.0], [1.0], [1.0], 1.0)
    with pytest.raises(CatalogError, match="one of symmetric, best, all"):
        match_positions([1.0], [1.0], [1.0], [1.0], 1.0, keep="closest")


def test_copies_of_one_position_are_fast_and_the_lowest_rows_pair():
    """Unknown positions coded as (0, 0) would otherwise be a hundred million pairs."""
    n = 10_000
    zeros = np.zeros(n)
    found = match_positions(zeros, zeros, zeros, zeros, 1.0)
    assert pairs_of(found) == [(0, 0)]
    assert_array_equal(found.n_candidates, np.full(n, n))
    best = match_positions(zeros, zeros, zeros, zeros, 1.0, keep="best")
    assert_array_equal(best.right, zeros)


def test_more_pairs_than_memory_are_refused():
    zeros = np.zeros(20_000)
    with pytest.raises(CatalogError, match="400000000 pairs lie within the radius"):
        match_positions(zeros, zeros, zeros, zeros, 1.0, keep="all")


def test_equally_near_rows_are_decided_for_the_lower_row():
    dec = np.array([1.0, -1.0, 1.0]) * 0.5  # mirror images: equal to the last bit
    found = match_positions([10.0], [0.0], np.full(3, 10.0), dec, 3600.0, keep="best")
    assert pairs_of(found) == [(0, 0)]
    mirrored = match_positions([10.0], [0.0], np.full(3, 10.0), -dec, 3600.0, keep="best")
    assert pairs_of(mirrored) == [(0, 0)]


def test_tiny_separations_keep_their_digits():
    found = match_positions([10.0], [0.0], [10.0], [1e-9 * ARCSEC * 1000], 1.0)
    assert_allclose(found.separation_arcsec, 1e-6, rtol=1e-4)


def test_the_nearest_distance_is_found_however_far():
    assert_allclose(nearest_arcsec([0.0], [0.0], [180.0, 90.0], [0.0, 0.0]), 90 * 3600)
    assert np.isnan(nearest_arcsec(np.array([0.0]), np.array([0.0]), [], [])).all()
