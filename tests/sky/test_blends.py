"""Blends of sources within the beam of the base: center of light, and who is the brightest."""

import numpy as np
from numpy.testing import assert_allclose

from skyfill.catalog import ColumnInfo, Table
from skyfill.classify.survey_magnitudes import read_magnitudes
from skyfill.sky import Sources, Survey, associate, circles, read_surroundings
from skyfill.sky.blends import NOT_BRIGHTEST

ARC = 1 / 3600
# Two sources within the beam, and one far from both; light in two bands.
EAST, NORTH = np.array([0.6, 1.9, -5.0]), np.array([0.2, 0.9, 0.0])
LIGHT = np.array([[3.0, 1.0], [1.0, 4.0], [2.0, 2.0]])
SHARE = 1 / (1 + 3.0)


def weights(x, y, **how):
    base = Sources(np.array([x * ARC]), np.array([y * ARC]), circles(0.5))
    stars = Sources(EAST * ARC, NORTH * ARC, circles([0.2, 0.2, 0.2]))
    found = associate(base, [stars], [1e-3], [8.0], **how)
    return found.log_weight[1:]


def test_a_blend_lies_at_its_center_of_light_and_belongs_to_its_brightest_source():
    one_band = weights(0, 0, beam_arcsec=2.0, light=[LIGHT[:, :1]])
    plain = weights(0, 0)
    moved = weights(-SHARE * 1.3, -SHARE * 0.7)
    assert_allclose(one_band[0], moved[0], rtol=1e-6)
    assert_allclose(one_band[1], plain[1] + np.log(NOT_BRIGHTEST), rtol=1e-9)
    assert_allclose(one_band[2], plain[2], rtol=1e-9)


def test_each_band_may_be_that_of_the_base():
    both = weights(0, 0, beam_arcsec=2.0, light=[LIGHT])
    single = [weights(0, 0, beam_arcsec=2.0, light=[LIGHT[:, [k]]]) for k in range(2)]
    assert_allclose(both, np.log(np.mean(np.exp(single), axis=0)), rtol=1e-9)


def test_a_source_that_no_band_shows_is_never_the_brightest_of_a_blend():
    dark = np.where([[True], [False], [False]], np.nan, LIGHT)
    found = weights(0, 0, beam_arcsec=2.0, light=[dark])
    assert_allclose(found[:2] - weights(0, 0)[:2], [np.log(NOT_BRIGHTEST), 0.0], atol=1e-9)


def test_magnitudes_of_sources_within_the_beam_are_those_of_their_light_together():
    info = {"V": ColumnInfo("mag", "phot.mag"), "color": ColumnInfo("mag", "phot.color")}
    columns = {
        "ra": EAST * ARC,
        "dec": NORTH * ARC,
        "V": [20.0, 20.0, 18.0],
        "color": [1.0, 2.0, 3.0],
        "pos_err": [0.2, 0.2, 0.2],
    }
    stars = Survey("sharp", Table.from_columns(columns, info=info), 8.0, bands=("V", "color"))
    sky = Table.from_columns({"ra": [0.0, ARC], "dec": [0.0, 0.0], "pos_err": [0.5, 0.5]})
    for beam, first in ((0.0, 20.0), (2.0, 20 - 2.5 * np.log10(2))):
        base = Survey("base", sky, 0.0, beam_arcsec=beam)
        there = read_surroundings(base, [stars])
        values = read_magnitudes(base, [stars], [(), ("V", "color")], there).surveys[0].values
        assert_allclose(values, [[first, 1.0], [first, 2.0], [18.0, 3.0]])
