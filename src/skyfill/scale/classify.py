"""Files classified by a model, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Provenance, Schema, Table, open_scan
from skyfill.classify.prior import estimate_prior
from skyfill.model import Model, Scoring, cells_of, classify_table, scorer_of
from skyfill.model.results import CLASS, OUTLIER
from skyfill.scale.ledger import Done
from skyfill.scale.stream import BATCH_ROWS, Target, stream_file

# Rows from which the shares of the classes in a catalog are estimated.
PRIOR_ROWS = 200_000


def classify_file(
    model: Model,
    catalog: str | Path,
    output: str | Path,
    *,
    scoring: Scoring | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> Done:
    """Classify a file batch by batch; the output appears whole or not at all.

    Parameters
    ----------
    model : Model
    catalog, output : paths
        Any format that `read_table` reads and `write_table` writes.
    scoring : Scoring, optional
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
    Done
        `rows`, and `counts` of every class (``class.<name>``) and of ``outliers``.
    """
    scoring = scoring or Scoring()
    prior = scorer_of(model).prior.tolist()
    job = {"model": model.identifier, "prior": prior, "scoring": asdict(scoring)}

    def score(table: Table, place: int) -> Table:
        return classify_table(model, table, replace(scoring, seed=scoring.seed + place))

    def target(out_schema: pa.Schema) -> Target:
        return Target(output, out_schema, job, provenance, resume)

    return stream_file(score, catalog, target, rules=schema, count=_count, tell=tell)


def _count(table: Table) -> dict[str, int]:
    found = pc.value_counts(table.column(CLASS)).to_pylist()
    outliers = pc.sum(table.column(OUTLIER)).as_py() or 0
    return {f"class.{item['values']}": item["counts"] for item in found} | {"outliers": outliers}


def with_field_prior(model: Model, catalog: str | Path, schema: Schema | None = None) -> Model:
    """Estimate the shares of the classes in a catalog and shift the model to them.

    By EM (Saerens et al. 2002) over the first 200,000 rows.
    """
    scorer, rules, parts = scorer_of(model), schema or Schema(), []
    plain = replace(scorer, prior=scorer.shares)
    for table in _tables(catalog, rules):
        parts.append(plain.probabilities(cells_of(model, table)[0]))
        if sum(map(len, parts)) >= PRIOR_ROWS:
            break
    P = np.concatenate(parts) if parts else np.empty((0, len(scorer.classes)))
    return replace(model, scorer=replace(scorer, prior=estimate_prior(P, scorer.shares)))


def _tables(catalog: str | Path, rules: Schema) -> Iterator[Table]:
    for batch in open_scan(catalog, batch_rows=BATCH_ROWS).batches:
        yield rules.apply(Table(pa.Table.from_batches([batch])))
