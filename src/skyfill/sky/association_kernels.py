"""Compiled enumeration of associations: a base object with at most one source of each survey.

The product of normal densities around one true position, integrated over that position, depends
only on sums over the members (Budavari & Szalay 2008 for circles): with inverse covariances W_i
and offsets x_i it is ``(2 pi)^(1 - k) sqrt(prod |W_i| / |S|) exp(-Q / 2)``, where S is the sum of
the W_i and ``Q = sum x_i' W_i x_i - h' S^-1 h``, h the sum of the W_i x_i.
"""

import math

import numpy as np
from numba import njit

from skyfill.sky.rest_kernels import weigh_rest_by_best, weigh_rest_by_sum
from skyfill.sky.sphere import ARCSEC

LOG_2PI = math.log(2 * math.pi)
# Sources of two surveys further apart than this are never one object: exp(-18) in likelihood.
MOST_SIGMAS = 6.0
# How sources outside an association are weighed.
IGNORED, BY_BEST, BY_SUM = range(3)
REST = {"ignore": IGNORED, "best": BY_BEST, "sum": BY_SUM}
# Sums: S (east, both, north), h (east, north), x'Wx, log |W|, members, log density.
SXX, SXY, SYY, HX, HY, XWX, LOG_W, MEMBERS, LOG_RHO = range(9)
# Candidate: offset (east, north), W (east, both, north), log |W|, largest variance, log density,
# number among the sources of all surveys.
DX, DY, WXX, WXY, WYY, LOG_DET, VARIANCE, LOG_DENSITY, NUMBER = range(9)


@njit(cache=True, nogil=True, error_model="numpy")
def place(vector, shape, log_density, frame, out):  # type: ignore[no-untyped-def]
    """Describe one source in the frame of a base object: sines and cosines of its ra and dec.

    North at the source is not quite north at the base: ellipses are turned by the difference.
    """
    sin_ra, cos_ra, sin_dec, cos_dec = frame
    east = vector[1] * cos_ra - vector[0] * sin_ra
    north = vector[2] * cos_dec - (vector[0] * cos_ra + vector[1] * sin_ra) * sin_dec
    out[DX], out[DY] = east / ARCSEC, north / ARCSEC
    xx, xy, yy = shape[0], shape[1], shape[2]
    if xx != yy or xy != 0:
        turn = math.atan2(-east * vector[2], cos_dec - north * vector[2])
        s, c = math.sin(turn), math.cos(turn)
        xx, xy, yy = (
            c * c * xx + 2 * s * c * xy + s * s * yy,
            (c * c - s * s) * xy + s * c * (yy - xx),
            s * s * xx - 2 * s * c * xy + c * c * yy,
        )
    out[WXX], out[WXY], out[WYY] = xx, xy, yy
    out[LOG_DET], out[VARIANCE], out[LOG_DENSITY] = shape[3], shape[4], log_density


@njit(cache=True, nogil=True, error_model="numpy")
def add(sums, source, out):  # type: ignore[no-untyped-def]
    """Add a member to an association."""
    wx = source[WXX] * source[DX] + source[WXY] * source[DY]
    wy = source[WXY] * source[DX] + source[WYY] * source[DY]
    out[SXX] = sums[SXX] + source[WXX]
    out[SXY] = sums[SXY] + source[WXY]
    out[SYY] = sums[SYY] + source[WYY]
    out[HX], out[HY] = sums[HX] + wx, sums[HY] + wy
    out[XWX] = sums[XWX] + source[DX] * wx + source[DY] * wy
    out[LOG_W] = sums[LOG_W] + source[LOG_DET]
    out[MEMBERS] = sums[MEMBERS] + 1
    out[LOG_RHO] = sums[LOG_RHO] + source[LOG_DENSITY]


