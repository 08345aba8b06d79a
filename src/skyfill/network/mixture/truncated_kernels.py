"""Compiled kernels for Gaussians of which some coordinates are known to lie within limits.

A coordinate lies in a window (low, high), -inf and inf where there is no limit. A window of some
width is soft: the limit applies to the value plus Gaussian noise of that standard deviation, as
where a source near the detection limit is found or missed by chance.

One window has closed forms. Several are approximated by expectation propagation (Cunningham,
Hennig & Lacoste-Julien 2011): each window is replaced by a Gaussian factor that gives the same mean
and variance. Means and standard deviations of 2 to 8 limited coordinates agree with long Gibbs runs
to about 0.02 standard deviations where the correlations are below 0.9.
"""

import math

import numpy as np

from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.random_keys import uniform

# Sweeps of expectation propagation at most, and the change (in standard deviations) that ends them.
SWEEPS, SETTLED = 30, 1e-3
# A window that reaches further than this many standard deviations to both sides changes nothing.
SURE = 6.0
# Sweeps of the Gibbs sampler before a draw is taken, from a start near the mean.
GIBBS_SWEEPS = 20
_ROOT_2, _ROOT_2PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)
# Below this the tail of a normal comes from its continued fraction, of so many terms.
_TAIL, _TERMS = -5.0, 16
# Coefficients of the rational approximations of the normal quantile (Wichura 1988, AS 241, PPND7).
_CENTRAL = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
_MIDDLE = (
    (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
    (1.0, 0.73700164250, 0.12021132975, 0.0),
)
_FAR = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635, 0.0),
)


@leaf
def log_tail(z):  # type: ignore[no-untyped-def]
    """Log of the normal distribution function at z, and density over distribution there."""
    r = hazard(z)
    if z > _TAIL:
        return math.log(0.5 * math.erfc(-z / _ROOT_2)), r
    return -0.5 * z * z - math.log(_ROOT_2PI * r), r


@leaf
def hazard(z):  # type: ignore[no-untyped-def]
    """Density of a normal over its distribution function at z."""
    if z > _TAIL:
        return math.exp(-0.5 * z * z) / (0.5 * _ROOT_2PI * math.erfc(-z / _ROOT_2))
    fraction = -z
    for term in range(_TERMS, 0, -1):
        fraction = -z + term / fraction
    return fraction


@leaf
def quantile(level):  # type: ignore[no-untyped-def]
    """Give the normal quantile of a level between 0 and 1, to 1e-7."""
    q = level - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _CENTRAL)
    r = math.sqrt(-math.log(max(min(level, 1.0 - level), 1e-300)))
    value = _ratio(r - 1.6, _MIDDLE) if r <= 5.0 else _ratio(r - 5.0, _FAR)
    return value if q > 0.0 else -value


@leaf
def _ratio(r, coefficients):  # type: ignore[no-untyped-def]
    (a, b, c, d), (e, f, g, h) = coefficients
    return (((d * r + c) * r + b) * r + a) / (((h * r + g) * r + f) * r + e)


@leaf
def through_window(mean, var, low, high, noise):  # type: ignore[no-untyped-def]
    """Log probability of a window under a normal, and the normal's mean and variance within it.

    `noise` is the variance of a soft limit, 0 for a hard one.
    """
    scale = math.sqrt(var + noise)
    if high == np.inf and low == -np.inf:
        return 0.0, mean, var
    a, b = (low - mean) / scale, (high - mean) / scale
    if high == np.inf:
        log_p, r = log_tail(-a)
        step, slope = r, r * (r - a)
    elif low == -np.inf:
        log_p, r = log_tail(b)
        step, slope = -r, r * (r + b)
    else:
        # From the side where the window lies: the difference of two tails is then no cancellation.
        flip = a + b > 0.0
        near, far = (-a, -b) if flip else (b, a)
        log_near, r_near = log_tail(near)
        log_far, r_far = log_tail(far)
        left = -math.expm1(min(log_far - log_near, -1e-12))
        log_p = log_near + math.log(left)
        at_near, at_far = r_near / left, r_far * math.exp(log_far - log_near) / left
        at_low, at_high = (at_near, at_far) if flip else (at_far, at_near)
        step = at_low - at_high
        slope = step * step - a * at_low + b * at_high
    gain = var / scale
    # Never quite 0, so that the precision of a window stays finite.
    return log_p, mean + gain * step, max(var - gain * gain * slope, 1e-9 * var)


