"""What holds for the pairs of any two catalogues."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.sky import match_positions
from skyfill.sky.sphere import unit_vectors
from tests.sky.fields import pairs_of, scattered

catalogues = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 60), st.floats(0.5, 20)
)


def brute_force(a, b, radius_arcsec: float) -> np.ndarray:
    """Separations of all pairs in arcsec, by the haversine formula; infinite beyond the radius."""
    (ra1, dec1), (ra2, dec2) = (np.radians(c) for c in (a, b))
    lat = np.sin((dec1[:, None] - dec2) / 2) ** 2
    lon = np.sin((ra1[:, None] - ra2) / 2) ** 2
    angle = 2 * np.arcsin(np.sqrt(lat + np.cos(dec1)[:, None] * np.cos(dec2) * lon))
    arcsec = np.degrees(angle) * 3600
    return np.where(arcsec <= radius_arcsec, arcsec, np.inf)


@given(catalogues)
def test_all_and_best_are_what_brute_force_gives(case):
    seed, n1, n2, radius = case
    a, b = scattered(n1, seed), scattered(n2, seed + 1)
    table = brute_force(a, b, radius)
    found = match_positions(*a, *b, radius, keep="all")
    assert set(pairs_of(found)) == set(zip(*map(list, np.nonzero(np.isfinite(table))), strict=True))
    assert_allclose(found.separation_arcsec, table[found.left, found.right], rtol=1e-6)
    assert_array_equal(found.n_candidates, np.isfinite(table).sum(axis=1))
    best = match_positions(*a, *b, radius, keep="best")
    assert_array_equal(best.left, np.flatnonzero(np.isfinite(table).any(axis=1)))
    assert_array_equal(best.right, table[best.left].argmin(axis=1))
    assert_array_equal(best.n_candidates, found.n_candidates)


@given(catalogues)
def test_symmetric_is_one_to_one_among_the_nearest(case):
    seed, n1, n2, radius = case
    a, b = scattered(n1, seed), scattered(n2, seed + 1)
    found = match_positions(*a, *b, radius)
    assert len(set(found.left)) == len(set(found.right)) == len(found)
    table = brute_force(a, b, radius)
    of_left = table[found.left].argmin(axis=1) == found.right
    of_right = table[:, found.right].argmin(axis=0) == found.left
    assert of_left.all() or of_right.all()
    mutual = {(i, table[i].argmin()) for i in range(n1) if np.isfinite(table[i]).any()}
    mutual = {(i, int(j)) for i, j in mutual if table[:, j].argmin() == i}
    assert mutual <= set(pairs_of(found))


@given(catalogues)
def test_exchanging_the_catalogues_does_not_change_the_symmetric_pairs(case):
    seed, n1, n2, radius = case
    a, b = scattered(n1, seed), scattered(n2, seed + 1)
    there, back = match_positions(*a, *b, radius), match_positions(*b, *a, radius)
    assert set(pairs_of(there)) == {(left, right) for right, left in pairs_of(back)}


@given(catalogues, st.floats(-80, 80), st.floats(0, 360))
def test_points_far_away_change_nothing(case, dec: float, ra: float):
    seed, n1, n2, radius = case
    assume(abs(dec + 20) > 1)
    a, b = scattered(n1, seed), scattered(n2, seed + 1)
    far = np.arange(50) * 0.001
    wider = np.append(b[0], ra + far), np.append(b[1], np.full(50, dec))
    near, wide = match_positions(*a, *b, radius), match_positions(*a, *wider, radius)
    assert pairs_of(near) == pairs_of(wide)
    assert_array_equal(near.n_candidates, wide.n_candidates)


@given(catalogues, st.tuples(*[st.floats(-1, 1)] * 4))
def test_turning_the_sky_turns_no_pair(case, quaternion):
    from scipy.spatial.transform import Rotation

    assume(np.linalg.norm(quaternion) > 0.1)
    turn = Rotation.from_quat(quaternion)
    seed, n1, n2, radius = case
    a, b = scattered(n1, seed), scattered(n2, seed + 1)

    def turned(catalogue):
        x, y, z = turn.apply(unit_vectors(*catalogue)).T
        return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))

    still = match_positions(*a, *b, radius)
    moved = match_positions(*turned(a), *turned(b), radius)
    assert pairs_of(still) == pairs_of(moved)
    assert_allclose(still.separation_arcsec, moved.separation_arcsec, atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["symmetric", "best", "all"]))
def test_the_order_of_the_rows_does_not_matter(seed: int, keep):
    a, b = scattered(40, seed), scattered(30, seed + 1)
    order = np.random.default_rng(seed).permutation(40)
    found = match_positions(*a, *b, 6.0, keep=keep)
    mixed = match_positions(a[0][order], a[1][order], *b, 6.0, keep=keep)
    assert {(order[i], j) for i, j in pairs_of(mixed)} == set(pairs_of(found))
    assert_array_equal(mixed.n_candidates, found.n_candidates[order])
