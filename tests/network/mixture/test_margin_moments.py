"""Moments and draws of values behind jumps and in long tails, against closed forms."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr

from skyfill.network.mixture.maps import fit_margin, identity_margin
from skyfill.network.mixture.margin import Margin
from skyfill.network.mixture.margin_moments import LADDER, add_component, margin_moments
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.network import MixtureNetwork


def moments(margin, mean, sd):
    """Mean and sd of a value whose score is normal."""
    table, middle, reach = margin_moments(margin)
    first, second = add_component((1.0, mean, sd), table, LADDER, 0.0, 0.0)
    return middle + reach * first, reach * np.sqrt(max(second - first**2, 0.0))


def unconditioned(*columns):
    """A network whose scores are independent standard normals, and an empty row."""
    p = len(columns)
    fit = Mixture(np.ones(1), np.zeros((1, p)), np.eye(p)[None], None, None)
    margins = tuple(fit_margin(column) for column in columns)
    return MixtureNetwork(tuple("abc"[:p]), margins, (fit,)), np.full((1, p), np.nan)


spreads = st.floats(1 / 32, 2.0)


@given(st.floats(-2.5, 2.5), st.floats(-3, 3), spreads)
@example(0.0664, 1 / 32, 1 / 32)  # at the edge between two narrow cells
@example(0.93, 0.91, 0.0449)  # a spread just below one that is tabulated
@example(-2.46, -3.0, 1.99)  # near the ends of the table
def test_a_jump_is_the_share_beyond_it(edge, mean, sd):
    step = Margin(np.array([0.0, 0.0, 1.0, 1.0]), np.array([-4.0, edge, edge, 4.0]))
    share = ndtr((mean - edge) / sd)
    found = moments(step, mean, sd)
    assert found[0] == pytest.approx(share, abs=0.002)
    assert found[1] == pytest.approx(np.sqrt(share * (1 - share)), abs=0.01)


@given(st.integers(0, 999), st.floats(-3, 3), spreads)
def test_every_segment_has_its_closed_form(seed, mean, sd):
    rng = np.random.default_rng(seed)
    z = np.sort(rng.normal(size=30))
    x = np.cumsum(rng.exponential(size=30) ** 3)
    margin = Margin(x, z)
    ends = np.concatenate([[mean - 12 * sd], z, [mean + 12 * sd]])
    ends = np.unique(np.clip(ends, mean - 12 * sd, mean + 12 * sd))
    low, high = ends[:-1], ends[1:]
    # Within a segment x = a + b * score; the integrals of 1, u and u**2 over the normal density.
    third = (high - low) / 3
    b = (margin.from_normal(high - third) - margin.from_normal(low + third)) / third
    a = margin.from_normal((low + high) / 2) - b * ((low + high) / 2 - mean)
    u, v = (low - mean) / sd, (high - mean) / sd
    density = [np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) for t in (u, v)]
    mass, one = ndtr(v) - ndtr(u), density[0] - density[1]
    two = mass + u * density[0] - v * density[1]
    first = (a * mass + b * sd * one).sum()
    second = (a**2 * mass + 2 * a * b * sd * one + (b * sd) ** 2 * two).sum()
    expected = np.sqrt(second - first**2)
    found = moments(margin, mean, sd)
    assert found[0] == pytest.approx(first, abs=0.004 * np.ptp(x))
    assert found[1] == pytest.approx(expected, abs=0.01 * np.ptp(x))


def test_a_line_is_exact():
    margin = identity_margin(np.array([3.0, 7.0]))
    assert moments(margin, 0.7, 0.33) == pytest.approx((5 + 2 * 0.7, 2 * 0.33), rel=1e-9)
    assert moments(margin, 9.0, 3.0) == pytest.approx((5 + 2 * 9.0, 2 * 3.0), rel=1e-9)


def test_a_column_of_two_values_is_filled_with_their_share():
    two = np.repeat([0.0, 1.0], [550, 450])
    network, row = unconditioned(two)
    post = network.posterior(row)
    assert post.mean[0, 0] == pytest.approx(0.45, abs=0.001)
    assert post.sd[0, 0] == pytest.approx(two.std(), abs=0.001)


def test_a_long_tail_is_filled_with_its_mean():
    for seed in range(3):
        column = np.random.default_rng(seed).lognormal(0, 2, 3000)
        network, row = unconditioned(column)
        assert network.posterior(row).mean[0, 0] == pytest.approx(column.mean(), rel=0.02)


def test_atoms_are_drawn_as_often_as_they_are_seen():
    rng = np.random.default_rng(0)
    column = np.where(rng.random(5000) < 0.21, 0.0, 0.3 + rng.lognormal(0, 1, 5000))
    network, row = unconditioned(column)
    made = network.draws(np.repeat(row, 2000, axis=0), 20, 1).ravel()
    assert (made == 0).mean() == pytest.approx((column == 0).mean(), abs=0.006)
    assert not ((made > 0) & (made < column[column > 0].min())).any()
    assert not (made < 0).any()
