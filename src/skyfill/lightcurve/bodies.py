"""Bodies of the loops that a GPU runs over stars, bands, points, lags and frequencies.

See `skyfill.device`. They call the functions that compute the same features on the processor; what
stands here is which of them for which part of flat arrays. Band b has the points
``start[b]:start[b + 1]``, star s has the bands from ``s * n_bands``.
"""

import math

from numba import njit

from skyfill.lightcurve.autocorrelation import LEAST_PAIRS, SIGNIFICANT
from skyfill.lightcurve.car import climb
from skyfill.lightcurve.noise import GAUSSIAN_K, weighted_square
from skyfill.lightcurve.order import count_runs, difference_square, sum_range
from skyfill.lightcurve.period import LEAST_POINTS
from skyfill.lightcurve.periodogram import (
    ALIAS_ON_GRID,
    FALLEN,
    OVERSAMPLING,
    SHORT_STEPS,
    power_at_frequency,
    removed_by,
    scan_peaks,
    unpack,
    unpack_odd,
)
from skyfill.lightcurve.shape import central_moments
from skyfill.lightcurve.spectrum import COMBS, spread
from skyfill.lightcurve.two_bands import LEAST_PAIRS as LEAST_EPOCHS
from skyfill.lightcurve.two_bands import PAIR_DAYS, nearest_epoch

ROWS = COMBS + 1
# Cells of a spectrum of which one thread finds the highest.
SEGMENT = 512
# What `describe` finds of a band.
MEAN, VARIANCE, CENTER, TOTAL, SCATTER, SIGMA, ETA, CON, CUSUM = range(9)
N_FACTS = 9
# What `choose_grid` finds of a star.
FIRST, STEP, LIMIT, CHI2 = range(4)
N_STAR_FACTS = 4


@njit
def describe(b, room, start, time, value, error, facts):  # type: ignore[no-untyped-def]
    """Moments of a band; TOTAL is 0 where no sinusoid can be fitted to it."""
    v, e = value[start[b] : start[b + 1]], error[start[b] : start[b + 1]]
    n = len(v)
    facts[b, TOTAL] = 0.0
    if n == 0:
        return
    mean, m2, _, _ = central_moments(v)
    facts[b, MEAN], facts[b, VARIANCE] = mean, m2
    center, chi2 = weighted_square(v, e)
    total, low, high = 0.0, v[0], v[0]
    for i in range(n):
        total += 1 / (e[i] * e[i])
        low, high = min(low, v[i]), max(high, v[i])
    facts[b, CENTER] = center
    if n >= LEAST_POINTS and high > low:
        facts[b, TOTAL], facts[b, SCATTER] = total, chi2 / total
    if n < 2:
        return
    sigma = math.sqrt(m2 * n / (n - 1))
    facts[b, SIGMA] = sigma
    if sigma > 0:
        facts[b, CUSUM] = sum_range(v, mean) / (n * sigma)
    if n < 3:
        return
    facts[b, CON] = count_runs(v, mean, 2 * sigma) / (n - 2)
    if sigma > 0:
        facts[b, ETA] = difference_square(v) / ((n - 1) * sigma**2)


@njit
def scale_point(i, room, band_of, start, time, value, error, exact, facts, out):  # type: ignore[no-untyped-def]
    """Time, value and error in the units in which a random walk is fitted."""
    b = band_of[i]
    a, n = start[b], start[b + 1] - start[b]
    scale = math.sqrt(facts[b, VARIANCE])
    unit = (time[start[b + 1] - 1] - time[a]) / math.sqrt(n)
    out[0, i] = time[i] / unit if unit > 0 else 0.0
    out[1, i] = (value[i] - facts[b, MEAN]) / scale if scale > 0 else 0.0
    out[2, i] = 0.0 if exact or scale == 0 else error[i] / scale


