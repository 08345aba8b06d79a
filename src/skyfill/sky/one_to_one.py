"""One to one: no source is the counterpart of two objects, and the total probability is largest."""

import numpy as np
from numba import njit

from skyfill.sky.associations import Associations
from skyfill.sky.rest_kernels import find_root
from skyfill.sky.sphere import Floats, Rows

# Associations below this probability make no objects rivals, and are no second choice.
LEAST_P = 1e-3
# Rival objects are decided exactly up to this number, and up to so many steps; else from the
# likeliest association down.
MOST_EXACT, MOST_STEPS = 16, 1_000_000


def choose_one_to_one(found: Associations, p: Floats) -> Rows:
    """Choose an association for each base object so that no source is chosen twice.

    Objects that compete for the same sources form a group. The sum of the probabilities of the
    associations chosen in a group is the largest possible (exactly, for up to 16 objects).

    Parameters
    ----------
    p : array of shape (m,)
        From `probabilities`.

    Returns
    -------
    integer array of shape (n,)
        Association chosen for each object; its "none" where others have all its candidates.

    Examples
    --------
    >>> rows = np.array([[-1], [0], [1], [-1], [0]])
    >>> found = Associations(np.array([0, 3, 5]), rows, np.zeros(5))
    >>> choose_one_to_one(found, np.array([0.1, 0.5, 0.4, 0.2, 0.8]))
    array([2, 4])
    """
    base = found.base
    likely = np.flatnonzero((p >= LEAST_P) & (found.rows >= 0).any(axis=1))
    roots = _rivals(found.n_base, base[likely], found.rows[likely])
    chosen = np.empty(found.n_base, dtype=np.int64)
    _take_best(found.starts, p, chosen)
    sizes = np.bincount(roots, minlength=found.n_base)
    order = np.lexsort((-p[likely], base[likely], roots[base[likely]]))
    crowded = order[sizes[roots[base[likely[order]]]] > 1]
    options = likely[crowded]
    cuts = np.flatnonzero(np.diff(roots[base[options]])) + 1
    edges = np.concatenate([[0], cuts, [len(options)]])
    members = np.flatnonzero(sizes[roots] > 1)
    chosen[members] = found.starts[members]
    _decide(edges, options, base[options], found.rows[options], p[options], chosen)
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _take_best(starts, p, chosen):  # type: ignore[no-untyped-def]
    for i in range(starts.size - 1):
        best = starts[i]
        for a in range(starts[i] + 1, starts[i + 1]):
            if best == starts[i] or p[a] > p[best]:
                best = a
        chosen[i] = best


def _rivals(n_base: int, base: Rows, rows: np.ndarray) -> Rows:
    """Link the objects that compete for a source; return the root of each one's group."""
    parent = np.arange(n_base)
    for k in range(rows.shape[1]):
        wanted = np.flatnonzero(rows[:, k] >= 0)
        order = wanted[np.argsort(rows[wanted, k], kind="stable")]
        _join(parent, base[order], rows[order, k])
    _flatten(parent)
    return parent


@njit(cache=True, nogil=True, error_model="numpy")
def _join(parent, base, rows):  # type: ignore[no-untyped-def]
    for j in range(1, rows.size):
        if rows[j] == rows[j - 1]:
            parent[find_root(parent, base[j])] = find_root(parent, base[j - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _flatten(parent):  # type: ignore[no-untyped-def]
    for i in range(parent.size):
        parent[i] = find_root(parent, i)


@njit(cache=True, nogil=True, error_model="numpy")
def _decide(edges, options, base, rows, p, chosen):  # type: ignore[no-untyped-def] # noqa: PLR0913, PLR0917
    """Decide each group of options, which are sorted by object and then by probability."""
    for g in range(edges.size - 1):
        first, last = edges[g], edges[g + 1]
        if last == first:
            continue
        picks = _from_the_likeliest(rows[first:last], base[first:last], p[first:last])
        begins = [0]
        for j in range(first + 1, last):
            if base[j] != base[j - 1]:
                begins.append(j - first)
        begins.append(last - first)
        if len(begins) - 1 <= MOST_EXACT:
            picks = _search(rows[first:last], p[first:last], np.array(begins), picks)
        for j in range(last - first):
            if picks[j]:
                chosen[base[first + j]] = options[first + j]


@njit(cache=True, nogil=True, error_model="numpy")
def _from_the_likeliest(rows, base, p):  # type: ignore[no-untyped-def]
    """Take the likeliest option that is still free, again and again."""
    picks = np.zeros(p.size, np.bool_)
    for j in np.argsort(-p):
        free = True
        for i in np.flatnonzero(picks):
            if base[i] == base[j] or _clash(rows, i, j):
                free = False
        picks[j] = free
    return picks


@njit(cache=True, nogil=True, error_model="numpy")
def _clash(rows, i, j):  # type: ignore[no-untyped-def]
    shared = 0
    for k in range(rows.shape[1]):
        shared += rows[i, k] >= 0 and rows[i, k] == rows[j, k]
    return shared > 0


@njit(cache=True, nogil=True, error_model="numpy")
def _search(rows, p, begins, picks):  # type: ignore[no-untyped-def] # noqa: PLR0912
    """Branch and bound over the options of each object in turn, "none" last."""
    n = begins.size - 1
    beyond = np.zeros(n + 1)  # the most that the objects from here on can add
    for i in range(n - 1, -1, -1):
        beyond[i] = beyond[i + 1] + p[begins[i]]
    best, total, level, steps = p[picks].sum(), np.zeros(n + 1), 0, 0
    at = begins[:-1] - 1
    out = picks.copy()
    while level >= 0 and steps < MOST_STEPS:
        steps += 1
        if level == n:
            if total[n] > best * (1 + 1e-12):
                best = total[n]
                out[:] = False
                for i in range(n):
                    if at[i] < begins[i + 1]:
                        out[at[i]] = True
            level -= 1
            continue
        at[level] += 1
        j = at[level]
        if j > begins[level + 1]:
            at[level] = begins[level] - 1
            level -= 1
            continue
        gain = p[j] if j < begins[level + 1] else 0.0
        free = True
        for i in range(level):
            if j < begins[level + 1] and at[i] < begins[i + 1] and _clash(rows, at[i], j):
                free = False
        if total[level] + gain + beyond[level + 1] <= best:
            at[level] = begins[level] - 1  # later options of this object are no likelier
            level -= 1
        elif free:
            total[level + 1] = total[level] + gain
            level += 1
    return out
