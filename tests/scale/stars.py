"""A table with gaps for the tests of clusters."""

import numpy as np

from skyfill.catalog import ColumnInfo, Role, Table

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


def make_table(n, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    i = np.where(rng.random(n) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.2, n))
    return Table.from_columns({"id": np.arange(n), "V": v, "I": i}, info=INFO)
