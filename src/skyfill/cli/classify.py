"""`skyfill classify`: the class of every object of a catalogue, with probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from skyfill.cli import options as shared
from skyfill.cli.applying import Application, open_application, takes_model, takes_run
from skyfill.cli.field_shares import mention_shares
from skyfill.cli.terminal import note, warn, write_json
from skyfill.errors import CatalogError, counted, shortened

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.classify.likeness import Likeness
    from skyfill.model import Scoring
    from skyfill.scale import Done


def _draws(context: click.Context, parameter: click.Parameter, text: str) -> int | str:
    if text != "auto" and not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a number from 0 nor auto")
    return text if text == "auto" else int(text)


@click.command(
    "classify",
    epilog=shared.examples(
        "skyfill classify lmc.skyfill field/joined.parquet --prior estimate -o classes.fits",
    ),
)
@takes_model
@click.option(
    "--prior",
    metavar="estimate|CLASS=SHARE,...",
    help="Shares of the classes in the field, if they are not those of the training set.",
)
@click.option(
    "--draws",
    metavar="auto|N",
    default="auto",
    show_default=True,
    callback=_draws,
    help="Draws of the gaps that the probabilities average over; 0 is fast; auto: 8 to 32 for "
    "objects with gaps unlike those of the training set, none for the others.",
)
@shared.count(
    "--gap-draws",
    8,
    "Draws of the gaps for sf_gap_share; 0 leaves it empty and is fastest.",
    least=0,
)
@click.option(
    "--sure",
    type=click.FloatRange(min=0.5, max=1, min_open=True),
    default=0.8,
    show_default=True,
    metavar="P",
    help="With a tree of classes (train --tree): write the smallest group that is as probable.",
)
@shared.prefix(shared.RESULTS_PREFIX)
@takes_run
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Classify the objects of CATALOG with MODEL, also those with gaps.

    Written behind the identifier of CATALOG: sf_class, sf_p_<class> for every class, sf_entropy
    (bits), sf_gap_share (share of the entropy that would vanish if the gaps were measured),
    sf_outlier and sf_outlier_score. What an earlier run wrote there is replaced.

    A table of all associations (match --probability --all) gives one row for each object: its
    associations are weighed by their probabilities, and sf_counterpart_share is the share of the
    entropy that would vanish if the counterpart were known.
    """
    from skyfill.model.results import TRAINED_ON

    done, work, job, _ = classify(context, options)
    model, known = job.model, done.counts.get(TRAINED_ON, 0)
    outliers = done.counts.get("outliers", 0)
    classes = model.scorer.classes if model.scorer else ()
    found = {name: done.counts.get(f"class.{name}", 0) for name in classes}
    if options["as_json"]:
        facts = {"rows": done.rows, "classes": found, "outliers": outliers, "trained_on": known}
        facts["prior"] = work.prior and dict(zip(classes, work.prior, strict=True))
        facts["likeness"] = work.likeness and work.likeness._asdict()
        write_json({**facts, "draws": options["draws"], "model": model.identifier})
    words = shortened([f"{count} {name}" for name, count in found.items() if count], 150)
    note(
        f"{counted(row=done.rows)}: {words or 'none'}; {outliers} unlike the training set -> "
        f"{options['output']}"
    )


class Classified(NamedTuple):
    """Counts, what was done with which job, and the objects where they were not written."""

    done: Done
    work: Scoring
    job: Application
    table: Table | None


def classify(context: click.Context, options: dict[str, Any]) -> Classified:
    """Classify a catalogue as the options say; see `open_application`."""
    from skyfill.model import Scoring, classify_associations
    from skyfill.model.results import TRAINED_ON
    from skyfill.scale import check_likeness

    job = open_application(context, options, "gaps")
    n_draws, marginalize, prefix = (options[key] for key in ("gap_draws", "draws", "prefix"))
    sure = options["sure"]
    work = Scoring(n_draws, marginalize, options["seed"], _prior(job), prefix, sure)
    likeness = check_likeness(job.model, job.source, work, job.rules)
    _warn_of_unlike(likeness, options)
    work = replace(work, likeness=likeness)
    done, table = job.run(
        work,
        "classifying",
        lambda table: classify_associations(job.model, table, work),
        lambda table: _count(table, prefix),
    )
    if known := done.counts.get(TRAINED_ON, 0):
        warn(
            f"{known} of {done.rows} rows are in the training set (marked in the column "
            f"{prefix}{TRAINED_ON}): the model knew their classes, so that they say "
            "nothing about how well it classifies; skyfill inspect MODEL does"
        )
    return Classified(done, work, job, table)


def _warn_of_unlike(likeness: Likeness, options: dict[str, Any]) -> None:
    """Warn where probabilities promise too much: of all objects, or of those taken for a class."""
    from skyfill.classify.likeness import LEAST_OBJECTS
    from skyfill.report.purity import unlike_words

    if likeness.rows < LEAST_OBJECTS or likeness.unlike is None:
        return
    facts = likeness._asdict()
    classes = (unlike_words(facts, name) for name in likeness.classes)
    if words := unlike_words(facts) or "; ".join(filter(None, classes)):
        shares = "estimate the shares of the classes (--prior estimate), or "
        warn(
            f"{options['catalog']}: {words}: probabilities hold less than they say; "
            f"{'' if options['prior'] else shares}label some of its objects"
        )


def _count(table: Table, prefix: str) -> Mapping[str, int]:
    from collections import Counter

    from skyfill.model.results import CLASS, OUTLIER, TRAINED_ON

    counts = Counter(f"class.{name}" for name in table.column(prefix + CLASS).to_pylist())
    counts["outliers"] = sum(table.column(prefix + OUTLIER).to_pylist())
    if prefix + TRAINED_ON in table.names:
        counts[TRAINED_ON] = sum(table.column(prefix + TRAINED_ON).to_pylist())
    return counts


def _prior(job: Application) -> tuple[float, ...] | None:
    """Give the shares of the classes that were asked for."""
    from skyfill.classify.prior import as_prior
    from skyfill.model import scorer_of
    from skyfill.scale import estimate_field_prior

    scorer, text = scorer_of(job.model), job.options["prior"]
    if not text:
        return None
    if text != "estimate":
        return tuple(as_prior(shared.shares_of(text), scorer.classes).tolist())
    if job.options["scheduler"] or not job.source.is_one_file:
        raise CatalogError(
            "--prior estimate reads one file; estimate the shares on a sample, then give them as "
            "--prior CLASS=SHARE,..."
        )
    found = estimate_field_prior(job.model, job.source, job.rules)
    mention_shares(found, scorer.classes, job.options["catalog"])
    return tuple(found.shares.tolist())
