"""What the rows of a field say about a classifier: shares of the classes there."""

from __future__ import annotations

from dataclasses import replace

from skyfill.classify.prior import FieldShares, estimate_shares
from skyfill.classify.scorer import Scorer
from skyfill.network import Cells


def shares_among(scorer: Scorer, cells: Cells) -> FieldShares:
    """Estimate the shares of the classes among rows without labels; see `estimate_shares`."""
    plain = replace(scorer, prior=scorer.shares)
    P = plain.probabilities(cells, n_draws=0)
    return estimate_shares(P, scorer.shares, scorer.profiles, scorer.known(cells))