@leaf
def inside_window(mean, var, low, high, noise):  # type: ignore[no-untyped-def]
    """Mean and variance of a normal within a window: as `through_window`, without a logarithm."""
    if high < np.inf and low > -np.inf:
        _, inside, left = through_window(mean, var, low, high, noise)
        return inside, left
    scale = math.sqrt(var + noise)
    side, z = (1.0, (mean - low) / scale) if high == np.inf else (-1.0, (high - mean) / scale)
    r = hazard(z)
    gain = var / scale
    return mean + side * gain * r, max(var - gain * gain * r * (r + z), 1e-9 * var)


@leaf
def is_sure(mean, var, low, high):  # type: ignore[no-untyped-def]
    """Whether a normal lies within a window but for a negligible part."""
    reach = SURE * math.sqrt(var)
    return low < mean - reach and mean + reach < high


@leaf
def propagate(cov, low, high, noise, S, mean, tau, nu, cavity):  # type: ignore[no-untyped-def]
    """Approximate a centred Gaussian within windows by a Gaussian; return the log probability.

    Writes the covariance S and the mean within the windows, and the precisions `tau` and
    precision-weighted means `nu` of the factors that stand for them: S is the inverse of
    ``inv(cov) + diag(tau)``, ``mean = S @ nu``. `cavity` gets mean and variance of each coordinate
    when its own window is left out: within the window, that normal is its distribution. Arrays may
    be larger than `low`, which counts.
    """
    half_log_det = fit_windows(cov, low, high, noise, S, mean, tau, nu)
    return weigh_windows(low, high, noise, S, mean, tau, nu, cavity) - half_log_det


@leaf
def fit_windows(cov, low, high, noise, S, mean, tau, nu):  # type: ignore[no-untyped-def]
    """Find the factors that stand for windows; return half the log of how much they shrink S."""
    c = low.size
    for a in range(c):  # not by slices, which a GPU cannot copy
        mean[a], tau[a], nu[a] = 0.0, 0.0, 0.0
        for b in range(c):
            S[a, b] = cov[a, b]
    log_det, det = 0.0, 1.0
    for _ in range(SWEEPS if c > 1 else 1):
        change = 0.0
        for i in range(c):
            spread = S[i, i]
            free = max(1.0 / spread - tau[i], 1e-12 / spread)
            at = (mean[i] / spread - nu[i]) / free
            if tau[i] == 0.0 and is_sure(at, 1.0 / free + noise[i], low[i], high[i]):
                continue
            inside, var = inside_window(at, 1.0 / free, low[i], high[i], noise[i])
            new = max(1.0 / var - free, 0.0)
            more = new - tau[i]
            pull = inside / var - at * free if new > 0.0 else 0.0
            change = max(change, abs(inside - mean[i]) * math.sqrt(free), abs(var - spread) * free)
            shrink = 1.0 + more * spread
            kick = (pull - nu[i] - more * mean[i]) / shrink
            for a in range(c):
                mean[a] += S[a, i] * kick
            for a in range(c):
                if a == i:
                    continue
                share = S[a, i] * (more / shrink)
                for b in range(c):
                    S[a, b] -= share * S[i, b]
            for b in range(c):
                S[i, b] /= shrink
            tau[i], nu[i] = new, pull
            # One logarithm for many factors, before they run out of range.
            det *= shrink
            if not 1e-100 < det < 1e100:
                log_det, det = log_det + math.log(det), 1.0
        if change < SETTLED:
            break
    return 0.5 * (log_det + math.log(det))


@leaf
def weigh_windows(low, high, noise, S, mean, tau, nu, cavity):  # type: ignore[no-untyped-def]
    """Log probability of all windows but for the determinant of S; writes the cavities."""
    # One logarithm for the chances and the precisions of many windows.
    total, chance, ratio = 0.0, 1.0, 1.0
    for i in range(low.size):
        spread = S[i, i]
        free = max(1.0 / spread - tau[i], 1e-12 / spread)
        at = (mean[i] / spread - nu[i]) / free
        cavity[0, i], cavity[1, i] = at, 1.0 / free
        if tau[i] == 0.0 and is_sure(at, 1.0 / free + noise[i], low[i], high[i]):
            continue
        both, scale = free + tau[i], math.sqrt(1.0 / free + noise[i])
        total += 0.5 * mean[i] * nu[i]
        total -= 0.5 * ((at * free + nu[i]) ** 2 / both - at * at * free)
        ratio *= both / free
        z = min((at - low[i]) / scale, (high[i] - at) / scale)
        if z > _TAIL and (low[i] == -np.inf or high[i] == np.inf):
            chance *= 0.5 * math.erfc(-z / _ROOT_2)
        else:
            total += through_window(at, 1.0 / free, low[i], high[i], noise[i])[0]
        if chance < 1e-100 or ratio > 1e100:
            total, chance, ratio = total + math.log(chance) + 0.5 * math.log(ratio), 1.0, 1.0
    return total + math.log(chance) + 0.5 * math.log(ratio)


