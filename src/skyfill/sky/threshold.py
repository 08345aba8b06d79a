"""Which p_any to ask for: the same search at shifted positions, where nothing is to be found."""

from dataclasses import dataclass

import numpy as np

from skyfill.sky.counterparts import CounterpartRules, Found, weigh
from skyfill.sky.posterior import summarize
from skyfill.sky.shifts import Offset
from skyfill.sky.sphere import Floats
from skyfill.sky.surroundings import Surroundings

# Shifts lose the true counterparts but meet the same density of sources.
LEAST_SHIFT_ARCSEC, SHIFT_RADII = 60.0, 3.0
STEPS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class Threshold:
    """Purity and completeness against p_any, and the p_any for a wanted rate of false matches.

    Attributes
    ----------
    p_any : float
        Lowest p_any at which at most the wanted share of the accepted objects is accepted by
        chance; above 1 where no p_any is enough.
    steps : array of shape (101,)
        Values of p_any from 0 to 1.
    accepted, chance : arrays of shape (101,)
        Share of the objects, and of the shifted objects, with at least this p_any.
    purity, completeness : arrays of shape (101,)
        Share of the accepted that are more than chance; share of the objects with a counterpart
        that are accepted and are more than chance.
    false_rate : float
        The wanted rate.
    """

    p_any: float
    steps: Floats
    accepted: Floats
    chance: Floats
    purity: Floats
    completeness: Floats
    false_rate: float

    def at(self, p_any: float) -> tuple[float, float]:
        """Purity and completeness at a p_any."""
        return (
            float(np.interp(p_any, self.steps, self.purity)),
            float(np.interp(p_any, self.steps, self.completeness)),
        )


def find_threshold(
    there: Surroundings,
    found: Found,
    rules: CounterpartRules,
    *,
    false_rate: float = 0.05,
    n_shifts: int = 4,
) -> Threshold:
    """Search again around shifted objects, with the same shares and the same photometry.

    Parameters
    ----------
    false_rate : float
        Wanted share of chance among the accepted.
    n_shifts : int
        Directions, evenly spaced.
    """
    chance = np.sort(np.concatenate(_shifted_p_any(there, found, rules, n_shifts)))
    real = np.sort(found.best.p_any)
    accepted = 1 - np.searchsorted(real, STEPS) / max(len(real), 1)
    by_chance = 1 - np.searchsorted(chance, STEPS) / max(len(chance), 1)
    purity = np.clip(1 - by_chance / np.maximum(accepted, 1e-12), 0.0, 1.0)
    with_any = max(1 - float(found.completeness.patterns[0]), 1e-12)
    completeness = np.clip(accepted * purity / with_any, 0.0, 1.0)
    good = np.flatnonzero((purity >= 1 - false_rate) & (accepted > 0))
    lowest = float(STEPS[good[0]]) if good.size else 1.01
    return Threshold(lowest, STEPS, accepted, by_chance, purity, completeness, false_rate)


def _shifted_p_any(
    there: Surroundings, found: Found, rules: CounterpartRules, n_shifts: int
) -> list[Floats]:
    step = max(LEAST_SHIFT_ARCSEC, SHIFT_RADII * float(np.nanmax(there.radius_arcsec)))
    out = []
    for angle in (np.arange(n_shifts) + 0.5) * 2 * np.pi / n_shifts:
        away = there.shifted(Offset(step * np.sin(angle), step * np.cos(angle), 1))
        around = away.associate(rules.rest)
        log_ratio = None if found.ratio is None else found.ratio(around)
        shares = found.completeness.of(there.base.variance)
        out.append(summarize(around, weigh(around, rules, shares, log_ratio)).p_any)
    return out