@njit(cache=True, nogil=True, error_model="numpy")
def log_evidence(sums):  # type: ignore[no-untyped-def]
    """Log density of the members' offsets if they are one object."""
    if sums[MEMBERS] < 2:
        return 0.0
    det = sums[SXX] * sums[SYY] - sums[SXY] * sums[SXY]
    fit = (
        sums[SYY] * sums[HX] ** 2 - 2 * sums[SXY] * sums[HX] * sums[HY] + sums[SXX] * sums[HY] ** 2
    ) / det
    scale = (sums[LOG_W] - math.log(det)) / 2 - (sums[MEMBERS] - 1) * LOG_2PI
    return scale - (sums[XWX] - fit) / 2


@njit(cache=True, nogil=True, error_model="numpy")
def log_blended(sums, start, number, blends):  # type: ignore[no-untyped-def]
    """Log evidence, averaged over how far neighbors within the beam pull the base's position.

    The base sees a source and its fainter neighbors as one object, at their center of light.
    Moving the base by -d moves all members by d; `start` holds the sums of the base alone.
    """
    starts, offsets, log_weight = blends
    if starts.size == 0 or starts[number] == starts[number + 1]:
        return log_evidence(sums)
    mxx, mxy, myy = sums[SXX] - start[SXX], sums[SXY] - start[SXY], sums[SYY] - start[SYY]
    moved, log_total = sums.copy(), -np.inf
    for j in range(starts[number], starts[number + 1]):
        x, y = offsets[j, 0], offsets[j, 1]
        moved[HX] = sums[HX] + mxx * x + mxy * y
        moved[HY] = sums[HY] + mxy * x + myy * y
        moved[XWX] = sums[XWX] + x * (sums[HX] + moved[HX]) + y * (sums[HY] + moved[HY])
        log_total = np.logaddexp(log_total, log_weight[j] + log_evidence(moved))
    return log_total


@njit(cache=True, nogil=True, error_model="numpy")
def _fits(sources, candidate, chosen, level, firsts):  # type: ignore[no-untyped-def]
    """Tell whether a candidate is near enough to the sources chosen from earlier surveys."""
    for k in range(level):
        if chosen[k] >= 0:
            other = sources[firsts[k] + chosen[k]]
            apart = (other[DX] - candidate[DX]) ** 2 + (other[DY] - candidate[DY]) ** 2
            if apart > MOST_SIGMAS**2 * (other[VARIANCE] + candidate[VARIANCE]):
                return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def enumerate_sets(sources, firsts, start, blends, members, log_e, log_rho, count_only):  # type: ignore[no-untyped-def]
    """Walk through all choices of at most one source per survey; return their number.

    `firsts` says where the sources of each survey begin, `start` holds the sums to begin with,
    `blends` where the base would see each source (see `Blends`). The first choice is to take
    nothing. `members` gets indices within the survey, -1 for none.
    """
    n_surveys = firsts.size - 1
    sums = np.zeros((n_surveys + 1, 9))
    chosen = np.zeros(n_surveys + 1, np.int64) - 2
    for t in range(9):
        sums[0, t] = start[t]
    level, n = 0, 0
    while level >= 0:
        if level == n_surveys:
            if not count_only:
                for k in range(n_surveys):
                    members[n, k] = chosen[k]
                log_e[n], log_rho[n] = log_evidence(sums[level]), sums[level, LOG_RHO]
                for k in range(n_surveys if blends[0].size else 0):
                    if chosen[k] >= 0:
                        number = int(sources[firsts[k] + chosen[k], NUMBER])
                        log_e[n] = log_blended(sums[level], start, number, blends)
                        break
            n += 1
            level -= 1
            continue
        chosen[level] += 1
        if chosen[level] >= firsts[level + 1] - firsts[level]:
            chosen[level] = -2
            level -= 1
        elif chosen[level] == -1:
            for t in range(9):
                sums[level + 1, t] = sums[level, t]
            level += 1
        else:
            candidate = sources[firsts[level] + chosen[level]]
            if _fits(sources, candidate, chosen, level, firsts):
                add(sums[level], candidate, sums[level + 1])
                level += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def gather(i, frames, shapes, log_density, near, survey):  # type: ignore[no-untyped-def]
    """Describe base object i and its candidates; say where those of each survey begin.

    `log_density` is that of field sources which a set of surveys sees, by the bits of the set.
    """
    starts, rows, offsets = near
    vectors, survey_shapes = survey
    n_surveys = starts.shape[0]
    firsts = np.zeros(n_surveys + 1, np.int64)
    for k in range(n_surveys):
        firsts[k + 1] = firsts[k] + starts[k, i + 1] - starts[k, i]
    sources = np.empty((firsts[-1], 9))
    frame = (frames[i, 0], frames[i, 1], frames[i, 2], frames[i, 3])
    for k in range(n_surveys):
        for j in range(firsts[k + 1] - firsts[k]):
            at = offsets[k] + rows[starts[k, i] + j]
            place(
                vectors[at],
                survey_shapes[at],
                log_density[i, 1 << k],
                frame,
                sources[firsts[k] + j],
            )
            sources[firsts[k] + j, NUMBER] = at
    start = np.zeros(9)
    start[SXX], start[SXY], start[SYY] = shapes[i, 0], shapes[i, 1], shapes[i, 2]
    start[LOG_W] = shapes[i, 3]
    start[MEMBERS] = 1
    return sources, firsts, start


