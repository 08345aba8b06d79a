"""The ranges of the columns that a network was learned from, and what is far outside."""

from __future__ import annotations

import numpy as np

from skyfill.network.mixture.margin import GRID_REACH, Identity, Logarithm
from skyfill.network.mixture.network import MixtureNetwork

Range = tuple[float, float]


def seen_ranges(network: MixtureNetwork) -> list[Range | None]:
    """Return each column's smallest and largest value in training; None if nothing is known.

    Where limits were learned, values beyond all that was seen are to be expected.
    """
    if network.support is not None and network.within_limits is None:
        return [(float(low), float(high)) for low, high in network.support.ends.T]
    unknown = [isinstance(margin, Identity | Logarithm) for margin in network.margins]
    ends = [(float(margin.x[0]), float(margin.x[-1])) for margin in network.margins]
    return [None if is_open else end for is_open, end in zip(unknown, ends, strict=True)]


def reached_ranges(network: MixtureNetwork) -> list[Range]:
    """Return what `seen_ranges` gives or, where that is None, what scores reach."""
    scores = np.array([-GRID_REACH, GRID_REACH])
    reached = (margin.from_normal(scores).tolist() for margin in network.margins)
    pairs = zip(seen_ranges(network), reached, strict=True)
    return [ends or (low, high) for ends, (low, high) in pairs]


def credible_range(ends: Range) -> Range:
    """Return where a value of the kind that surveys use for "no value" may still be a value.

    Outside the range seen it is at most as far as this is wide, and not negative for the first
    time.

    Examples
    --------
    >>> credible_range((14.0, 20.0)), credible_range((-1.0, 20.0))
    ((0.0, 26.0), (-22.0, 41.0))
    """
    (low, high), width = ends, ends[1] - ends[0]
    return 0.0 if low >= 0 else low - width, high + width


def are_whole(ends: Range) -> bool:
    """Whether a range begins and ends with whole numbers, as one of counts does."""
    return ends[0] % 1 == ends[1] % 1 == 0
