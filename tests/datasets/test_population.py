"""The simulated objects obey the relations of the sky that they were drawn from."""

import numpy as np
import pytest
from numpy.random import default_rng

from skyfill.datasets.field.colors import BANDS, EXTINCTION, quasar_colors, star_colors
from skyfill.datasets.field.draw import (
    draw_cepheids,
    draw_long_period,
    draw_population,
    draw_rr_lyrae,
)
from skyfill.datasets.field.placement import add_light, place_objects
from skyfill.datasets.field.population import CLASSES, draw_luminosity

V, K = BANDS.index("V"), BANDS.index("K")


def test_colors_of_stars_redden_as_they_cool():
    colors = star_colors(np.linspace(3000.0, 30000.0, 50))
    for blue, red in (("B", "V"), ("V", "I"), ("V", "K"), ("J", "K")):
        color = colors[BANDS.index(blue)] - colors[BANDS.index(red)]
        assert (np.diff(color[np.linspace(3000, 30000, 50) > 3700]) <= 1e-9).all()


def test_the_sun_has_its_color():
    """B-V 0.65, V-K 1.56 at 5772 K (Casagrande et al. 2012; the table is for giants, too)."""
    sun = star_colors(np.array([5772.0]))[:, 0]
    assert sun[BANDS.index("B")] == pytest.approx(0.65, abs=0.03)
    assert -sun[K] == pytest.approx(1.56, abs=0.1)


def test_quasars_are_bluer_than_stars_in_u_and_redder_in_the_infrared():
    quasar = quasar_colors(np.array([0.5, 1.0, 2.0]))
    star = star_colors(np.array([7500.0]))
    assert (quasar[0] - quasar[1] < -0.5).all()
    assert (quasar[8] - quasar[9] > star[8] - star[9] + 0.4).all()


@pytest.mark.parametrize("band", ["V", "K"])
def test_the_cepheid_period_luminosity_relation_is_recovered_by_a_fit(band):
    """Udalski et al. (1999) in V; Persson et al. (2004), K = 16.051 - 3.281 log P."""
    stars = draw_cepheids(4000, default_rng(0))
    stars = stars.take(np.flatnonzero(stars.mode == 0))
    slope, zero = np.polyfit(np.log10(stars.period), stars.magnitudes[BANDS.index(band)], 1)
    expected = {"V": (-2.779, 17.066), "K": (-3.281, 16.051)}[band]
    assert slope == pytest.approx(expected[0], abs=0.12)
    assert zero + slope == pytest.approx(sum(expected), abs=0.12)


def test_overtone_cepheids_are_brighter_at_the_same_period():
    stars = draw_cepheids(4000, default_rng(0))
    residual = stars.magnitudes[V] - (17.066 - 2.779 * np.log10(stars.period))
    assert residual[stars.mode == 1].mean() < residual[stars.mode == 0].mean() - 0.3


def test_rr_lyrae_stars_lie_on_the_horizontal_branch():
    stars = draw_rr_lyrae(3000, default_rng(1))
    assert stars.magnitudes[V].mean() == pytest.approx(19.06, abs=0.05)
    assert stars.magnitudes[V].std() < 0.2
    assert stars.period[stars.mode == 1].max() < stars.period[stars.mode == 0].mean()


def test_long_period_variables_brighten_in_k_with_their_period():
    stars = draw_long_period(3000, default_rng(2))
    slope = np.polyfit(np.log10(stars.period), stars.magnitudes[K], 1)[0]
    assert slope == pytest.approx(-3.5, abs=0.3)
    carbon = stars.mode == 1
    j_k = stars.magnitudes[BANDS.index("J")] - stars.magnitudes[K]
    assert np.median(j_k[carbon]) > np.median(j_k[~carbon]) + 0.3


def test_dust_reddens_as_its_law_says():
    sky = place_objects(
        draw_population(dict.fromkeys(CLASSES, 500), default_rng(3)), default_rng(4)
    )
    dimming = sky.magnitudes - sky.population.magnitudes
    assert dimming == pytest.approx(EXTINCTION[:, None] * sky.reddening)
    assert 0.08 < np.median(sky.reddening) < 0.25
    assert EXTINCTION[1] - EXTINCTION[2] == pytest.approx(1.0)


def test_two_equal_lights_are_three_quarters_of_a_magnitude_brighter():
    assert add_light(18.0, 18.0) == pytest.approx(18.0 - 2.5 * np.log10(2))


def test_a_luminosity_function_has_its_slope():
    drawn = draw_luminosity(200_000, default_rng(5), slope=0.3, span=(14.0, 20.0))
    counts, edges = np.histogram(drawn, np.arange(15.0, 20.1, 0.5))
    assert np.polyfit(edges[:-1], np.log10(counts), 1)[0] == pytest.approx(0.3, abs=0.01)


def test_every_class_has_the_facts_that_fit_it():
    drawn = draw_population(dict.fromkeys(CLASSES, 200), default_rng(6))
    has_period = {"CEPH", "RRL", "EB", "LPV"}
    has_walk = {"QSO", "BE"}
    for kind, name in enumerate(CLASSES):
        rows = drawn.kind == kind
        assert np.isfinite(drawn.magnitudes[:, rows]).all()
        assert np.isfinite(drawn.period[rows]).all() == (name in has_period)
        assert np.isnan(drawn.period[rows]).all() == (name not in has_period)
        assert np.isfinite(drawn.tau[rows]).all() == (name in has_walk)
        assert np.isfinite(drawn.redshift[rows]).all() == (name == "QSO")
