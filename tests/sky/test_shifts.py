"""Systematic shifts and chance matches on simulated fields."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.sky import (
    Offset,
    count_chance_matches,
    fit_offset,
    match_positions,
    shifted,
)

Catalogue = tuple[np.ndarray, np.ndarray]


def field(n: int, seed: int, *, width: float = 0.5) -> Catalogue:
    rng = np.random.default_rng(seed)
    return 80 + rng.uniform(0, width, n), -69 + rng.uniform(0, width, n)


def noisy(catalogue: Catalogue, seed: int, sigma_arcsec: float) -> Catalogue:
    rng = np.random.default_rng(seed)
    ra, dec = catalogue
    noise = rng.normal(0, sigma_arcsec / 3600, (2, len(ra)))
    return ra + noise[0] / np.cos(np.radians(dec)), dec + noise[1]


@given(st.floats(-20, 20), st.floats(-20, 20))
@settings(max_examples=20)
def test_a_known_shift_is_found_in_spite_of_scatter_and_strangers(east: float, north: float):
    stars = field(2000, 1)
    strangers = field(1000, 2)
    moving = tuple(map(np.append, noisy(stars, 3, 0.3), strangers))
    moving = shifted(*moving, Offset(-east, -north, 1))
    found = fit_offset(stars, moving, 1.5)
    assert_allclose([found.ra_cosdec_arcsec, found.dec_arcsec], [east, north], atol=0.05)
    assert found.n_pairs > 1900


def test_after_the_shift_is_removed_the_stars_match_again():
    stars = field(1000, 1)
    away = shifted(*noisy(stars, 2, 0.2), Offset(4.0, -3.0, 1))
    assert len(match_positions(*stars, *away, 1.0)) < 20
    home = shifted(*away, fit_offset(stars, away, 1.0))
    assert len(match_positions(*stars, *home, 1.0)) > 990


def test_unrelated_catalogues_have_no_shift_and_stay_where_they_are():
    moving = field(2000, 2)
    found = fit_offset(field(2000, 1), moving, 1.5)
    assert found == Offset(0.0, 0.0, 0)
    assert str(found) == "none found"
    assert shifted(*moving, found) is moving or shifted(*moving, found)[0] is moving[0]


def test_catalogues_that_are_empty_or_far_apart_have_no_shift():
    nothing = (np.empty(0), np.empty(0))
    assert fit_offset(nothing, field(5, 1), 1.0).n_pairs == 0
    assert fit_offset(field(5, 1), nothing, 1.0).n_pairs == 0
    assert fit_offset(field(50, 1), (np.zeros(50), np.zeros(50)), 1.0).n_pairs == 0


def test_a_shift_moves_by_its_length_everywhere_and_leaves_gaps():
    ra, dec = np.array([0.0, 10.0, 359.9999, 10.0, np.nan]), np.array([0.0, 89.9, 1.0, -90, 0.0])
    there = shifted(ra, dec, Offset(3.0, 4.0, 1))
    assert np.isnan(there[0][4])
    pairs = match_positions(ra, dec, *there, 5.1)
    assert pairs.left.tolist() == pairs.right.tolist() == [0, 1, 2, 3]
    assert_allclose(pairs.separation_arcsec, 5.0, atol=1e-4)


def test_chance_matches_number_what_the_density_promises():
    left, right = field(3000, 1), field(20_000, 2)
    area = 0.5 * 0.5 * np.cos(np.radians(-68.75)) * 3600**2
    density = 20_000 / area
    expected = 3000 * (1 - np.exp(-density * np.pi * 3.0**2))
    chance = count_chance_matches(left, right, 3.0, keep="best", n_shifts=8)
    assert_allclose(chance.mean, expected, rtol=0.06)
    assert len(chance.counts) == 8
    assert 0 < chance.error < 0.1 * expected


def test_true_pairs_are_lost_by_the_shift():
    stars = field(300, 1, width=2.0)
    assert count_chance_matches(stars, stars, 1.0).mean <= 1
    assert count_chance_matches(stars, stars, 10.0, n_shifts=1).shift_arcsec == 200.0
