"""The labelled tables of the classification benchmark, each with what is hidden of it."""

from functools import partial
from typing import NamedTuple

import numpy as np

from skyfill.datasets import (
    join_by_truth,
    load_chandra,
    load_eros,
    load_macho,
    load_macho_variables,
    simulate_training_set,
)
from skyfill.evaluate import hide_blocks, hide_cells
from skyfill.sky import MatchRules, join
from survey_tables import chandra, eros, macho

# Bands in which a value without an error is a limit, as in 2MASS and AllWISE.
CHANDRA_LIMITED = ("Jmag", "Hmag", "Kmag", "W1mag", "W2mag", "W3mag")


class ClassTable(NamedTuple):
    """Numbers, labels, and groups of rows or columns that are looked at by themselves."""

    title: str
    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    folds: int
    rows: dict[str, np.ndarray]


def macho_cells(rate, repeat):
    """Cells hidden at random, others in each repeat."""
    table = macho()
    X = hide_cells(table.X, rate, np.random.default_rng([7, repeat])).X
    return ClassTable(
        f"MACHO, 12 features, {100 * rate:g} % hidden", X, labels(load_macho()), table.names, 5, {}
    )


def macho_blocks(repeat):
    """Whole families of features hidden, each in every fifth object."""
    table = macho()
    X = hide_blocks(table.X, table.groups, 0.2, np.random.default_rng([8, repeat])).X
    title = "MACHO, 12 features, blocks hidden with probability 0.2"
    return ClassTable(title, X, labels(load_macho()), table.names, 5, {})


def chandra_gaps(repeat):
    """The table's own gaps."""
    table, source = chandra(), load_chandra()
    y = labels(source, "Class")[~np.isnan(source.numbers(*table.names)).all(axis=1)]
    return ClassTable(table.title, table.X, y, table.names, 5, {})


def chandra_limits(known, repeat):
    """A magnitude without an error is a limit: a gap, and with `known` a limit in columns behind.

    Methods that know limits take them from there (`Limited` of class_rivals.py).
    """
    table, source = chandra_gaps(repeat), load_chandra()
    places = [j for j, name in enumerate(table.names) if name in CHANDRA_LIMITED]
    some = ~np.isnan(source.numbers(*table.names)).all(axis=1)
    errors = source.numbers(*(f"e_{table.names[j]}" for j in places))[some]
    X, limits = table.X.copy(), np.full(errors.shape, np.nan)
    for at, j in enumerate(places):
        is_limit = ~np.isnan(X[:, j]) & np.isnan(errors[:, at])
        limits[is_limit, at], X[is_limit, j] = X[is_limit, j], np.nan
    title = f"{table.title}, limits {'recognized' if known else 'as gaps'}"
    return table._replace(title=title, X=np.hstack([X, limits]) if known else X)


def eros_both(with_macho, repeat):
    """EROS-1 with or without the columns of its MACHO counterparts; the period is a machine's."""
    table = eros()
    rules = MatchRules(remove_offset=True, n_controls=0)
    joined = join(load_eros(), {"macho": load_macho_variables()}, 3.0, rules=rules)
    y = labels(joined)
    if len(y) != len(table.X):
        raise ValueError("the join and the table of the benchmark differ in rows")
    theirs = np.array([name.endswith("_macho") for name in table.names])
    matched = ~np.isnan(table.X[:, theirs]).all(axis=1)
    columns = np.ones(len(theirs), bool) if with_macho else ~theirs
    title = f"EROS-1 {'×' if with_macho else 'without'} MACHO, {columns.sum()} features"
    names = tuple(np.array(table.names)[columns])
    rows = {"matched": matched, "unmatched": ~matched}
    return ClassTable(title, table.X[:, columns], y, names, 5, rows)


def field(repeat):
    """The simulated field's photometry: magnitudes and colors, gaps by limits and footprints."""
    table = join_by_truth(simulate_training_set())
    names = table.names_with("feature")
    return ClassTable(
        f"simulated training set, {len(names)} magnitudes, 10 folds",
        table.numbers(*names),
        labels(table),
        names,
        10,
        {},
    )


def labels(table, name="class"):
    return np.array(table.column(name).to_pylist(), dtype=object)


TABLES = {
    "macho5": partial(macho_cells, 0.05),
    "macho20": partial(macho_cells, 0.2),
    "macho40": partial(macho_cells, 0.4),
    "machoblocks": macho_blocks,
    "chandra": chandra_gaps,
    "chandralimits": partial(chandra_limits, True),
    "chandrablank": partial(chandra_limits, False),
    "eros": partial(eros_both, True),
    "erosalone": partial(eros_both, False),
    "field": field,
}
