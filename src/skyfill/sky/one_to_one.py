"""One to one: no source is the counterpart of two objects, and the total probability is largest."""

import itertools

import numpy as np

from skyfill.sky.associations import Associations
from skyfill.sky.posterior import take_best
from skyfill.sky.sphere import Floats, Rows

# Associations below this probability make no objects rivals, and are no second choice.
LEAST_P = 1e-3
# Rival objects are decided exactly up to this number, and up to so many steps; else from the
# likeliest association down.
MOST_EXACT, MOST_STEPS = 16, 100_000


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
    chosen = take_best(found, p)
    if not _clashing(found, chosen[p[chosen] >= LEAST_P]).any():
        return chosen
    likely = np.flatnonzero((p >= LEAST_P) & (found.rows >= 0).any(axis=1))
    groups = _groups(found, likely)
    wanted = chosen[p[chosen] >= LEAST_P]
    # Where nobody wants what another has, everyone gets the best.
    disputed = np.unique(groups[found.owners(wanted[_clashing(found, wanted)])])
    owner = found.owners(likely)
    open_ = np.isin(groups[owner], disputed)
    options, owner = likely[open_], owner[open_]
    order = np.lexsort((-p[options], owner, groups[owner]))
    cuts = np.flatnonzero(np.diff(groups[owner[order]])) + 1
    for members in np.split(order, cuts):
        mine, group = owner[members], options[members]
        chosen[mine] = found.starts[mine]
        picked = _decide(mine, _sources(found.rows[group]), p[group])
        chosen[mine[picked]] = group[picked]
    return chosen


def _clashing(found: Associations, chosen: Rows) -> np.ndarray:
    """Say which of the chosen associations have a source that another of them has."""
    clash = np.zeros(len(chosen), dtype=bool)
    for rows in found.rows[chosen].T:
        seen = np.flatnonzero(rows >= 0)
        _, which, counts = np.unique(rows[seen], return_inverse=True, return_counts=True)
        clash[seen] |= counts[which] > 1
    return clash


def _groups(found: Associations, likely: Rows) -> Rows:
    """Give the objects that compete for sources, directly or through others, one number."""
    association, survey = np.nonzero(found.rows[likely] >= 0)
    n_rows = int(found.rows.max(initial=-1)) + 1
    sources = survey * n_rows + found.rows[likely[association], survey]
    _, source = np.unique(sources, return_inverse=True)
    owner, group = found.owners(likely[association]), np.arange(found.n_base)
    lowest = np.full(int(source.max(initial=-1)) + 1, found.n_base)
    while True:
        np.minimum.at(lowest, source, group[owner])
        last = group.copy()
        np.minimum.at(group, owner, lowest[source])
        if np.array_equal(group, last):
            return group


def _sources(rows: np.ndarray) -> list[set[tuple[int, int]]]:
    return [{(k, row) for k, row in enumerate(each) if row >= 0} for each in rows.tolist()]


def _decide(base: Rows, sources: list[set[tuple[int, int]]], p: Floats) -> list[int]:
    """Decide a group of options, which are sorted by object and then by probability."""
    picks = _from_the_likeliest(base.tolist(), sources, p)
    edges = [0, *(np.flatnonzero(np.diff(base)) + 1).tolist(), len(base)]
    if len(edges) - 1 <= MOST_EXACT:
        picks = _search(edges, sources, p.tolist(), picks)
    return picks


def _from_the_likeliest(
    base: list[int], sources: list[set[tuple[int, int]]], p: Floats
) -> list[int]:
    """Take the likeliest option that is still free, again and again."""
    picks: list[int] = []
    taken: set[tuple[int, int]] = set()
    for j in np.argsort(-p, kind="stable").tolist():
        own = sources[j] | {(-1, base[j])}  # an object has one option as a source has one object
        if not own & taken:
            picks.append(j)
            taken |= own
    return picks


def _search(
    edges: list[int], sources: list[set[tuple[int, int]]], p: list[float], picks: list[int]
) -> list[int]:
    """Branch and bound over the options of each object in turn, "none" last."""
    best, most, steps = picks, sum(p[j] for j in picks), 0
    # The most that the objects from here on can add.
    beyond = [*itertools.accumulate(p[first] for first in reversed(edges[:-1]))][::-1] + [0.0]
    stack: list[tuple[int, float, list[int], set[tuple[int, int]]]] = [(0, 0.0, [], set())]
    while stack and steps < MOST_STEPS:
        steps += 1
        level, total, mine, taken = stack.pop()
        if total + beyond[level] <= most * (1 + 1e-12):
            continue
        if level == len(edges) - 1:
            best, most = mine, total
            continue
        stack.append((level + 1, total, mine, taken))
        for j in reversed(range(edges[level], edges[level + 1])):  # the likeliest is tried first
            if not sources[j] & taken:
                stack.append((level + 1, total + p[j], [*mine, j], taken | sources[j]))
    return best
