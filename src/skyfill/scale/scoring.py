"""Catalogues through a model: filled or classified, whatever they are and wherever it happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Role, Schema, Table
from skyfill.catalog.table_files import conforming
from skyfill.classify.prior import estimate_prior
from skyfill.errors import CatalogError, ModelError, SkyfillError
from skyfill.model import Model, cells_of, load_model, scorer_of
from skyfill.model.results import CLASS, OUTLIER, before_name, filled_columns
from skyfill.scale import inputs
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.hats import HatsOutput, is_hats, open_hats, stored_schema
from skyfill.scale.inputs import Batch, Part, Source, open_source
from skyfill.scale.job_folder import Done, JobFolder, identify
from skyfill.scale.outputs import FileOutput, FolderOutput, part_name
from skyfill.scale.parquet_join import write_groups

# Rows from which the shares of the classes in a catalogue are estimated.
PRIOR_ROWS = 200_000


class Work(Protocol):
    """What a model does to the rows of a batch, which stay in their order.

    `skyfill.model.Filling` and `skyfill.model.Scoring` are such works.
    """

    def apply(self, model: Model, table: Table, place: int) -> Table:
        """Score the rows of a batch; `place` is the number of the batch within its file."""


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
        On a cluster the path of a model file that every worker can read.
    catalog : path
        A table file of any format, a folder of Parquet files with the same columns, or a HATS
        catalogue (``hats://FOLDER``).
    output : path
        A table file, with the rows in the order of the catalogue. If the name has no extension, a
        new folder of Parquet files: for a folder, or on a cluster. A HATS catalogue for a HATS
        catalogue.
    rules : Schema, optional
        Roles, units and sentinels to apply to the catalogue first.
    run : Run, optional

    Returns
    -------
    Done
        `rows`, and `counts`: of the cells that were ``filled``, or of the objects of each class
        (``class.<name>``) and of the ``outliers``.
    """
    run = run or Run()
    if is_hats(catalog) != is_hats(output):
        raise CatalogError(
            f"{catalog} -> {output}: a HATS catalogue gives a HATS catalogue; write hats:// before "
            "both or before none"
        )
    source = open_source(catalog)
    with run.open_workers() as workers:
        recipe = Recipe.of(work, model, rules or Schema(), are_remote=workers.are_remote)
        absent_features(recipe.load(), source)
        if is_hats(catalog):
            facts = recipe.facts(source, run, "partitions")
            return _hats_output(recipe, catalog, output).write(run, workers, facts)
        items: Iterable[Batch | Part] = inputs.plan_parts(source.files, part_rows=run.part_rows)
        facts = recipe.facts(source, run, f"about {run.part_rows} rows")
        is_streamed = source.is_one_file and not workers.are_remote
        if is_streamed:
            # Whatever its format and its row groups, all cores get rows at once.
            items = inputs.read_in_batches(source.files[0])
            facts = recipe.facts(source, run, f"{inputs.BATCH_ROWS} rows")
        # Fails here, before any work, where columns, units or the model do not fit.
        columns = recipe.schema(inputs.common_schema(source.files))
        as_folder = not Path(output).suffix and not is_streamed
        prepare = partial(_prepare, recipe, items, columns, Path(output), as_folder)
        return run_job(run, workers, facts, output, prepare, keep=not is_streamed)


def _prepare(
    recipe: Recipe,
    items: Iterable[Batch | Part],
    columns: pa.Schema,
    path: Path,
    as_folder: bool,
    folder: JobFolder,
) -> tuple[Output, Iterable[Task]]:
    schema = folder.describe(columns)
    tasks = (
        Task(part_name(i), partial(_write_part, recipe, item, schema))
        for i, item in enumerate(items)
    )
    count = partial(count_results, columns=columns)
    if as_folder:
        return FolderOutput(path, count), tasks
    return FileOutput(path, schema, count, folder), tasks


def _write_part(recipe: Recipe, item: Batch | Part, schema: pa.Schema, path: Path) -> None:
    done = (recipe(table, place) for place, table in item.tables())
    write_groups((conforming(table.arrow, schema) for table in done), schema, path)


def count_results(part: Path, columns: pa.Schema) -> dict[str, int]:
    """Count filled cells, classes and outliers in a Parquet file whose columns are described."""
    import pyarrow.parquet as pq

    counts: Counter[str] = Counter()
    names, metadata = filled_columns(Table(columns.empty_table())), pq.read_metadata(part)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        cells = (group.column(i) for i in range(group.num_columns))
        nulls = [c.statistics.null_count for c in cells if c.path_in_schema in names]
        counts["filled"] += group.num_rows * len(nulls) - sum(nulls)
    if CLASS in columns.names and OUTLIER in columns.names:
        table = pq.read_table(part, columns=[CLASS, OUTLIER], partitioning=None)
        for item in pc.value_counts(table.column(CLASS)).to_pylist():
            counts[f"class.{item['values']}"] = item["counts"]
        counts["outliers"] = pc.sum(table.column(OUTLIER)).as_py() or 0
    return dict(counts)


