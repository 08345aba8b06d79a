"""Learning from all rows of a file with limits and errors: every step of EM reads the file again.

What is known of a cell besides its value lies in other columns of the same row. So blocks of rows
are turned into cells as they are read, and nothing is kept beside the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog import Role, Schema, Table, open_scan
from skyfill.model import Model, Refined, before_filling, cells_of, refine, train
from skyfill.model.cells import find_companions
from skyfill.model.training import Watch, untrained
from skyfill.network.mixture.mixture import ROWS_AT_ONCE, Mixture, expect_mixture, split
from skyfill.network.moments import Moments
from skyfill.threads import map_threads

# A multiple of the rows that a kernel takes at once.
BLOCK_ROWS = 16 * ROWS_AT_ONCE


def train_with_limits(
    catalog: str | Path,
    names: Sequence[str],
    rules: Schema,
    *,
    rows: int,
    report: Callable[[str], None],
    watch: Watch,
    **options: Any,
) -> Refined | None:
    """Learn from all rows of a file whose columns state limits or errors; else give None.

    Depths, widths, maps of columns, plan and calibration come from a sample.

    Parameters
    ----------
    catalog : path
        Any format that `read_table` reads; it is read again and again.
    names : sequence of str
        The features.
    rules : Schema
        Roles, units and sentinels to apply first.
    rows : int
        Rows of the sample.
    report : callable
        Called with a few words about each stage.
    watch : callable
        As in `refine`.
    **options
        Of `train`.
    """
    if not Path(catalog).is_file():  # a pipe can be read once only
        return None
    empty = before_filling(rules.apply(Table(open_scan(catalog).schema.empty_table())))
    columns = with_companions(empty, names)
    if len(columns) == len(names):
        return None
    with open_scan(catalog, batch_rows=BLOCK_ROWS) as scan:
        n_rows = sum(batch.num_rows for batch in scan.batches)
    sample = _sample(catalog, columns, rules, n_rows=n_rows, rows=rows, seed=options.get("rng", 0))
    wishes = {key: options[key] for key in ("limits", "errors") if key in options}
    if not untrained(sample, names, rules=rules, **wishes).detections:
        return None
    model, learned = train(sample, names, rules=rules, **options)
    report(f"a start learned from {len(sample):,} rows, with their limits and errors")
    if len(sample) == n_rows:
        return Refined(model, learned.plan, n_rows, learned.n_iter, learned.converged)
    network = replace(model.network, fits=(), calibration=None)
    bare = replace(model, network=network, refinement=None)
    how: dict[str, Any] = {key: options[key] for key in ("tol", "max_iter") if key in options}
    expect = partial(expect_file, bare, catalog, rules)
    return refine(model, expect, learned.plan, n_rows=n_rows, watch=watch, **how)


def with_companions(table: Table, names: Sequence[str]) -> list[str]:
    """Name features and the columns that say more of them: limits, errors and reasons.

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2], "n": [3]}).with_reasons("J", [None])
    >>> with_companions(table, ["J"])
    ['J', 'J_gap']
    """
    kinds = (Role.LIMIT, Role.ERROR, Role.REASON)
    found = find_companions(table)
    more = [found[key] for name in names for kind in kinds if (key := (kind, name)) in found]
    return [*names, *more]


def _sample(
    catalog: str | Path, columns: list[str], rules: Schema, *, n_rows: int, rows: int, seed: Any
) -> Table:
    """Take random rows in the order of the file."""
    taken = np.ones(n_rows, bool)
    if n_rows > rows:
        rng = np.random.default_rng(seed if isinstance(seed, int) else None)
        taken[:] = False
        taken[rng.choice(n_rows, rows, replace=False)] = True
    found, start = [], 0
    for table in _tables(catalog, rules):
        mine = pa.array(taken[start : start + len(table)])
        found.append(table.select(columns).arrow.filter(mine))
        start += len(table)
    return Table(pa.concat_tables(found).combine_chunks())


def _tables(catalog: str | Path, rules: Schema) -> Iterator[Table]:
    with open_scan(catalog, batch_rows=BLOCK_ROWS) as scan:
        for batch in scan.batches:
            yield before_filling(rules.apply(Table(pa.Table.from_batches([batch]))))


def expect_file(bare: Model, catalog: str | Path, rules: Schema, mixture: Mixture) -> Moments:
    """Sum the expected moments of all rows: the E-step. `bare` has margins and no fits."""
    return reduce(
        add, (m for table in _tables(catalog, rules) for m in _expect(bare, table, mixture))
    )


def _expect(bare: Model, table: Table, mixture: Mixture) -> list[Moments]:
    parts = split(bare.network.score_cells(cells_of(bare, table)[0]))
    return map_threads(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))
