"""Files through a model, one record batch after the other, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from skyfill.catalog import Provenance, Schema, Table, open_scan, open_writer
from skyfill.model import Model
from skyfill.scale.fill import Extras, fill_table

BATCH_ROWS = 1 << 16


def fill_file(
    model: Model,
    catalog: str | Path,
    output: str | Path,
    *,
    extras: Extras | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
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
    tell : callable
        Called with the number of rows of each batch that is done.

    Returns
    -------
    n_rows, n_filled : int
    """
    extras, rules = extras or Extras(), schema or Schema()
    scan = open_scan(catalog, batch_rows=BATCH_ROWS)
    empty = rules.apply(Table(scan.schema.empty_table()))
    rows = filled = 0
    out_schema = fill_table(model, empty, extras).arrow.schema
    with open_writer(output, out_schema, provenance=provenance) as writer:
        for place, batch in enumerate(scan.batches):
            table = rules.apply(Table(pa.Table.from_batches([batch])))
            mine = Extras(extras.quantiles, extras.n_draws, extras.seed + place)
            done = fill_table(model, table, mine)
            for part in done.arrow.combine_chunks().to_batches():
                writer.write(part)
            rows += len(done)
            gaps = (done.reasons(name) for name in model.names)
            filled += sum(len(reason) - reason.null_count for reason in gaps)
            tell(len(done))
    return rows, filled