@dataclass(frozen=True)
class Recipe:
    """What every worker must know to score rows.

    Parameters
    ----------
    work : Work
    model : Model or str
        Where workers are remote, the path of its file by a name that every worker can open.
    identifier : str
        Of the model; a worker that finds another model under that path refuses to work.
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
        """Describe what is done; the model is loaded once, for its identifier."""
        if isinstance(model, Model):
            if are_remote:
                raise SkyfillError("workers of a cluster read the model from a file; give its path")
            return cls(work, model, model.identifier, rules)
        loaded = load_model(model)
        path = str(Path(model).resolve())
        return cls(work, path if are_remote else loaded, loaded.identifier, rules)

    def load(self) -> Model:
        """Give the model; a process reads its file once, however many parts it works on."""
        if isinstance(self.model, Model):
            return self.model
        with _LOADING:
            return _load(self.model, self.identifier)

    def __call__(self, table: Table, place: int) -> Table:
        """Score rows."""
        return self.work.apply(self.load(), self.rules.apply(table), place)

    def facts(self, source: Source, run: Run, parts: str) -> dict[str, Any]:
        """Say what the result depends on; a file is known by its checksum where that was taken."""
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
        """Columns of the result for given columns of the input."""
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


def absent_features(model: Model, source: Source) -> list[str]:
    """Name the features of a model that a catalogue lacks; CatalogError where it lacks all."""
    absent = [name for name in model.names if name not in source.schema.names]
    if len(absent) == len(model.names):
        raise CatalogError(
            f"{source.path}: has none of the model's features ({', '.join(model.names)}); rename "
            "its columns or use another model"
        )
    return absent


def estimate_field_prior(
    model: Model, source: Source, rules: Schema | None = None
) -> tuple[float, ...]:
    """Estimate the shares of the classes in a catalogue, in the order of the model's classes.

    By EM (Saerens et al. 2002) over the first 200,000 rows.
    """
    scorer, rules, found = scorer_of(model), rules or Schema(), []
    plain = replace(scorer, prior=scorer.shares)
    for table in source.tables():
        found.append(plain.probabilities(cells_of(model, rules.apply(table))[0]))
        if sum(map(len, found)) >= PRIOR_ROWS:
            break
    P = np.concatenate([np.empty((0, len(scorer.classes))), *found])
    return tuple(estimate_prior(P, scorer.shares).tolist())


def _hats_output(recipe: Recipe, catalog: str | Path, output: str | Path) -> HatsOutput:
    """Score every partition of a HATS catalogue and of its margin.

    Columns that the work does not touch stay as they are, NaN and null included. In the columns
    that it uses both are gaps. The place of a partition is the number of its HEALPix pixel, so
    draws do not depend on the partitions that are beside it.
    """
    opened = open_hats(catalog)
    stored = stored_schema(opened)
    plain = [n for n in opened.columns if not pa.types.is_nested(stored.field(n).type)]
    known = Table(stored.empty_table()).select(plain).arrow.schema
    empty = score_frame(opened.meta, None, recipe, known)
    scored = opened.map_partitions(score_frame, recipe, known, meta=empty, include_pixel=True)
    columns = recipe.schema(known)
    nested = [field for field in stored if field.name not in columns.names]
    return HatsOutput(
        scored,
        output,
        pa.schema([*columns, *nested]),
        count=partial(count_results, columns=columns),
        properties={"skyfill_model": recipe.identifier},
    )


def score_frame(frame: Any, pixel: Any, recipe: Recipe, known: pa.Schema) -> Any:
    """Score one partition, which may be empty: a frame with the same index in the same order."""
    import pandas as pd

    table = recipe.rules.apply(_as_table(frame, known))
    place = 4 ** (pixel.order + 1) + pixel.pixel if pixel is not None else 0
    model = recipe.load()
    done = recipe.work.apply(model, table, place)
    touched = _touched(model, table, done)
    columns = {
        name: pd.arrays.ArrowExtensionArray(done.column(name))
        if name in touched
        else frame[name].array
        for name in done.names
    }
    columns |= {name: frame[name].array for name in frame.columns if name not in columns}
    return type(frame)(columns, index=frame.index)


def _as_table(frame: Any, known: pa.Schema) -> Table:
    """Take columns from a frame, with what is known about them."""
    arrow = pa.Table.from_pandas(frame[known.names], preserve_index=False)
    fields = [f.with_metadata(known.field(f.name).metadata) for f in arrow.schema]
    return Table.from_arrow(pa.Table.from_arrays(arrow.columns, schema=pa.schema(fields)))


def _touched(model: Model, table: Table, done: Table) -> set[str]:
    """Name the columns that the work may have changed, the same for every partition."""
    new = set(done.names) - set(table.names)
    reasons = {n for n in done.names_with(Role.REASON) if done.info(n).of in model.names}
    moved = {name for name in done.names if before_name(name) in new}
    return (new | reasons | moved | set(model.names)) & set(done.names)
