"""Files filled by a model, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from skyfill.catalog import Provenance, Schema, Table
from skyfill.model import Extras, Model, fill_table
from skyfill.scale.stream import Target, stream_file


def fill_file(
    model: Model,
    catalog: str | Path,
    output: str | Path,
    *,
    extras: Extras | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> tuple[int, int]:
    """Fill the gaps of a file; the output appears whole or not at all.

    Parameters
    ----------
    model : Model
        What `load_model` gives.
    catalog, output : paths
        Any format that `read_table` reads and `write_table` writes.
    extras : Extras, optional
        Quantiles and draws to write as well; draws of a batch follow from the seed and its place.
    schema : Schema, optional
        Roles, units and sentinels to apply to the catalog first.
    provenance : Provenance, optional
        Written into the output.
    resume : bool
        Go on where a run that was killed or interrupted stopped; the result is the same.
    tell : callable
        Called with the number of rows of each batch that is done.

    Returns
    -------
    n_rows, n_filled : int
    """
    extras = extras or Extras()
    job = {"model": model.identifier, "extras": asdict(extras)}

    def score(table: Table, place: int) -> Table:
        return fill_table(model, table, replace(extras, seed=extras.seed + place))

    def count(table: Table) -> dict[str, int]:
        gaps = (table.reasons(name) for name in model.names)
        return {"filled": sum(len(reason) - reason.null_count for reason in gaps)}

    def target(out_schema: pa.Schema) -> Target:
        return Target(output, out_schema, job, provenance, resume)

    done = stream_file(score, catalog, target, rules=schema, count=count, tell=tell)
    return done.rows, done.counts.get("filled", 0)
