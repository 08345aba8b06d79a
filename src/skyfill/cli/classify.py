"""`skyfill classify`: the class of every object of a catalogue, with probabilities."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.terminal import note, row_progress, warn
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Schema, Table
    from skyfill.model import Model


@click.command(
    "classify",
    epilog=shared.examples(
        "skyfill classify lmc.skyfill field/joined.parquet --prior estimate -o classes.fits",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("catalog", type=shared.CATALOG)
@shared.output(kind=shared.CATALOG)
@shared.scheduler
@click.option(
    "--prior",
    metavar="estimate|CLASS=SHARE,...",
    help="Shares of the classes in the field, if they are not those of the training set.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Draws of the gaps that the probabilities average over; 0 is fast.",
)
@click.option(
    "--gap-draws",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Draws of the gaps for gap_share; 0 leaves it empty and is fastest.",
)
@shared.schema()
@shared.seed("Seed of the draws.")
@shared.resume
@shared.as_json("the counts")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Classify the objects of CATALOG with MODEL, also those with gaps.

    Written beside the columns of CATALOG: class, p_<class> for every class, entropy (bits),
    gap_share (share of the entropy that would go if the gaps were measured), outlier and
    outlier_score.

    A table of all associations (match --probability --all) gives one row for each object: its
    associations are weighed by their probabilities, and counterpart_share is the share of the
    entropy that would go if the counterpart were known.
    """
    from skyfill.catalog import Provenance, Schema, read_schema
    from skyfill.model import Scoring, load_model
    from skyfill.scale.dispatch import column_names, input_files

    model = load_model(options["model"])
    _warn_absent(model.names, column_names(options["catalog"]), options["catalog"])
    schema = read_schema(options["schema"]) if options["schema"] else Schema()
    made = Provenance(
        shared.as_typed(context),
        [options["model"], *input_files(options["catalog"])],
        seed=options["seed"],
        model=model.identifier,
    )
    counts: Counter[str] = Counter()
    scoring = Scoring(options["gap_draws"], options["draws"], options["seed"])
    shifted = _shifted(model, options, schema)
    facts = {"schema": schema, "provenance": made}
    rows = _classify(shifted, options, scoring, counts=counts, **facts)
    _report(rows, counts, model, options)


def _classify(
    model: Model, options: dict[str, Any], scoring: Any, *, counts: Counter[str], **facts: Any
) -> int:
    from skyfill.model.results import CLASS, OUTLIER
    from skyfill.scale import classify_file
    from skyfill.scale.dispatch import is_distributed, read_columns, score_distributed
    from skyfill.scale.work import Classifying

    catalog, output = options["catalog"], options["output"]
    if shared.has_associations(options):
        return _classify_associations(model, options, scoring, counts=counts, **facts)
    with row_progress(catalog, "classifying") as tell:
        facts |= {"resume": options["resume"], "tell": tell}
        if not is_distributed(catalog, options["scheduler"]):
            done = classify_file(model, catalog, output, scoring=scoring, **facts)
            counts.update({key.removeprefix("class."): n for key, n in done.counts.items()})
            return done.rows
        prior = tuple(model.scorer.prior) if model.scorer and options["prior"] else None
        facts |= {"work": Classifying(scoring, prior), "scheduler": options["scheduler"]}
        rows, _ = score_distributed(options["model"], catalog, output, **facts)
    for table in read_columns(output, [CLASS, OUTLIER]):
        _count(table, counts)
    return rows


def _classify_associations(
    model: Model, options: dict[str, Any], scoring: Any, *, counts: Counter[str], **facts: Any
) -> int:
    """Classify all associations of each object, weighed by their probabilities."""
    from skyfill.catalog import read_table, write_table
    from skyfill.model.weighing import classify_associations

    table = read_table(options["catalog"], schema=options["schema"])
    done = classify_associations(model, table, scoring)
    write_table(done, options["output"], provenance=facts["provenance"])
    note(f"{len(table)} associations of {len(done)} objects weighed")
    _count(done, counts)
    return len(done)


def _warn_absent(features: tuple[str, ...], names: list[str], catalog: Path) -> None:
    absent = [name for name in features if name not in names]
    if len(absent) == len(features):
        raise CatalogError(
            f"{catalog}: has none of the model's features ({', '.join(features)}); rename its "
            "columns or use another model"
        )
    if absent:
        warn(f"{catalog} lacks {', '.join(absent)}: gaps in every row")


def _count(done: Table, counts: Counter[str]) -> None:
    from skyfill.model.results import CLASS, OUTLIER

    counts.update(done.column(CLASS).to_pylist())
    counts["outliers"] += int(sum(done.column(OUTLIER).to_pylist()))


def _report(rows: int, counts: Counter[str], model: Model, options: dict[str, Any]) -> None:
    outliers = counts.pop("outliers", 0)
    found = {name: counts[name] for name in (model.scorer.classes if model.scorer else ())}
    if options["as_json"]:
        facts = {"rows": rows, "classes": found, "outliers": outliers, "model": model.identifier}
        click.echo(json.dumps(facts, indent=2))
    words = ", ".join(f"{count} {name}" for name, count in found.items() if count)
    note(
        f"{rows} rows: {words or 'none'}; {outliers} unlike the training set -> {options['output']}"
    )


def _shifted(model: Model, options: dict[str, Any], schema: Schema) -> Model:
    """Give the model with the shares of the classes that were asked for."""
    from skyfill.classify.prior import as_prior
    from skyfill.model import scorer_of
    from skyfill.scale import with_field_prior
    from skyfill.scale.dispatch import is_distributed

    scorer, text = scorer_of(model), options["prior"]
    if not text:
        return model
    if text == "estimate" and is_distributed(options["catalog"], options["scheduler"]):
        raise CatalogError(
            "--prior estimate reads one file; estimate the shares on a sample, then give them as "
            "--prior CLASS=SHARE,..."
        )
    if text == "estimate":
        shifted = with_field_prior(model, options["catalog"], schema)
        shares = zip(scorer.classes, scorer_of(shifted).prior, strict=True)
        words = ", ".join(f"{name} {share:.3g}" for name, share in shares)
        note(f"estimated shares: {words}")
        return shifted
    prior = as_prior(shared.shares_of(text), scorer.classes)
    return replace(model, scorer=replace(scorer, prior=prior))