@njit
def walk(j, room, bands, start, time, scaled, facts, out):  # type: ignore[no-untyped-def]
    """Sigma and tau of the damped random walk of a band."""
    b = bands[j]
    a, z = start[b], start[b + 1]
    if z - a < LEAST_POINTS or facts[b, VARIANCE] == 0:
        return
    log_variance, log_tau, _ = climb(scaled[0, a:z], scaled[1, a:z], scaled[2, a:z])
    unit = (time[z - 1] - time[a]) / math.sqrt(z - a)
    scale = math.sqrt(facts[b, VARIANCE])
    out[j, 0] = scale * math.exp(0.5 * log_variance) / math.sqrt(unit)
    out[j, 1] = unit * math.exp(log_tau)


@njit
def sum_lag(i, room, band_of, n_bands, band, start, time, scaled, sums, pairs):  # type: ignore[no-untyped-def]
    """Sum the products of the pairs of a band at one lag, in the order of `sum_pairs`.

    Lag k of a band stands where its point k does.
    """
    b = band_of[i]
    a, z = start[b], start[b + 1]
    if b % n_bands != band or z - a < LEAST_POINTS:
        return
    lag, slot = i - a, (time[z - 1] - time[a]) / (z - a - 1)
    total, count, low = 0.0, 0, a
    for left in range(a, z):
        low = max(low, left + 1)
        while low < z and int((time[low] - time[left]) / slot + 0.5) < lag:
            low += 1
        right = low
        while right < z and int((time[right] - time[left]) / slot + 0.5) == lag:
            total += scaled[1, left] * scaled[1, right]
            count += 1
            right += 1
    sums[i], pairs[i] = total, count


@njit
def read_lags(j, room, bands, start, facts, sums, pairs, out):  # type: ignore[no-untyped-def]
    """Stetson's K of the autocorrelation of a band, and the lags above and below four sigma."""
    b = bands[j]
    a, z = start[b], start[b + 1]
    if z - a < LEAST_POINTS:
        return
    mean, n, above, below = 0.0, 0, 0, 0
    varies = facts[b, VARIANCE] > 0
    for i in range(a + 1, z):
        if pairs[i] >= LEAST_PAIRS and varies:
            value = sums[i] / pairs[i]
            mean += value
            n += 1
            above += value * math.sqrt(pairs[i]) > SIGNIFICANT
            below += value * math.sqrt(pairs[i]) < -SIGNIFICANT
    out[j, 1], out[j, 2] = above, below
    if n < 2:
        return
    mean /= n
    size, square = 0.0, 0.0
    for i in range(a + 1, z):
        if pairs[i] >= LEAST_PAIRS:
            value = sums[i] / pairs[i] - mean
            size += abs(value)
            square += value * value
    if square > 0:
        out[j, 0] = size / math.sqrt(n * square)


@njit
def pair_bands(s, room, n_bands, start, time, value, error, facts, out):  # type: ignore[no-untyped-def]
    """Stetson's L of the first two bands of a star."""
    a, b = s * n_bands, s * n_bands + 1
    n, m = start[a + 1] - start[a], start[b + 1] - start[b]
    if n < LEAST_EPOCHS or m < LEAST_EPOCHS:
        return
    first, second = time[start[a] : start[a + 1]], time[start[b] : start[b + 1]]
    count, index, size, square = 0, 0.0, 0.0, 0.0
    scale = n / (n - 1) * m / (m - 1)
    for i in range(n):
        j = nearest_epoch(second, first[i])
        if abs(second[j] - first[i]) > PAIR_DAYS or nearest_epoch(first, second[j]) != i:
            continue
        x = (value[start[a] + i] - facts[a, CENTER]) / error[start[a] + i]
        y = (value[start[b] + j] - facts[b, CENTER]) / error[start[b] + j]
        index += math.copysign(math.sqrt(abs(x * y) * math.sqrt(scale)), x * y)
        size += abs(x) + abs(y)
        square += x * x + y * y
        count += 1
    if count >= LEAST_EPOCHS and square > 0:
        out[s] = index / count * size / math.sqrt(2 * count * square) / GAUSSIAN_K


