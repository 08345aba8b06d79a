"""Counterparts with a probability: position first, then photometry, in rounds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from skyfill.sky.associations import Associations, Rest
from skyfill.sky.completeness import Completeness, fit_completeness
from skyfill.sky.elsewhere import count_groups, group_elsewhere
from skyfill.sky.one_to_one import choose_one_to_one
from skyfill.sky.posterior import Counterparts, probabilities, summarize
from skyfill.sky.rivals import find_free
from skyfill.sky.sphere import Floats
from skyfill.sky.surroundings import Surroundings

ROUNDS = 3

Ratio = Callable[[Associations], Floats]


class Photometry(Protocol):
    """Evidence besides positions, learned from the associations themselves."""

    def learn(self, found: Associations, p: Floats) -> Ratio:
        """Learn from associations of these probabilities; give a log likelihood ratio of any."""


@dataclass(frozen=True)
class CounterpartRules:
    """How counterparts are found.

    Parameters
    ----------
    one_to_one : bool
        No source is the counterpart of two objects: probabilities take into account that others
        may want it, and none is chosen twice.
    rest : {"sum", "best", "ignore"}
        See `associate`.
    p_any : float
        Objects below this probability of any counterpart count as having none.
    rounds : int
        How often the photometry is relearned from the probabilities that it gave.
    """

    one_to_one: bool = True
    rest: Rest = "sum"
    p_any: float = 0.5
    rounds: int = ROUNDS


@dataclass(frozen=True)
class Learned:
    """What a search has learned, for other objects of the same catalogues.

    Attributes
    ----------
    completeness : Completeness
        Share of the objects with a counterpart in each survey and set of surveys.
    sets : array of shape (2**k,) or None
        How many field sources each set of surveys sees.
    """

    completeness: Completeness
    sets: Floats | None


@dataclass(frozen=True)
class Found:
    """Associations, their probabilities and the best of each object.

    Attributes
    ----------
    associations : Associations
    p : array of shape (m,)
        Probabilities; those of an object sum to one.
    best : Counterparts
    learned : Learned
    ratio : callable or None
        Photometric log likelihood ratio of associations, as learned.
    """

    associations: Associations
    p: Floats
    best: Counterparts
    learned: Learned
    ratio: Ratio | None = field(default=None, repr=False)

    @property
    def completeness(self) -> Completeness:
        """Share of the objects with a counterpart in each survey and set of surveys."""
        return self.learned.completeness

    def first(self, n: int) -> "Found":
        """Keep the first n objects."""
        every, best = self.associations, self.best
        m = every.starts[n]
        kept = Associations(every.starts[: n + 1], every.rows[:m], every.log_weight[:m])
        chosen = Counterparts(
            best.p_any[:n], best.chosen[:n], best.p_i[:n], best.p_survey[:n], best.n_rivals[:n]
        )
        return replace(self, associations=kept, p=self.p[:m], best=chosen)


def find_counterparts(
    there: Surroundings, rules: CounterpartRules, photometry: Photometry | None = None
) -> Found:
    """Give every association a probability, and each object its best one.

    Position comes first; photometry, where given, is learned from the probabilities so far and
    changes them, for some rounds. Completeness that nobody states is estimated in each round.

    Examples
    --------
    >>> import numpy as np
    >>> from skyfill.sky.ellipses import Sources, circles
    >>> x = Sources(np.array([10.0]), np.array([0.0]), circles([1.0]))
    >>> o = Sources(np.array([10.0002]), np.zeros(1), circles([0.1]))
    >>> one = np.ones((1, 1))
    >>> spot = Surroundings(x, (o,), 1e-4 * one, 5 * one, one > 0, np.array([0.9]), (None,), ("o",))
    >>> find_counterparts(spot, CounterpartRules()).best.p_any.round(4)
    array([0.9999])
    """
    there = with_sets(there, rules)
    found = there.associate(rules.rest)
    fitted, p = _settle(there, found, rules, None)
    ratio: Ratio | None = None
    for _ in range(rules.rounds if photometry else 0):
        ratio = photometry.learn(found, p)  # type: ignore[union-attr]
        fitted, p = _settle(there, found, rules, ratio(found))
    return _choose(found, p, rules, Learned(fitted, there.sets), ratio)


def weigh_counterparts(
    there: Surroundings, rules: CounterpartRules, learned: Learned, ratio: Ratio | None = None
) -> Found:
    """Do what `find_counterparts` does with what was learned before, from other objects."""
    found = replace(there, sets=learned.sets).associate(rules.rest)
    log_ratio = None if ratio is None else ratio(found)
    p = weigh(found, rules, learned.completeness.of(there.base.variance), log_ratio)
    return _choose(found, p, rules, learned, ratio)


def _choose(
    found: Associations, p: Floats, rules: CounterpartRules, learned: Learned, ratio: Ratio | None
) -> Found:
    chosen = choose_one_to_one(found, p) if rules.one_to_one else None
    return Found(found, p, summarize(found, p, chosen), learned, ratio)


def with_sets(there: Surroundings, rules: CounterpartRules) -> Surroundings:
    """Count the field sources that each set of surveys sees, where the rules need it."""
    if len(there.surveys) == 1 or rules.rest != "sum" or there.sets is not None:
        return there
    return replace(there, sets=count_groups(group_elsewhere(there)))


def _settle(
    there: Surroundings,
    found: Associations,
    rules: CounterpartRules,
    log_ratio: Floats | None,
) -> tuple[Completeness, Floats]:
    """Completeness of each survey, as stated or by EM, and the probabilities it gives."""
    variance = there.base.variance
    fit = partial(
        fit_completeness,
        found,
        log_ratio,
        covered=there.covered,
        stated=there.completeness,
        variance=variance,
        crowding=_crowding(there, rules),
    )
    fitted = fit()
    if rules.one_to_one:
        alone = probabilities(found, fitted.of(variance), log_ratio)
        fitted = fit(rivals=find_free(found, alone))
    return fitted, weigh(found, rules, fitted.of(variance), log_ratio)


def _crowding(there: Surroundings, rules: CounterpartRules) -> Floats | None:
    """Say how many base objects there are for each source of a survey, if each has its own."""
    if there.conditions is None or not rules.one_to_one:
        return None
    return np.array(there.conditions.crowding)


def weigh(
    found: Associations, rules: CounterpartRules, shares: Floats, log_ratio: Floats | None
) -> Floats:
    """Probabilities of each object for itself, or together with those that want its sources."""
    alone = probabilities(found, shares, log_ratio)
    if not rules.one_to_one:
        return alone
    rivals = find_free(found, alone)
    del alone  # as large as what comes now
    return probabilities(found, shares, log_ratio, rivals)
