"""Learning on a Dask cluster: expected sums over parts, added in a tree, and EM on the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from skyfill.catalog import Schema, Table
from skyfill.model import Model, features_of, train
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.mixture import Mixture, Sorted, expect_parts, split
from skyfill.network.moments import Moments
from skyfill.scale.client import open_client
from skyfill.scale.partitions import Part, common_schema, part_schema, plan_parts, read_part
from skyfill.scale.steps import Keep, forget
from skyfill.scale.train import SAMPLE_ROWS, Refined, refine
from skyfill.threads import map_threads, one_blas_thread

T = TypeVar("T")


def train_on_dask(
    inputs: Sequence[str | Path],
    names: Sequence[str],
    *,
    scheduler: str | None = None,
    schema: Schema | None = None,
    sample_rows: int = SAMPLE_ROWS,
    tell: Callable[[str], None] = lambda what: None,
    keep: Keep = forget,
    **options: Any,
) -> Refined:
    """Learn a model from files of any number of rows on a cluster.

    Components, shrinkage, margins, calibration and the starts of EM are learned here, from random
    rows; the parameters come from all rows, see `refine_on_dask`.

    Parameters
    ----------
    inputs : paths
        Files with the same columns, or folders of Parquet files.
    names : sequence of str
        The features.
    scheduler : str, optional
        See `open_client`.
    schema : Schema, optional
        Roles, units and sentinels to apply first.
    sample_rows : int
        About how many random rows are taken.
    tell : callable
        Called with a few words about each stage and each step of EM.
    keep : callable
        As in `train_file`.
    **options
        Of `train`; the sample follows from its `rng`, if that is a number.
    """
    rules, parts = schema or Schema(), plan_parts(inputs)
    common_schema(parts)
    limits: dict[str, Any] = {key: options[key] for key in ("tol", "max_iter") if key in options}
    seed = rng if isinstance(rng := options.get("rng", 0), int) else 0
    with open_client(scheduler) as client:
        sample = take_sample(client, parts, list(names), rules=rules, rows=sample_rows, seed=seed)
        model, learned = train(sample, names, **options)
        tell(f"a start learned from {len(sample):,} rows")
        held = hold_parts(client, parts, model, rules)
        return _refine(client, held, model, learned.plan, tell=tell, keep=keep, **limits)


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
    return sum(map(len, read_part(part))) if part.rows is None else part.rows


def _sample(
    part: Part, seed: tuple[int, int], *, names: list[str], rules: Schema, share: float
) -> pa.Table:
    rng = np.random.default_rng(seed)
    found = [rules.apply(Table(part_schema(part).empty_table())).select(names).arrow]
    for table in read_part(part):
        taken = pa.array(rng.random(len(table)) < share)
        found.append(rules.apply(Table(table.arrow.filter(taken))).select(names).arrow)
    return pa.concat_tables(found)


def refine_on_dask(
    model: Model,
    inputs: Sequence[str | Path],
    plan: Plan,
    *,
    scheduler: str | None = None,
    schema: Schema | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> Refined:
    """Fit the mixtures of a model to all rows of files, however many they are.

    A model that was learned from a sample gives the margins, the calibration and where EM starts.
    The parameters then come from all rows: workers keep their parts in memory, take the expected
    moments, and add them in a tree whose shape depends on nothing but the number of parts.

    Parameters
    ----------
    model : Model
        Learned from a sample of the rows. Its classifier, if it has one, is left out.
    inputs : paths
        Files with the same columns, or folders of Parquet files.
    plan : Plan
        Shrinkage, arcs and gaps of the fits, as `train` chose them on the sample.
    scheduler : str, optional
        See `open_client`.
    schema : Schema, optional
        Roles, units and sentinels to apply first.
    tol, max_iter : float, int
        EM stops when a step gains less than `tol` per row, or after `max_iter` steps.
    """
    parts = plan_parts(inputs)
    common_schema(parts)
    with open_client(scheduler) as client:
        held = hold_parts(client, parts, model, schema or Schema())
        return _refine(client, held, model, plan, tol=tol, max_iter=max_iter)


def _refine(client: Any, held: Sequence[Any], model: Model, plan: Plan, **options: Any) -> Refined:
    n_rows = sum(client.gather(client.map(_count, held)))
    found = refine(model, partial(expect_on_dask, client, held), plan, **options)
    return Refined(found[0], plan, n_rows, *found[1:])


def hold_parts(client: Any, parts: Sequence[Part], model: Model, rules: Schema) -> list[Any]:
    """Let workers read parts and keep their normal scores; a lost part is read again.

    Returns
    -------
    list of distributed.Future
        Of lists of `Sorted`, in the order of the parts.
    """
    # Without fits there is little to send along.
    bare = replace(model, network=replace(model.network, fits=(), calibration=None))
    held: list[Any] = client.map(_hold, parts, bare=bare, rules=rules, pure=False)
    return held


def _hold(part: Part, *, bare: Model, rules: Schema) -> list[Sorted]:
    scores = [np.empty((0, len(bare.features)))]
    for table in read_part(part):
        scores.append(bare.network.scores(features_of(bare, rules.apply(table))[0]))
    return split(np.concatenate(scores))


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
