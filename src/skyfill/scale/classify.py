"""Tables classified by a model: probabilities, entropy, share of the gaps, outliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Provenance, Role, Schema, Table, open_scan
from skyfill.classify.prior import estimate_prior
from skyfill.classify.scorer import N_DRAWS, Scorer, Scores
from skyfill.errors import ModelError
from skyfill.model import Model
from skyfill.scale.fill import Array, features_of
from skyfill.scale.ledger import Done
from skyfill.scale.stream import BATCH_ROWS, Target, stream_file

# Rows from which the shares of the classes in a catalog are estimated.
PRIOR_ROWS = 200_000


@dataclass(frozen=True)
class Scoring:
    """How to classify.

    Attributes
    ----------
    n_draws : int
        Draws of the gaps for the share of the uncertainty that they make.
    marginalize : int
        Draws of the gaps that the probabilities average over; 0 is fast.
    seed : int
    """

    n_draws: int = N_DRAWS
    marginalize: int = 0
    seed: int = 0


def classify_table(model: Model, table: Table, scoring: Scoring | None = None) -> Table:
    """Add class, probabilities and what they rest on to a table.

    Parameters
    ----------
    model : Model
        What `load_model` gives, trained with labels.
    table : Table
        Any columns in any order; other units are converted; features of the model that it lacks
        are gaps.
    scoring : Scoring, optional

    Returns
    -------
    Table
        The columns of the input, ``class`` (the most probable one), ``p_<class>`` for each class,
        ``entropy`` (bits), ``gap_share``, ``outlier`` and ``outlier_score``. A column of the input
        that has one of these names stays as ``<name>_was``.
    """
    scoring = scoring or Scoring()
    scorer = scorer_of(model)
    X, _, absent = features_of(model, table)
    found = _score(scorer.without([model.names.index(name) for name in absent]), X, scoring)
    columns = result_columns(scorer, found)
    table = _kept(table, [name for name, _, _ in columns])
    for name, values, info in columns:
        table = table.with_column(name, values, info)
    return table


def scorer_of(model: Model) -> Scorer:
    """Give a model's scorer; ModelError where it was trained without labels."""
    if model.scorer is None:
        raise ModelError(
            f"model {model.identifier} was trained without labels and cannot classify; train one "
            "with skyfill train --label COLUMN"
        )
    return model.scorer


def _score(scorer: Scorer, X: Array, scoring: Scoring) -> Scores:
    rng = np.random.default_rng(scoring.seed)
    found = scorer.score(X, n_draws=scoring.n_draws, rng=rng)
    if not scoring.marginalize:
        return found
    return found._replace(
        probabilities=scorer.probabilities(X, n_draws=scoring.marginalize, rng=rng)
    )


def result_columns(scorer: Scorer, found: Scores) -> list[tuple[str, pa.Array, ColumnInfo]]:
    """Name, values and description of every column of results."""
    P = found.probabilities
    names = np.array(scorer.classes, dtype=object)
    best = pa.array(names[P.argmax(axis=1)], pa.string())
    label = ColumnInfo(None, "src.class", "Most probable class", Role.LABEL)
    columns = [("class", best, label)]
    for c, name in enumerate(scorer.classes):
        info = ColumnInfo(None, "stat.probability;src.class", f"Probability of class {name}")
        columns.append((f"p_{name}", pa.array(P[:, c]), info))
    return [
        *columns,
        ("entropy", pa.array(found.entropy), ColumnInfo("bit", None, "Entropy of the class")),
        ("gap_share", pa.array(found.gap_share, from_pandas=True), _text(
            "Share of the entropy that would go if the gaps were measured")),
        ("outlier", pa.array(found.outlier), _text(
            "Unlike the training set: less likely than 999 of 1000 of its objects")),
        ("outlier_score", pa.array(found.outlier_score), _text(
            "Minus log10 of the share of training objects that are less likely")),
    ]  # fmt: skip


def _text(words: str) -> ColumnInfo:
    return ColumnInfo(description=words)


def _kept(table: Table, names: list[str]) -> Table:
    """Rename columns that have the name of a result."""
    taken = {name: f"{name}_was" for name in names if name in table.names}
    if not taken:
        return table
    return Table(table.arrow.rename_columns([taken.get(name, name) for name in table.names]))


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
    found = pc.value_counts(table.column("class")).to_pylist()
    outliers = pc.sum(table.column("outlier")).as_py() or 0
    return {f"class.{item['values']}": item["counts"] for item in found} | {"outliers": outliers}


def with_field_prior(model: Model, catalog: str | Path, schema: Schema | None = None) -> Model:
    """Estimate the shares of the classes in a catalog and shift the model to them.

    By EM (Saerens et al. 2002) over the first 200,000 rows.
    """
    scorer, rules, parts = scorer_of(model), schema or Schema(), []
    plain = replace(scorer, prior=scorer.shares)
    for table in _tables(catalog, rules):
        parts.append(plain.probabilities(features_of(model, table)[0]))
        if sum(map(len, parts)) >= PRIOR_ROWS:
            break
    P = np.concatenate(parts) if parts else np.empty((0, len(scorer.classes)))
    return replace(model, scorer=replace(scorer, prior=estimate_prior(P, scorer.shares)))


def _tables(catalog: str | Path, rules: Schema) -> Iterator[Table]:
    for batch in open_scan(catalog, batch_rows=BATCH_ROWS).batches:
        yield rules.apply(Table(pa.Table.from_batches([batch])))
