"""What `impute` and `classify` share: a model applied to a catalogue, whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import check_source, mention_training
from skyfill.cli.terminal import note, shown_run, warn
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Provenance, Schema, Table
    from skyfill.model import Filling, Model, Scoring
    from skyfill.scale import Done, Source

takes_model = shared.stacked(
    click.argument("model", type=click.Path(path_type=Path)),
    click.argument("catalog", type=shared.CATALOG),
    shared.output(kind=shared.CATALOG),
    shared.device,
    shared.scheduler,
)
takes_run = shared.stacked(
    shared.schema(),
    shared.text(),
    shared.seed("Seed of the draws."),
    shared.resume,
    shared.as_json("the counts"),
)


@dataclass(frozen=True)
class Application:
    """A model, the catalogue that it is applied to, and what is declared about both."""

    options: Mapping[str, Any]
    model: Model
    source: Source
    rules: Schema
    made: Provenance

    def run(
        self,
        work: Filling | Scoring,
        what: str,
        weigh: Callable[[Table], Table],
        count: Callable[[Table], Mapping[str, int]],
    ) -> Done:
        """Write the output; `weigh` and `count` serve tables of all associations."""
        from skyfill.scale import apply_model

        options = self.options
        if self._has_associations():
            return self._weighed(weigh, count)
        with shown_run(what, self.source, options, self.made) as run:
            places = options["model"], options["catalog"], options["output"]
            return apply_model(work, *places, rules=self.rules, run=run)

    def _weighed(
        self, weigh: Callable[[Table], Table], count: Callable[[Table], Mapping[str, int]]
    ) -> Done:
        """Weigh all associations of each object by their probabilities, in memory."""
        from skyfill.catalog import write_table
        from skyfill.scale import Done

        table = self._whole()
        mixed = weigh(table)
        write_table(mixed, self.options["output"], provenance=self.made)
        note(f"{len(table)} associations of {len(mixed)} objects weighed")
        return Done(len(mixed), dict(count(mixed)))

    def _whole(self) -> Table:
        """Read all rows of a file, a folder or a HATS catalogue."""
        import pyarrow as pa

        from skyfill.catalog import Table, read_table

        if self.source.is_one_file:
            return read_table(self.options["catalog"], schema=self.rules)
        schema = self.source.schema
        tables = [table.select(schema.names).arrow.cast(schema) for table in self.source.tables()]
        return self.rules.apply(Table(pa.concat_tables([schema.empty_table(), *tables])))

    def _has_associations(self) -> bool:
        from skyfill.model.weighing import are_associations

        if not are_associations(self.source.schema.names):
            return False
        if self.options["scheduler"] or self.options["resume"]:
            raise CatalogError(
                f"{self.options['catalog']}: holds all associations of its objects, which are "
                "weighed in memory; leave out --scheduler and --resume"
            )
        if str(self.options["output"]).startswith(shared.HATS):
            raise CatalogError(
                f"{self.options['output']}: associations are weighed in memory, into a file; give "
                "its name, such as objects.parquet"
            )
        return True


def open_application(
    context: click.Context, options: Mapping[str, Any], if_absent: str
) -> Application:
    """Open the model and the catalogue; warn of features that the catalogue lacks."""
    from skyfill.catalog import Provenance
    from skyfill.model import absent_features, load_model
    from skyfill.scale import open_source

    loaded, rules = load_model(options["model"]), shared.rules_of(options)
    source = open_source(options["catalog"], rules)
    shared.check_text(options, source.schema.names)
    model = mention_training(loaded, rules, source.schema.names)
    if absent := absent_features(model.features, source.schema.names, source.path):
        warn(f"{options['catalog']} lacks {', '.join(absent)}: {if_absent} in every row")
    check_source(model, source, rules)
    inputs = [options["model"], *source.checked_files]
    made = Provenance(shared.as_typed(context), inputs, options["seed"], model.identifier)
    return Application(options, model, source, rules, made)