@njit
def choose_grid(s, room, n_bands, start, time, facts, least_limit, out):  # type: ignore[no-untyped-def]
    """First epoch, step and end of the grid of frequencies of a star, and its chi squared."""
    low, high, steps, chi2 = math.inf, -math.inf, 0, 0.0
    for b in range(s * n_bands, (s + 1) * n_bands):
        if facts[b, TOTAL] > 0:
            low, high = min(low, time[start[b]]), max(high, time[start[b + 1] - 1])
            steps += start[b + 1] - start[b] - 1
            chi2 += facts[b, SCATTER] * facts[b, TOTAL]
    out[s, CHI2] = chi2
    if steps == 0:
        return
    out[s, FIRST], out[s, STEP] = low, 1 / (OVERSAMPLING * (high - low))
    place = SHORT_STEPS * (steps - 1)
    left = int(place)
    # Only if the steps are so short, their quantile matters.
    short, out[s, LIMIT] = 0.5 / least_limit, least_limit
    if _count_steps(s, n_bands, start, time, facts, short)[0] <= left:
        return
    below, above = 0.0, short
    while True:  # the smallest step with `left` others up to it
        middle = 0.5 * (below + above)
        if middle <= below or middle >= above:
            break
        if _count_steps(s, n_bands, start, time, facts, middle)[0] > left:
            above = middle
        else:
            below = middle
    count, following = _count_steps(s, n_bands, start, time, facts, above)
    following = above if count > left + 1 else following
    out[s, LIMIT] = max(least_limit, 0.5 / (above + (place - left) * (following - above)))


@njit
def _count_steps(s, n_bands, start, time, facts, most):  # type: ignore[no-untyped-def]
    """Count the time steps of a star up to `most`; return the next longer one, too."""
    count, longer = 0, math.inf
    for b in range(s * n_bands, (s + 1) * n_bands):
        if facts[b, TOTAL] > 0:
            for i in range(start[b] + 1, start[b + 1]):
                step = time[i] - time[i - 1]
                count += step <= most
                longer = min(longer, step) if step > most else longer
    return count, longer


