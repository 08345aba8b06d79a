"""Which tables are like those that a model was trained on."""

from dataclasses import replace

import numpy as np
import pytest

from skyfill.catalog import Table
from skyfill.model.guard import find_outside


@pytest.mark.parametrize(
    ("n_training", "per_mille", "is_notable"),
    [(None, 11, True), (None, 9, False), (400, 22, False), (400, 24, True), (4000, 11, True)],
)
def test_new_extremes_are_notable_where_a_training_set_of_that_size_rarely_has_so_many(
    star_model, n_training, per_mille, is_notable
):
    # On paper: after n = 400 rows a share x is outside with the chance (1 - x)^n + n x (1 -
    # x)^(n - 1) of more, which is 0.001 at 2.28 %.
    known = None if n_training is None else np.arange(n_training, dtype=np.uint64)
    model = replace(star_model, trained_on=known)
    V = np.full(1000, model.network.support.ends[:, 0].mean())
    V[:per_mille] = model.network.support.ends[1, 0] + 0.1
    found = find_outside(model, Table.from_columns({"V": V, "I": V - 0.8}))
    assert [each.name for each in found if each.name == "V"] == ["V"] * is_notable
