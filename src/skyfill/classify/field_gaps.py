"""Labelled objects as a field would have shown them: with its gaps.

A field often lacks columns that training objects have. Trees that have also seen labelled objects
without these columns know what such gaps leave to say, and need no draws of them. Only gaps without
a limit are taken over: an object that was not detected is fainter than those that were, and
labelled objects are not.
"""

from __future__ import annotations

import numpy as np

from skyfill.classify.known_gaps import LEAST_SHARE, learn_gaps
from skyfill.network import Cells

# Times that each object is shown with gaps of a field, where half of the field or more has gaps
# that these objects do not have: a training set has few objects of a rare class, and such a field
# many kinds of gaps (docs/benchmarks.md). Large training sets have enough.
MOST_COPIES, MOST_ROWS = 4, 8000


def with_gaps_of(field: Cells, cells: Cells, rng: np.random.Generator) -> Cells | None:
    """Give each row the gaps of some row of a field besides its own, if it keeps a value.

    All rows are returned up to `MOST_COPIES` times, each time with other gaps. None where hardly
    any row of the field has gaps that these rows do not have.

    Examples
    --------
    >>> field = Cells([[17.0, np.nan], [18.0, np.nan]])
    >>> with_gaps_of(field, Cells([[15.0, 14.0]]), np.random.default_rng(0)).values.tolist()
    [[15.0, nan], [15.0, nan], [15.0, nan], [15.0, nan]]
    """
    new = learn_gaps(cells.values).unlike(field.values).mean()
    if new < LEAST_SHARE:
        return None
    times = max(min(round(2 * MOST_COPIES * new), MOST_COPIES, MOST_ROWS // len(cells)), 1)
    cells = cells.take(np.tile(np.arange(len(cells)), times))
    like = field.take(rng.integers(len(field), size=len(cells)))
    hidden = np.isnan(like.values) & ~like.is_limited
    left = (~np.isnan(cells.values) & ~hidden).any(axis=1, keepdims=True)
    return cells.hide(hidden & left)
