"""Scores of whole tables against the scores of each margin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyfill.network.mixture.maps import fit_margin, identity_margin
from skyfill.network.mixture.margin_kernels import lay_out, score_columns


@st.composite
def columns(draw):
    """Values to learn from, some of them repeated, and values to look up."""
    size = draw(st.integers(2, 400))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    seen = rng.normal(size=size) * 10.0 ** draw(st.integers(-3, 3))
    seen[rng.random(size) < draw(st.sampled_from([0.0, 0.2, 0.9]))] = seen[0]
    seen[rng.random(size) < 0.1] = seen[-1]
    new = np.concatenate([seen, rng.normal(size=50) * 3 * np.abs(seen).max(), [np.nan]])
    return fit_margin(seen), new


@given(st.lists(columns(), min_size=1, max_size=4))
def test_the_scores_are_those_of_every_margin(found):
    margins = [margin for margin, _ in found] + [identity_margin(np.array([0.0, 1.0, 5.0]))]
    n = min(len(new) for _, new in found)
    X = np.column_stack([new[-n:] for _, new in found] + [np.zeros(n)])
    knots, out = lay_out(margins), np.full(X.shape, 7.0)
    score_columns(X, knots, out)
    for j, margin in enumerate(margins):
        wanted = margin.to_normal(X[:, j]) if j in knots.columns else np.full(n, 7.0)
        np.testing.assert_allclose(out[:, j], wanted, rtol=1e-12, atol=1e-12)
    assert len(margins) - 1 not in knots.columns