@leaf
def draw_within(mean, sd, low, high, states, i):  # type: ignore[no-untyped-def]
    """Draw from a normal between two limits, with the next number of the i-th stream."""
    a, b = (low - mean) / sd, (high - mean) / sd
    if a > 0.0:  # the upper tail as the lower one, where small probabilities are exact
        return mean - sd * _draw_lower(-b, -a, uniform(states, i))
    return mean + sd * _draw_lower(a, b, uniform(states, i))


@leaf
def _draw_lower(a, b, level):  # type: ignore[no-untyped-def]
    """Draw from a standard normal between a and b, of which a is below 0."""
    if b < -30.0:  # nearly an exponential at b
        return max(b + math.log(level) / -b, a)
    p = 0.5 * math.erfc(-a / _ROOT_2)
    q = 0.5 * math.erfc(-b / _ROOT_2)
    return min(max(quantile(p + level * (q - p)), a), b)


@leaf
def draw_windows(precision, low, high, noise, start, states, x):  # type: ignore[no-untyped-def]
    """Draw from a centred Gaussian within windows: Gibbs sampling from a point near the mean.

    A soft window is a hard one of the value plus noise, which is drawn as well. Each coordinate has
    a stream of random numbers of its own.
    """
    c = low.size
    for i in range(c):
        x[i] = min(max(start[i], low[i]), high[i]) if noise[i] == 0.0 else start[i]
    for _ in range(GIBBS_SWEEPS):
        for i in range(c):
            push = 0.0
            for j in range(c):
                push += precision[i, j] * x[j]
            var = 1.0 / precision[i, i]
            at = x[i] - var * push
            if noise[i] == 0.0:
                x[i] = draw_within(at, math.sqrt(var), low[i], high[i], states, i)
            else:
                both = var + noise[i]
                found = draw_within(at, math.sqrt(both), low[i], high[i], states, i)
                share = var / both
                spread = math.sqrt(var * (1.0 - share))
                x[i] = at + share * (found - at) + spread * quantile(uniform(states, i))


@leaf
def draw_some_within(squares, windows, start, states, e, x):  # type: ignore[no-untyped-def]
    """Draw from a centred Gaussian of which the first coordinates lie within windows.

    The first square holds the covariance below its diagonal and gets its Cholesky factor; the
    others are room, as is `e`. `start` is a point near the mean within the windows.
    """
    (L, inverse, precision), (low, high, noise) = squares, windows
    c = low.size
    factorize(L, x.size)
    if c:
        invert_lower(L, c, inverse)
        for i in range(c):
            for j in range(c):
                precision[i, j] = 0.0
                for h in range(max(i, j), c):
                    precision[i, j] += inverse[h, i] * inverse[h, j]
        draw_windows(precision[:c, :c], low, high, noise, start, states, x[:c])
        for i in range(c):
            e[i] = 0.0
            for h in range(i + 1):
                e[i] += inverse[i, h] * x[h]
    for i in range(c, x.size):
        e[i] = quantile(uniform(states, i))
    for i in range(c, x.size):
        x[i] = 0.0
        for h in range(i + 1):
            x[i] += L[i, h] * e[h]


@leaf
def factorize(L, n):  # type: ignore[no-untyped-def]
    """Replace a covariance, below its diagonal, by its Cholesky factor."""
    for i in range(n):
        for j in range(i + 1):
            value = L[i, j]
            for h in range(j):
                value -= L[i, h] * L[j, h]
            L[i, j] = math.sqrt(max(value, 1e-300)) if i == j else value / L[j, j]


@leaf
def invert_lower(L, n, out):  # type: ignore[no-untyped-def]
    """Write the inverse of the first rows of a lower triangle, below the diagonal."""
    for i in range(n):
        for j in range(i + 1):
            value = 1.0 if i == j else 0.0
            for h in range(j, i):
                value -= L[i, h] * out[h, j]
            out[i, j] = value / L[i, i]
