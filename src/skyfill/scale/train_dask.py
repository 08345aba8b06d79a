"""Learning on a Dask cluster: expected sums over parts, added in a tree, and EM on the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from skyfill.catalog import Schema, Table, open_scan
from skyfill.model import Model, Refined, before_filling, cells_of, refine, train
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.mixture import (
    Mixture,
    Sorted,
    expect_parts,
    split,
)
from skyfill.network.moments import Moments
from skyfill.scale.em_steps import Steps
from skyfill.scale.inputs import Part, common_schema, files_in, plan_parts
from skyfill.scale.train_disk import SAMPLE_ROWS
from skyfill.scale.train_limits import with_companions
from skyfill.scale.workers import open_client
from skyfill.threads import map_threads, one_blas_thread

T = TypeVar("T")


def train_on_dask(
    inputs: Sequence[str | Path],
    names: Sequence[str],
    *,
    scheduler: str | None = None,
    rules: Schema | None = None,
    sample_rows: int = SAMPLE_ROWS,
    steps: Steps | None = None,
    **options: Any,
) -> Refined:
    """Learn a model from files of any number of rows on a cluster.

    Components, shrinkage, margins, calibration and the starts of EM are learned here, from random
    rows. The parameters then come from all rows: workers keep their parts in memory, take the
    expected moments, and add them in a tree whose shape depends only on the number of parts.

    Parameters
    ----------
    inputs : paths
        Files with the same columns, or folders of Parquet files.
    names : sequence of str
        The features.
    scheduler : str, optional
        See `open_client`.
    rules : Schema, optional
        Roles, units and sentinels to apply first.
    sample_rows : int
        Approximate number of random rows.
    steps : Steps, optional
        As in `train_file`.
    **options
        Of `train`; the sample follows from its `rng`, if that is a number.
    """
    rules, steps, files = rules or Schema(), steps or Steps(), list(files_in(inputs))
    common_schema(files)
    how: dict[str, Any] = {key: options[key] for key in ("tol", "max_iter") if key in options}
    seed = rng if isinstance(rng := options.get("rng", 0), int) else 0
    with open_client(scheduler) as client:
        parts = plan_parts(files)
        sample = take_sample(client, parts, list(names), rules=rules, rows=sample_rows, seed=seed)
        model, learned = train(sample, names, rules=rules, **options)
        steps.report(f"a start learned from {len(sample):,} rows")
        held = hold_parts(client, parts, model, rules)
        return refine_on_dask(client, held, model, learned.plan, watch=steps.watch, **how)


def take_sample(
    client: Any, parts: Sequence[Part], names: list[str], *, rules: Schema, rows: int, seed: int = 0
) -> Table:
    """Take about so many random rows of parts, in their order; the same ones for a seed."""
    total = sum(client.gather(client.map(_rows, parts)))
    share = min(rows / max(total, 1), 1.0)
    seeds = [(seed, i) for i in range(len(parts))]
    tables = client.map(_sample, parts, seeds, names=names, rules=rules, share=share)
    return Table(pa.concat_tables(client.gather(tables)).combine_chunks())


def _rows(part: Part) -> int:
    return sum(len(table) for _, table in part.tables()) if part.rows is None else part.rows


def _sample(
    part: Part, seed: tuple[int, int], *, names: list[str], rules: Schema, share: float
) -> pa.Table:
    rng = np.random.default_rng(seed)
    empty = before_filling(rules.apply(Table(open_scan(part.path).schema.empty_table())))
    columns = with_companions(empty, names)
    found = [empty.select(columns).arrow]
    for _, table in part.tables():
        taken = pa.array(rng.random(len(table)) < share)
        own = before_filling(rules.apply(Table(table.arrow.filter(taken))))
        found.append(own.select(columns).arrow)
    return pa.concat_tables(found)


def refine_on_dask(
    client: Any, held: Sequence[Any], model: Model, plan: Plan, **options: Any
) -> Refined:
    """Fit a model to all rows that workers hold; `options` are those of `refine`."""
    n_rows = sum(client.gather(client.map(_count, held)))
    return refine(model, partial(expect_on_dask, client, held), plan, n_rows=n_rows, **options)


def hold_parts(client: Any, parts: Sequence[Part], model: Model, rules: Schema) -> list[Any]:
    """Let workers read parts and keep their normal scores; a lost part is read again.

    Returns
    -------
    list of distributed.Future
        Of lists of `Sorted`, in the order of the parts.
    """
    # Without fits there is little to send along.
    network = replace(model.network, fits=(), calibration=None)
    bare = replace(model, network=network, refinement=None)
    held: list[Any] = client.map(_hold, parts, bare=bare, rules=rules, pure=False)
    return held


def _hold(part: Part, *, bare: Model, rules: Schema) -> list[Sorted]:
    cells = (cells_of(bare, rules.apply(table))[0] for _, table in part.tables())
    return [rows for each in cells for rows in split(bare.network.score_cells(each))]


def expect_on_dask(client: Any, held: Sequence[Any], mixture: Mixture) -> Moments:
    """Take the expected moments of all parts: the E-step.

    Equal to the sums of one machine but for the order of additions, hence to rounding.
    """
    # As the result of a task, parameters reach a worker once and survive the death of another.
    sent = client.submit(_same, mixture, pure=False)
    moments = client.map(_expect, held, mixture=sent, pure=False)
    total: Moments = sum_tree(client, moments).result()
    return total


def sum_tree(client: Any, futures: Sequence[Any]) -> Any:
    """Add results pair by pair on the cluster, in an order that only their number decides."""
    left = list(futures)
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=False)
        sums = [client.submit(_add, a, b, pure=False) for a, b in pairs]
        left = sums + left[len(left) - len(left) % 2 :]
    return left[0]


def _expect(parts: list[Sorted], *, mixture: Mixture) -> Moments:
    if not parts:
        return _no_moments(mixture)
    with one_blas_thread():
        return expect_parts(parts, mixture, map_threads)


def _no_moments(mixture: Mixture) -> Moments:
    """Moments of no rows."""
    k, p = mixture.means.shape
    weight, total, cross = np.zeros(k), np.zeros((k, p)), np.zeros((k, p, p))
    return Moments(0, mixture.means, weight, total, cross, np.zeros((k, p)), 0.0)


def _count(parts: list[Sorted]) -> int:
    return sum(len(part.Z) for part in parts)


def _same(value: T) -> T:
    return value


def _add(a: Moments, b: Moments) -> Moments:
    return a + b
