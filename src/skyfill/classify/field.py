"""What the rows of a field say about a classifier: shares of the classes there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.prior import Array, FieldShares, estimate_shares
from skyfill.classify.scorer import Scorer
from skyfill.network import Cells


def shares_among(scorer: Scorer, cells: Cells) -> FieldShares:
    """Estimate the shares of the classes among rows without labels; see `estimate_shares`."""
    plain = replace(scorer, prior=scorer.shares)
    return shares_for(scorer, plain.probabilities(cells, n_draws=0), scorer.known(cells))


def shares_for(scorer: Scorer, P: Array, known: NDArray[np.bool_]) -> FieldShares:
    """Estimate shares from probabilities under the training set's shares, without draws."""
    reference = scorer.profiles if scorer.held_out is None else scorer.held_out
    return estimate_shares(P, scorer.shares, reference, known)
