"""Compiled search for neighbors in strips of declination."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def search_strips(  # type: ignore[no-untyped-def]
    ra, dec, radius, vectors, chords, low_dec, height, starts, ra2, vectors2, rows2, at, out, counts
):
    """Count the neighbors into `at`, or write their rows into `out` from `at` on."""
    n_strips = starts.size - 1
    for i in range(ra.size):
        if not (np.isfinite(ra[i]) and np.isfinite(dec[i])):
            continue
        first = max(int(math.floor((dec[i] - radius[i] - low_dec) / height)), 0)
        last = min(int(math.floor((dec[i] + radius[i] - low_dec) / height)), n_strips - 1)
        width = half_width(dec[i], radius[i])
        begin = n = at[i] if not counts else 0
        for s in range(first, last + 1):
            for turn in range(-1, 2):
                low, high = ra[i] - width + 360 * turn, ra[i] + width + 360 * turn
                if (high < 0 or low > 360) or (width >= 180 and turn != 0):
                    continue
                if width >= 180:
                    low, high = -1.0, 361.0
                j = starts[s] + np.searchsorted(ra2[starts[s] : starts[s + 1]], low)
                while j < starts[s + 1] and ra2[j] <= high:
                    chord2 = 0.0
                    for k in range(3):
                        chord2 += (vectors[i, k] - vectors2[j, k]) ** 2
                    if chord2 <= chords[i] * chords[i]:
                        if not counts:
                            out[n] = rows2[j]
                        n += 1
                    j += 1
        if counts:
            at[i] = n
        else:
            out[begin:n].sort()


@njit(cache=True, nogil=True, error_model="numpy")
def half_width(dec, radius):  # type: ignore[no-untyped-def]
    """Degrees of right ascension that a circle reaches to either side; 180 around a pole."""
    if abs(dec) + radius >= 90:
        return 180.0
    ratio = math.sin(math.radians(radius)) / math.cos(math.radians(dec))
    return math.degrees(math.asin(min(ratio, 1.0))) + 1e-9