@njit(cache=True, nogil=True, error_model="numpy")
def count_sets(first, last, frames, shapes, log_density, near, survey, blends, counts):  # type: ignore[no-untyped-def]
    """Count the associations of base objects first to last, "none" included."""
    nothing, none = np.empty((0, 1), np.int32), np.empty(0)
    for i in range(first, last):
        if len(near[0]) == 1:
            counts[i] = 1 + near[0][0, i + 1] - near[0][0, i]
        else:
            sources, firsts, start = gather(i, frames, shapes, log_density, near, survey)
            counts[i] = enumerate_sets(sources, firsts, start, blends, nothing, none, none, True)


@njit(cache=True, nogil=True, error_model="numpy")
def list_sets(  # type: ignore[no-untyped-def]
    first,
    last,
    frames,
    shapes,
    log_density,
    near,
    survey,
    blends,
    begins,
    members,
    log_weight,
    rest,
):
    """Write the associations of base objects first to last, and their log weights."""
    for i in range(first, last):
        sources, firsts, start = gather(i, frames, shapes, log_density, near, survey)
        part = slice(begins[i], begins[i + 1])
        chosen, weight = members[part], log_weight[part]
        log_rho = np.empty(len(weight))
        enumerate_sets(sources, firsts, start, blends, chosen, weight, log_rho, False)
        for a in range(len(weight)):
            weight[a] -= log_rho[a]
        if firsts.size > 2 and len(sources) and rest > 0:
            _weigh_rest(sources, firsts, log_density[i], chosen, weight, rest)
        _name_rows(i, chosen, near)


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_rest(sources, firsts, log_density, chosen, weight, rest):  # type: ignore[no-untyped-def]
    """Take into account that sources outside an association may belong together."""
    nothing, alone = np.zeros(9), (np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0))
    n = enumerate_sets(sources, firsts, nothing, alone, chosen, weight, weight, True)
    blocks, log_e, log_rho = np.empty((n, firsts.size - 1), np.int32), np.empty(n), np.empty(n)
    enumerate_sets(sources, firsts, nothing, alone, blocks, log_e, log_rho, False)
    several = np.zeros(n, np.bool_)
    for b in range(n):
        code, size = 0, 0
        for k in range(firsts.size - 1):
            if blocks[b, k] >= 0:
                code |= 1 << k
                size += 1
        several[b] = size > 1
        log_e[b] += log_density[code] - log_rho[b]
    if rest == BY_SUM:
        weigh_rest_by_sum(chosen, blocks[several], log_e[several], firsts, weight)
    else:
        weigh_rest_by_best(chosen, blocks[several], log_e[several], firsts, weight)


@njit(cache=True, nogil=True, error_model="numpy")
def _name_rows(i, chosen, near):  # type: ignore[no-untyped-def]
    """Replace indices among the candidates by rows of the surveys."""
    starts, rows, _ = near
    for a in range(len(chosen)):
        for k in range(chosen.shape[1]):
            if chosen[a, k] >= 0:
                chosen[a, k] = rows[starts[k, i] + chosen[a, k]]
