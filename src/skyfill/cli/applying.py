"""What `impute` and `classify` share: a model applied to a catalogue, whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import check_source, mention_training
from skyfill.cli.terminal import listing, note, shown_run, warn
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
    ) -> tuple[Done, Table | None]:
        """Write the output, or return it where none is asked for.

        `weigh` serves tables of all associations, `count` all that are in memory.
        """
        from skyfill.catalog import write_table
        from skyfill.scale import Done, apply_in_memory, apply_model, read_whole

        options = self.options
        if self._has_associations():
            table = read_whole(self.source, self.rules)
            done = weigh(table)
            note(f"{len(table)} associations of {len(done)} objects weighed")
        elif options["output"] is None:
            done = apply_in_memory(work, self.model, self.source, self.rules)
        else:
            with shown_run(what, self.source, options, self.made) as run:
                places = options["model"], options["catalog"], options["output"]
                return apply_model(work, *places, rules=self.rules, run=run), None
        counts = Done(len(done), dict(count(done)))
        if options["output"] is None:
            return counts, done.with_meta(provenance=self.made.to_json())
        write_table(done, options["output"], provenance=self.made)
        return counts, None

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
    """Open the model and the catalogue; warn of features that the catalogue lacks.

    Both may be in memory: a `Model`, and what `open_source` takes.
    """
    from skyfill.catalog import Provenance
    from skyfill.model import Model, absent_features, load_model
    from skyfill.scale import open_source

    given, rules = options["model"], shared.rules_of(options)
    loaded = given if isinstance(given, Model) else load_model(given)
    source = open_source(options["catalog"], rules)
    shared.check_text(options, source.schema.names)
    model = mention_training(loaded, rules, source.schema.names)
    if absent := absent_features(model.features, source.schema.names, source.path):
        start, end = f"{options['catalog']} lacks ", f": {if_absent} in every row"
        warn(listing(start, absent, end))
    check_source(model, source, rules)
    inputs = [*([] if loaded is given else [given]), *source.checked_files]
    made = Provenance(shared.as_typed(context), inputs, options["seed"], model.identifier)
    return Application(options, model, source, rules, made)
