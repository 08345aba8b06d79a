"""Objects that want the same source: how likely it is that the others leave it.

A source that is the counterpart of one object is not that of another. The probability of all
choices together is then the product of those of the single objects, over all choices in which no
source occurs twice. Its marginals are found by belief propagation between objects (Pearl 1988):
exact for two objects, and for any number of them that share sources without rings.
"""

from typing import NamedTuple

import numpy as np

from skyfill.sky.associations import Associations
from skyfill.sky.posterior import SparseEvidence
from skyfill.sky.sphere import Floats, Rows

# Associations below this probability take nothing away from others.
LEAST_P = 1e-4
# Of the associations with one source, only so many of the likeliest compete.
MOST_CLAIMS = 100
MOST_ROUNDS, SETTLED = 100, 1e-6
# A source is never beyond all doubt that of another object.
LEAST_FREE = 1e-12


class _Claims(NamedTuple):
    """Associations of different objects that exclude each other.

    A claim is an association and another object, some associations of which it excludes.
    """

    associations: Rows  # that exclude others
    owner: Rows  # object of each of them
    claimed: Rows  # which of them makes each claim
    between: Rows  # both objects of each claim, as one number
    pairs: tuple[Rows, Rows]  # claims, and those of the other object that they exclude


def find_free(found: Associations, p: Floats) -> SparseEvidence:
    """Log probability that no other object takes a source of each association.

    Parameters
    ----------
    p : array of shape (m,)
        Probabilities of the associations of each object for itself, from `probabilities`.

    Returns
    -------
    SparseEvidence
        With it as further evidence, `probabilities` are those of a one-to-one match.

    Examples
    --------
    >>> rows = np.array([[-1], [0], [-1], [0]])
    >>> found = Associations(np.array([0, 2, 4]), rows, np.zeros(4))
    >>> which, free = find_free(found, np.array([0.2, 0.8, 0.6, 0.4]))
    >>> which, np.exp(free).round(3)
    (array([1, 3]), array([0.6, 0.2]))
    """
    claims = _find_claims(found, p)
    mine = p[claims.associations]
    unclaimed = 1 - np.bincount(claims.owner, mine)
    message: Floats = np.zeros(len(claims.claimed))
    free: Floats = np.zeros(len(mine))
    for _ in range(MOST_ROUNDS if len(message) else 0):
        weight = mine * np.exp(free)
        total = unclaimed + np.bincount(claims.owner, weight)
        # What an object would choose if it did not know what the other one wants.
        known, unknown = weight[claims.claimed], weight[claims.claimed] / np.exp(message)
        apart = np.bincount(claims.between, unknown - known)[claims.between]
        choice = unknown / (total[claims.owner[claims.claimed]] + apart)
        taken = np.bincount(claims.pairs[0], choice[claims.pairs[1]])
        last, message = message, np.log(np.maximum(1 - taken, LEAST_FREE))
        free = np.asarray(np.bincount(claims.claimed, message), dtype=np.float64)
        if np.max(np.abs(np.exp(message) - np.exp(last))) < SETTLED:
            break
    return SparseEvidence(claims.associations, free)


def _find_claims(found: Associations, p: Floats) -> _Claims:
    one, two = _exclusions(found, p)
    associations = np.unique(one)
    objects, owner = np.unique(found.owners(associations), return_inverse=True)
    a, b = np.searchsorted(associations, one), np.searchsorted(associations, two)
    claims, forth = np.unique(a * len(objects) + owner[b], return_inverse=True)
    back = np.searchsorted(claims, b * len(objects) + owner[a])
    claimed, other = np.divmod(claims, max(len(objects), 1))
    _, between = np.unique(owner[claimed] * len(objects) + other, return_inverse=True)
    return _Claims(associations, owner, claimed, between, (forth, back))


def _exclusions(found: Associations, p: Floats) -> tuple[Rows, Rows]:
    """List the pairs of likely associations of different objects that share a source, both ways."""
    association, survey = np.nonzero((found.rows >= 0) & (p >= LEAST_P)[:, None])
    n_rows = int(found.rows.max(initial=-1)) + 1
    source = survey * n_rows + found.rows[association, survey]
    order = np.lexsort((-p[association], source))
    association, source = association[order], source[order]
    first = np.flatnonzero(np.diff(source, prepend=-1))
    size = np.diff(first, append=len(source))
    size = np.minimum(size, MOST_CLAIMS)
    pairs = []
    # Shift the list against itself: sources with fewer claims drop out step by step.
    for step in range(1, int(size.max(initial=1))):
        left = _within(first, size - step)
        pairs.append(np.stack([association[left], association[left + step]]))
    one, two = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
    rivals = found.owners(one) != found.owners(two)
    one, two = one[rivals], two[rivals]
    both = np.unique(np.append(one * len(found) + two, two * len(found) + one))
    return both // len(found), both % len(found)


def _within(first: Rows, size: Rows) -> Rows:
    """Numbers from each first one on, as many as the sizes say."""
    size = np.maximum(size, 0)
    return np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