@njit
def gather_point(i, room, band_of, n_bands, time, value, error, facts, stars, out):  # type: ignore[no-untyped-def]
    """Time since the first epoch, value about the weighted mean, and weight of a point."""
    b = band_of[i]
    usable = facts[b, TOTAL] > 0
    out[0, i] = time[i] - stars[b // n_bands, FIRST] if usable else 0.0
    out[1, i] = value[i] - facts[b, CENTER] if usable else 0.0
    out[2, i] = 1 / (error[i] * error[i] * facts[b, TOTAL]) if usable else 0.0


@njit
def spread_row(i, room, some, n_bands, start, points, stars, bump, grid):  # type: ignore[no-untyped-def]
    """Spread a band over one of its grids; `room` takes the heights of the bump."""
    s, part = some[i // (n_bands * ROWS)], i % (n_bands * ROWS)
    b, row = s * n_bands + part // ROWS, part % ROWS
    a, z = start[b], start[b + 1]
    time, value, weight = points[0, a:z], points[1, a:z], points[2, a:z]
    spread(time, stars[s, STEP], weight, value, bump, row, row + 1, room, grid[i : i + 1])


@njit
def power_of(i, room, some, n_bands, size, sums, bump, facts, stars, power, window):  # type: ignore[no-untyped-def]
    """Power of a star at one frequency of each comb, and its spectral window at twice these."""
    per_star = (power.shape[1] + COMBS - 1) // COMBS
    here, m = i // per_star, i % per_star
    s = some[here]
    total = 0.0
    for b in range(s * n_bands, (s + 1) * n_bands):
        total += facts[b, TOTAL]
    for k in range(COMBS * m, min(COMBS * (m + 1), size[here])):
        removed, around = 0.0, 0j
        for b in range(s * n_bands, (s + 1) * n_bands):
            if facts[b, TOTAL] == 0:
                continue
            row = (here * n_bands + b - s * n_bands) * ROWS
            mine = sums[row : row + ROWS]
            at_f, at_2f = unpack(mine, bump, k)
            window_f = unpack(mine, bump, k // 2)[1] if k % 2 == 0 else unpack_odd(mine, bump, k)
            removed += facts[b, TOTAL] * removed_by(at_f, window_f, at_2f, facts[b, SCATTER])
            around += facts[b, TOTAL] / total * at_2f
        power[here, k] = removed / stars[s, CHI2]
        window[here, k] = abs(around)


@njit
def window_range(i, room, size, window, low, high):  # type: ignore[no-untyped-def]
    """Lowest and highest value of the window in a segment."""
    here, part = i // low.shape[1], i % low.shape[1]
    least, most = math.inf, 0.0
    for k in range(part * SEGMENT, min((part + 1) * SEGMENT, size[here])):
        least, most = min(least, window[here, k]), max(most, window[here, k])
    low[here, part], high[here, part] = least, most


@njit
def next_alias(here, room, size, window, low, high, before, found):  # type: ignore[no-untyped-def]
    """First maximum of the window beyond its central peak, and after `before`; 0: there is none."""
    fallen = False
    found[here] = 0
    if before[here] < 0:
        return
    for part in range(low.shape[1]):
        first, last = part * SEGMENT, min((part + 1) * SEGMENT, size[here] - 1)
        if high[here, part] <= ALIAS_ON_GRID:
            fallen = fallen or low[here, part] < FALLEN
            continue
        for k in range(max(first, 1), last):
            height = window[here, k]
            fallen = fallen or height < FALLEN
            if (
                fallen
                and k > before[here]
                and height > ALIAS_ON_GRID
                and height >= window[here, k - 1]
                and height > window[here, k + 1]
            ):
                found[here] = k
                return


@njit
def window_height(here, room, some, n_bands, start, points, facts, frequency, out):  # type: ignore[no-untyped-def]
    """Size of the spectral window of a star at one frequency."""
    s = some[here]
    top, total = 0j, 0.0
    for b in range(s * n_bands, (s + 1) * n_bands):
        total += facts[b, TOTAL]
    for b in range(s * n_bands, (s + 1) * n_bands):
        for i in range(start[b], start[b + 1]):
            angle = -2 * math.pi * frequency[here] * points[0, i]
            turn = complex(math.cos(angle), math.sin(angle))
            top += facts[b, TOTAL] / total * points[2, i] * turn
    out[here] = abs(top)


@njit
def sum_segment(i, room, first, last, power, sums):  # type: ignore[no-untyped-def]
    """Sum, sum of squares and maximum of the power in a segment."""
    here, part = i // sums.shape[1], i % sums.shape[1]
    one, two, most = 0.0, 0.0, -1.0
    begin = first + part * SEGMENT
    for k in range(begin, min(begin + SEGMENT, last[here])):
        height = power[here, k]
        one += height
        two += height * height
        most = max(most, height)
    sums[here, part, 0], sums[here, part, 1], sums[here, part, 2] = one, two, most


@njit
def find_peaks(here, room, first, last, power, sums, chosen, counts, moments):  # type: ignore[no-untyped-def]
    """Find the highest peaks of the power of a star, and its mean and standard deviation."""
    one, two, count, n = 0.0, 0.0, 0, last[here] - first
    mine = power[here, first : last[here]]
    for part in range(sums.shape[1]):
        if part * SEGMENT >= n:
            break
        one += sums[here, part, 0]
        two += sums[here, part, 1]
        # A segment that has nothing higher than the last of all peaks needs no search.
        if count == chosen.shape[1] and sums[here, part, 2] <= mine[chosen[here, count - 1]]:
            continue
        end = min((part + 1) * SEGMENT, n)
        count = scan_peaks(mine, part * SEGMENT, end, OVERSAMPLING, chosen[here], count)
    counts[here] = count
    moments[here, 0] = one / n
    moments[here, 1] = math.sqrt(max(two / n - (one / n) ** 2, 0.0))


@njit
def peak_height(i, room, some, n_bands, start, points, facts, stars, frequency, out):  # type: ignore[no-untyped-def]
    """Power of a star at one of its frequencies, from the points themselves."""
    here, peak = i // frequency.shape[1], i % frequency.shape[1]
    s = some[here]
    bands = start[s * n_bands : (s + 1) * n_bands + 1]
    totals = facts[s * n_bands : (s + 1) * n_bands, TOTAL]
    out[here, peak] = (
        power_at_frequency(points[0], points[1], points[2], bands, totals, frequency[here, peak])
        / stars[s, CHI2]
    )
