"""Filling and classifying catalogues: files, folders and HATS catalogues, on any workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from skyfill.catalog import Role, Schema, Table
from skyfill.catalog.filled_names import is_filled_part
from skyfill.catalog.table import normalized_schema
from skyfill.catalog.table_files import conforming
from skyfill.classify.field import shares_for
from skyfill.classify.likeness import Likeness
from skyfill.classify.prior import FieldShares
from skyfill.errors import CatalogError, ModelError, SkyfillError
from skyfill.model import (
    Model,
    Scoring,
    absent_features,
    cells_of,
    likeness_of,
    load_model,
    scorer_of,
)
from skyfill.model.cells import columns_for
from skyfill.model.declared import overridden, prepared
from skyfill.model.results import own_info, result_info
from skyfill.model.weighing import are_associations
from skyfill.network.mixture.random_keys import code_of
from skyfill.scale import inputs
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.hats import HatsOutput, is_hats, open_hats, stored_schema
from skyfill.scale.inputs import Batch, Part, Source, open_source
from skyfill.scale.job_folder import Done, JobFolder, identify
from skyfill.scale.outputs import FileOutput, FolderOutput, count_results, part_name
from skyfill.scale.parquet_join import write_groups
from skyfill.sky import PROBABILITY

# Rows from which the class shares of a catalogue are estimated.
PRIOR_ROWS = 200_000
# Of the rows of a catalogue, this part is checked for being like the training set, which takes that
# part of the time of classifying; of few rows, more.
CHECKED_PART, CHECKED_ROWS = 20, 5000


class Work(Protocol):
    """What a model does to the rows of a batch, whose order is kept.

    Either `skyfill.model.Filling` or `skyfill.model.Scoring`.
    """

    @property
    def prefix(self) -> str:
        """What stands before the names of the columns that are added."""

    def apply(self, model: Model, table: Table, first_row: int) -> Table:
        """Process rows; `first_row` is the number of the first one in the whole input."""


def apply_model(
    work: Work,
    model: Model | str | Path,
    catalog: str | Path,
    output: str | Path,
    *,
    rules: Schema | None = None,
    run: Run | None = None,
) -> Done:
    """Fill or classify all rows of a catalogue; the output appears whole or not at all.

    Parameters
    ----------
    work : Work
        `Filling` or `Scoring`.
    model : Model or path
        On a cluster, the path of a model file that every worker can read.
    catalog : path
        A table file of any format, a folder of Parquet files with the same columns, or a HATS
        catalogue (``hats://FOLDER``).
    output : path
        A table file, with the rows in the order of the catalogue. For a folder, or on a cluster, a
        name without extension is a new folder of Parquet files. For a HATS catalogue, a HATS
        catalogue.
    rules : Schema, optional
        Roles, units and sentinels to apply to the catalogue first.
    run : Run, optional

    Returns
    -------
    Done
        `rows`, and `counts` of ``filled`` cells, or of each class (``class.<name>``) and of
        ``outliers``.
    """
    run = run or Run()
    if is_hats(catalog) != is_hats(output):
        raise CatalogError(
            f"{catalog} -> {output}: a HATS catalogue gives a HATS catalogue; write hats:// before "
            "both or before none"
        )
    source = open_source(catalog, rules)
    with run.open_workers() as workers:
        task = ModelTask.of(work, model, rules or Schema(), are_remote=workers.are_remote)
        absent_features(task.load().features, source.schema.names, source.path)
        if is_hats(catalog):
            facts = task.facts(source, run, "partitions")
            return _hats_output(task, catalog, output).write(run, workers, facts)
        # Raises an error here, before any work, if columns, units and model do not fit.
        columns = task.schema(inputs.common_schema(source.files, rules))
        is_streamed = source.is_one_file and not workers.are_remote
        parts = f"{inputs.BATCH_ROWS} rows" if is_streamed else f"about {run.part_rows} rows"

        def prepare(folder: JobFolder) -> tuple[Output, Iterable[Task]]:
            schema = folder.describe(columns)
            items: Iterable[Batch | Part] = (
                # All cores get rows at once, whatever the format and the row groups.
                inputs.read_in_batches(source.files[0], rules)
                if is_streamed
                else inputs.plan_parts(source.files, part_rows=run.part_rows, rules=rules)
            )
            make = (partial(_write_part, task, item, schema) for item in items)
            tasks = (Task(part_name(i), each) for i, each in enumerate(make))
            as_file = is_streamed or Path(output).suffix
            kind = partial(FileOutput, schema, folder) if as_file else FolderOutput
            count = partial(count_results, columns=columns, prefix=work.prefix)
            return kind(Path(output), count), tasks

        facts = task.facts(source, run, parts)
        return run_job(run, workers, facts, output, prepare, keep=not is_streamed)


def apply_in_memory(work: Work, model: Model, source: Source, rules: Schema | None = None) -> Table:
    """Fill or classify all rows of a catalogue, as `apply_model` does, and give them back."""
    task, first_row = ModelTask.of(work, model, rules or Schema()), 0
    schema = normalized_schema(task.schema(source.schema))
    parts = [schema.empty_table()]
    for table in source.tables():
        parts.append(conforming(task(table, first_row).arrow, schema))
        first_row += len(table)
    return Table(pa.concat_tables(parts))


def _write_part(task: ModelTask, item: Batch | Part, schema: pa.Schema, path: Path) -> None:
    done = (task(table, first_row) for first_row, table in item.tables())
    write_groups((conforming(table.arrow, schema) for table in done), schema, path)


@dataclass(frozen=True)
class ModelTask:
    """What every worker needs to process rows.

    Parameters
    ----------
    work : Work
    model : Model or str
        For remote workers, the path of its file by a name that every worker can open.
    identifier : str
        Of the model; a worker that finds a different model in the file refuses to work.
    rules : Schema
        Roles, units and sentinels to apply first.
    """

    work: Work
    model: Model | str
    identifier: str
    rules: Schema

    @classmethod
    def of(
        cls, work: Work, model: Model | str | Path, rules: Schema, *, are_remote: bool = False
    ) -> Self:
        """Make a task; the model is loaded once, for its identifier."""
        if isinstance(model, Model):
            if are_remote:
                raise SkyfillError("workers of a cluster read the model from a file; give its path")
            return cls(work, model, model.identifier, rules)
        loaded = load_model(model)
        path = str(Path(model).resolve())
        return cls(work, path if are_remote else loaded, loaded.identifier, rules)

    def load(self) -> Model:
        """Return the model, as the rules change it; each process reads the file only once."""
        if isinstance(self.model, Model):
            return overridden(self.model, self.rules)
        with _LOADING:
            return overridden(_load(self.model, self.identifier), self.rules)

    def __call__(self, table: Table, first_row: int) -> Table:
        """Process rows."""
        return self.work.apply(self.load(), self.rules.apply(table), first_row)

    def facts(self, source: Source, run: Run, parts: str) -> dict[str, Any]:
        """Return what the result depends on; a file is identified by its checksum if known."""
        made = run.provenance
        known = made.checksums if made and source.is_one_file else ()
        return {
            "model": self.identifier,
            "options": repr(self.work),
            "schema": repr(self.rules),
            "inputs": list(known) or identify(source.files),
            "parts": parts,
        }

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Return the columns of the result for given columns of the input."""
        return self(Table(columns.empty_table()), 0).arrow.schema


_LOADING = Lock()


@lru_cache(maxsize=2)
def _load(path: str, identifier: str) -> Model:
    model = load_model(path)
    if model.identifier != identifier:
        raise ModelError(
            f"{path}: this worker finds model {model.identifier}, not {identifier}; give every "
            "worker the same file"
        )
    return model


def estimate_field_prior(model: Model, source: Source, rules: Schema | None = None) -> FieldShares:
    """Estimate the class shares of a catalogue, in the order of the model's classes.

    From the first 200,000 rows, as far as their gaps are like those of the training set, by
    held-out objects of the classes (`refine_shares`); see `estimate_shares` for older models.
    """
    scorer, rules = scorer_of(model), rules or Schema()
    found, known = [np.empty((0, len(scorer.classes)))], [np.empty(0, bool)]
    values = [np.empty((0, len(scorer.network)))]
    model = overridden(model, rules)
    plain = replace(scorer, prior=scorer.shares)
    for table in source.tables():
        cells = cells_of(model, rules.apply(table))[0]
        found.append(plain.probabilities(cells, n_draws=0))
        known.append(scorer.known(cells))
        values.append(cells.values)
        if sum(map(len, found)) >= PRIOR_ROWS:
            break
    return shares_for(scorer, *(np.concatenate(parts) for parts in (found, values, known)))


def check_likeness(
    model: Model, source: Source, how: Scoring, rules: Schema | None = None
) -> Likeness:
    """Measure on a sample how many objects of a catalogue are unlike the training set.

    Parameters
    ----------
    model : Model
    source : Source
        Of all associations of objects, those that are more likely than all others count. What can
        be read only once is not read.
    how : Scoring
    rules : Schema, optional
        As in `apply_model`.

    Returns
    -------
    Likeness
        For ``Scoring(likeness=...)``; see `likeness_of`.
    """
    rules = rules or Schema()
    if not all(file.is_file() for file in source.files[:1]):
        return Likeness()
    model = overridden(model, rules)
    more = [PROBABILITY] if are_associations(source.schema.names) else []
    empty = prepared(model, rules.apply(source.table()))
    names = [n for n in columns_for(empty, [*model.names, *more]) if n in source.schema.names]
    table = rules.apply(source.sample(names))
    if more:
        table = Table(table.arrow.filter(pa.array(table.numbers(PROBABILITY)[:, 0] > 0.5)))
    n = max((source.count_rows() or len(table)) // CHECKED_PART, CHECKED_ROWS)
    rows = np.unique(np.linspace(0, len(table) - 1, min(n, len(table))).astype(int))
    return likeness_of(model, Table(table.arrow.take(pa.array(rows))), how)


def _hats_output(task: ModelTask, catalog: str | Path, output: str | Path) -> HatsOutput:
    """Process every partition of a HATS catalogue and of its margin.

    Columns that the work does not change are left as they are, including NaN and null; in the
    columns that it uses, both are gaps. The rows of a partition are numbered from a number that its
    HEALPix pixel gives, so draws do not depend on other partitions.
    """
    opened = open_hats(catalog)
    stored = stored_schema(opened)
    plain = [n for n in opened.columns if not pa.types.is_nested(stored.field(n).type)]
    known = Table(stored.empty_table()).select(plain).arrow.schema
    empty = score_frame(opened.meta, None, task, known)
    scored = opened.map_partitions(score_frame, task, known, meta=empty, include_pixel=True)
    columns = task.schema(known)
    nested = [field for field in stored if field.name not in known.names]
    return HatsOutput(
        scored,
        output,
        pa.schema([*columns, *nested], metadata=columns.metadata),
        count=partial(count_results, columns=columns, prefix=task.work.prefix),
        properties={"skyfill_model": task.identifier},
    )


def score_frame(frame: Any, pixel: Any, task: ModelTask, known: pa.Schema) -> Any:
    """Process one partition, which may be empty; return a frame with the same index."""
    import pandas as pd

    table = task.rules.apply(_as_table(frame, known))
    first_row = 0 if pixel is None else code_of(f"{pixel.order}/{pixel.pixel}")
    model = task.load()
    done = task.work.apply(model, table, first_row)
    touched = _touched(model, table, done, task.work.prefix)
    columns = {
        name: pd.arrays.ArrowExtensionArray(done.column(name))
        if name in touched
        else frame[name].array
        for name in done.names
    }
    columns |= {name: frame[name].array for name in frame.columns if name not in known.names}
    return type(frame)(columns, index=frame.index)


def _as_table(frame: Any, known: pa.Schema) -> Table:
    """Convert columns of a frame to a table with their metadata."""
    arrow = pa.Table.from_pandas(frame[known.names], preserve_index=False)
    fields = [f.with_metadata(known.field(f.name).metadata) for f in arrow.schema]
    return Table.from_arrow(pa.Table.from_arrays(arrow.columns, schema=pa.schema(fields)))


def _touched(model: Model, table: Table, done: Table, prefix: str) -> set[str]:
    """List the columns that the work may have changed, the same for every partition."""
    new = set(done.names) - set(table.names)
    reasons = {n for n in done.names_with(Role.REASON) if done.info(n).of in model.names}
    # What an earlier run wrote may be computed anew.
    infos = {name: result_info(name.removeprefix(prefix)) for name in table.names}
    own = {n for n, info in infos.items()
           if own_info(n) or is_filled_part(table, n) or info == table.info(n)}  # fmt: skip
    return (new | reasons | own | set(model.names)) & set(done.names)
