"""`skyfill classify`: the class of every object of a catalogue, with probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import mention_training
from skyfill.cli.terminal import note, shown_run, warn, write_json
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Provenance, Schema
    from skyfill.model import Model, Scoring
    from skyfill.scale import Done, Source


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
    gap_share (share of the entropy that would vanish if the gaps were measured), outlier and
    outlier_score.

    A table of all associations (match --probability --all) gives one row for each object: its
    associations are weighed by their probabilities, and counterpart_share is the share of the
    entropy that would vanish if the counterpart were known.
    """
    from skyfill.catalog import Provenance, Schema, read_schema
    from skyfill.model import Scoring, load_model
    from skyfill.scale import apply_model, open_source
    from skyfill.scale.scoring import absent_features

    model, source = load_model(options["model"]), open_source(options["catalog"])
    if absent := absent_features(model, source):
        warn(f"{options['catalog']} lacks {', '.join(absent)}: gaps in every row")
    rules = read_schema(options["schema"]) if options["schema"] else Schema()
    model = mention_training(model, rules, source.schema.names)
    inputs, seed = [options["model"], *source.checked_files], options["seed"]
    made = Provenance(shared.as_typed(context), inputs, seed=seed, model=model.identifier)
    prior = _prior(model, source, rules, options)
    work = Scoring(options["gap_draws"], options["draws"], seed, prior)
    places = options["model"], options["catalog"], options["output"]
    if shared.has_associations(source, options):
        done = _classify_associations(model, work, options, made)
    else:
        with shown_run("classifying", source, options, made) as run:
            done = apply_model(work, *places, rules=rules, run=run)
    _report(done, model, options)


def _classify_associations(
    model: Model, work: Scoring, options: dict[str, Any], made: Provenance
) -> Done:
    """Classify all associations of each object, weighed by their probabilities."""
    from collections import Counter

    from skyfill.catalog import read_table, write_table
    from skyfill.model import classify_associations
    from skyfill.model.results import CLASS, OUTLIER
    from skyfill.scale import Done

    table = read_table(options["catalog"], schema=options["schema"])
    mixed = classify_associations(model, table, work)
    write_table(mixed, options["output"], provenance=made)
    note(f"{len(table)} associations of {len(mixed)} objects weighed")
    counts = Counter(f"class.{name}" for name in mixed.column(CLASS).to_pylist())
    counts["outliers"] = sum(mixed.column(OUTLIER).to_pylist())
    return Done(len(mixed), counts)


def _report(done: Done, model: Model, options: dict[str, Any]) -> None:
    outliers = done.counts.get("outliers", 0)
    classes = model.scorer.classes if model.scorer else ()
    found = {name: done.counts.get(f"class.{name}", 0) for name in classes}
    if options["as_json"]:
        facts = {"rows": done.rows, "classes": found, "outliers": outliers}
        write_json({**facts, "model": model.identifier})
    words = ", ".join(f"{count} {name}" for name, count in found.items() if count)
    note(
        f"{done.rows} rows: {words or 'none'}; {outliers} unlike the training set -> "
        f"{options['output']}"
    )


def _prior(
    model: Model, source: Source, rules: Schema, options: dict[str, Any]
) -> tuple[float, ...] | None:
    """Give the shares of the classes that were asked for."""
    from skyfill.classify.prior import as_prior
    from skyfill.model import scorer_of
    from skyfill.scale import estimate_field_prior

    scorer, text = scorer_of(model), options["prior"]
    if not text:
        return None
    if text != "estimate":
        return tuple(as_prior(shared.shares_of(text), scorer.classes).tolist())
    if options["scheduler"] or not source.is_one_file:
        raise CatalogError(
            "--prior estimate reads one file; estimate the shares on a sample, then give them as "
            "--prior CLASS=SHARE,..."
        )
    prior = estimate_field_prior(model, source, rules)
    shares = zip(scorer.classes, prior, strict=True)
    note("estimated shares: " + ", ".join(f"{name} {share:.3g}" for name, share in shares))
    return prior
