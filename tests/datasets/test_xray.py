"""Simulated fields with known counterparts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.datasets.field.colors import BANDS
from skyfill.datasets.field.xray import _blend, simulate_crowded_field, simulate_xray_field
from skyfill.errors import DataError


def test_true_counterparts_lie_where_the_position_errors_say():
    field = simulate_xray_field(1000, seed=1)
    rows = field.truth.numbers("row_optical")[:, 0].astype(int)
    seen = rows >= 0
    ra, dec, sigma = field.base.numbers("ra", "dec", "pos_err")[seen].T
    there = field.surveys["optical"].numbers("ra", "dec")[rows[seen]]
    x = (there[:, 0] - ra) * 3600 * np.cos(np.radians(dec))
    y = (there[:, 1] - dec) * 3600
    assert_allclose(np.mean((x**2 + y**2) / (2 * (sigma**2 + 0.15**2))), 1.0, atol=0.1)
    assert sigma.min() >= 1.0
    assert sigma.max() <= 15.0


def test_the_same_seed_gives_the_same_field_and_another_seed_another():
    one, two, other = (simulate_xray_field(50, seed=s) for s in (1, 1, 2))
    assert one.base.arrow.equals(two.base.arrow)
    assert not one.base.arrow.equals(other.base.arrow)


def test_in_a_crowded_field_a_blend_belongs_to_its_brightest_star():
    field = simulate_crowded_field(5000, seed=1)
    rows = field.truth.numbers("row_sharp")[:, 0].astype(int)
    assert_array_equal(np.unique(rows), np.sort(rows))
    blend, star = field.base.numbers("V")[:, 0], field.surveys["sharp"].numbers("V")[rows, 0]
    assert np.mean(blend < star + 0.2) > 0.98
    assert np.mean(star - blend > 0.3) > 0.02


def test_no_sources_are_refused():
    with pytest.raises(DataError, match="at least one"):
        simulate_xray_field(0)


def test_a_blend_lies_nearest_to_the_source_that_it_belongs_to_in_the_band_of_the_survey():
    """Two sources, one brighter by 2 mag in R, the other in K: 0.86 and 0.14 of the light."""
    sky = np.full((len(BANDS), 2), 20.0)
    sky[BANDS.index("R"), 1] = sky[BANDS.index("K"), 0] = 22.0
    place = np.array([[0.0, 1.0], [0.0, 0.0]])
    share = 1 / (1 + 10**0.8)
    for band, host, east in (("R", 0, share), ("K", 1, 1 - share)):
        _, hosts, where = _blend(sky, place, 2.0, band)
        assert hosts.tolist() == [host]
        assert_allclose(where[:, 0], [east, 0.0])
