"""Learning from files of any size: every step of EM sums over blocks of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import count
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog import Schema, Table, open_scan
from skyfill.model import Model, train
from skyfill.network.mixture.fit import Plan, climb_mixture
from skyfill.network.mixture.margin import Margin, fit_margin, identity_margin
from skyfill.network.mixture.mixture import ROWS_AT_ONCE, Mixture, expect_mixture, split
from skyfill.network.moments import Moments
from skyfill.scale.columns import Array, Columns, spool_columns
from skyfill.scale.steps import Expect, Keep, forget
from skyfill.threads import map_threads, one_blas_thread

# Rows from which plan, calibration and starts come; all rows give margins and parameters.
SAMPLE_ROWS = 50_000
# A multiple of the rows that a kernel takes at once: then the sums are those of one table, bit
# for bit.
BLOCK_ROWS = 64 * ROWS_AT_ONCE


@dataclass(frozen=True)
class Refined:
    """A model fitted to all rows of a file, and how far EM went."""

    model: Model
    plan: Plan
    n_rows: int
    n_iter: int
    converged: bool


def train_file(
    catalog: str | Path,
    names: Sequence[str],
    *,
    rules: Schema | None = None,
    folder: str | Path | None = None,
    sample_rows: int = SAMPLE_ROWS,
    tell: Callable[[str], None] = lambda what: None,
    keep: Keep = forget,
    **options: Any,
) -> Refined:
    """Learn a model from a file of any size; memory holds one column or a block of rows.

    The components, the shrinkage, the calibration and the starts of EM are learned from a random
    sample of the rows, the margins and all parameters from all of them. A table of at most
    `sample_rows` rows gives what `train` gives.

    Parameters
    ----------
    catalog : path
        Any format that `read_table` reads.
    names : sequence of str
        The features.
    rules : Schema, optional
        Roles, units and sentinels to apply first.
    folder : path, optional
        Where the numbers are kept while EM reads them again and again: 8 bytes per cell. The
        system's folder for temporary files by default.
    sample_rows : int
    tell : callable
        Called with a few words about each stage: every block that is read, every step of EM.
    keep : callable
        `Steps.keep`, where a run that is killed shall be taken up again.
    options
        Those of `train`: `provenance`, `force`, and the options of `learn_mixture`.

    Examples
    --------
    >>> from skyfill.catalog import write_table
    >>> rng = np.random.default_rng(0)
    >>> J = rng.normal(15, 1, 3000)
    >>> table = Table.from_columns({"J": J, "K": J - 0.5 + rng.normal(0, 0.1, 3000)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(table, Path(folder) / "stars.parquet")
    ...     found = train_file(Path(folder) / "stars.parquet", ["J", "K"], sample_rows=500,
    ...                        n_components=1, n_fits=1)
    >>> found.n_rows, found.model.names, found.converged
    (3000, ('J', 'K'), True)
    """
    place = Path(folder or tempfile.gettempdir())
    schema, blocks = _numbers(catalog, list(names), rules or Schema())
    counted = _counted(blocks, lambda rows: tell(f"{rows:,} rows read"))
    with spool_columns(counted, len(names), place) as columns, one_blas_thread():
        sample = _sample(columns, schema, sample_rows, options.get("rng", 0))
        model, learned = train(sample, names, **options)
        tell(f"a start learned from {len(sample):,} rows")
        if len(sample) == columns.n_rows:
            return Refined(model, learned.plan, len(sample), learned.n_iter, learned.converged)
        make = fit_margin if options.get("margins", True) else identity_margin
        model = with_margins(model, columns, make)
        tell("margins estimated from all rows")
        limits: dict[str, Any] = {k: options[k] for k in ("tol", "max_iter") if k in options}
        expect = partial(expect_columns, columns)
        found = refine(model, expect, learned.plan, tell=tell, keep=keep, **limits)
        return Refined(found[0], learned.plan, columns.n_rows, *found[1:])


def _numbers(
    catalog: str | Path, names: list[str], rules: Schema
) -> tuple[pa.Schema, Iterator[Array]]:
    """Give the schema of the features, and their numbers block by block."""
    scan = open_scan(catalog, batch_rows=BLOCK_ROWS)
    empty = rules.apply(Table(scan.schema.empty_table())).select(names)

    def blocks() -> Iterator[Array]:
        for batch in scan.batches:
            yield rules.apply(Table(pa.Table.from_batches([batch]))).numbers(*names)

    return empty.arrow.schema, blocks()


def _counted(blocks: Iterator[Array], tell: Callable[[int], None]) -> Iterator[Array]:
    """Hand blocks on and tell how many rows there were so far."""
    n_rows = 0
    for block in blocks:
        yield block
        n_rows += len(block)
        tell(n_rows)


def _sample(columns: Columns, schema: pa.Schema, rows: int, seed: Any) -> Table:
    """Take random rows in the order of the file, with what is known about their columns."""
    places = np.arange(columns.n_rows)
    if columns.n_rows > rows:
        rng = np.random.default_rng(seed if isinstance(seed, int) else None)
        places = np.sort(rng.choice(columns.n_rows, rows, replace=False))
    X = columns.take(places)
    fields = [field.with_type(pa.float64()) for field in schema]
    arrays = [pa.array(X[:, j], from_pandas=True) for j in range(X.shape[1])]
    return Table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def with_margins(model: Model, columns: Columns, make: Callable[[Array], Margin]) -> Model:
    """Estimate the margins from all rows, one column at a time; replace the numbers by scores."""
    margins = []
    for j in range(len(columns.files)):
        column = columns.column(j)
        margins.append(make(np.asarray(column[~np.isnan(column)])))
    network = replace(model.network, margins=tuple(margins))
    columns.replace(replace(network, fits=()).scores, block_rows=BLOCK_ROWS)
    return replace(model, network=network)


def refine(
    model: Model,
    expect: Expect,
    plan: Plan,
    *,
    tell: Callable[[str], None] = lambda what: None,
    keep: Keep = forget,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> tuple[Model, int, bool]:
    """Run EM from every fit of a model over all rows.

    Parameters
    ----------
    model : Model
        Learned from a sample of the rows. Its classifier, if it has one, is left out: it was
        trained on what the old fits say.
    expect : callable
        The E-step: takes a mixture, gives the expected sums over all rows.
    plan : Plan
        Shrinkage and arcs of the fits.
    tell : callable
        Called with a few words before each step.
    keep : callable
        As in `train_file`.
    tol, max_iter : float, int
        EM stops when a step gains less than `tol` per row, or after `max_iter` steps.

    Returns
    -------
    model, n_iter, converged : Model, int, bool
        With the steps of the fit that took most, and whether all settled.
    """
    starts, climbs = model.network.fits, []
    for i, start in enumerate(starts):
        own = plan._replace(
            n_components=len(start.weights), informative=start.gap_rates is not None
        )
        steps = told(keep(i, expect), f"fit {i + 1} of {len(starts)}", tell)
        rng = np.random.default_rng(0)
        climbs.append(climb_mixture(steps, start, own, rng=rng, tol=tol, max_iter=max_iter))
    network = replace(model.network, fits=tuple(found.params for found in climbs))
    n_iter = max(found.n_iter for found in climbs)
    converged = all(found.converged for found in climbs)
    return replace(model, network=network, scorer=None), n_iter, converged


def told(expect: Expect, what: str, tell: Callable[[str], None]) -> Expect:
    """Tell the number of each E-step before it is taken, so that a user can follow.

    Examples
    --------
    >>> step = told(lambda mixture: "sums", "fit 1 of 2", print)
    >>> step("a mixture")
    fit 1 of 2: step 1 of EM
    'sums'
    """
    steps = count(1)

    def step(mixture: Mixture) -> Moments:
        tell(f"{what}: step {next(steps)} of EM")
        return expect(mixture)

    return step


def expect_columns(columns: Columns, mixture: Mixture, *, block_rows: int = BLOCK_ROWS) -> Moments:
    """Sum the expected moments of all rows, in their order: the E-step, with a block in memory."""
    blocks = (
        columns.rows(start, min(start + block_rows, columns.n_rows))
        for start in range(0, columns.n_rows, block_rows)
    )
    return reduce(add, (moments for rows in blocks for moments in _expect(rows, mixture)))


def _expect(rows: Array, mixture: Mixture) -> list[Moments]:
    parts = split(rows)
    return map_threads(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))
