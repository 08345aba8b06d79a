"""`skyfill train`: a model from a catalogue with gaps."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import check_training, mention_rules
from skyfill.cli.effort import settle_effort, takes_effort
from skyfill.cli.expected_cost import LARGE_STEPS, expect_train
from skyfill.cli.field_shares import field_files, takes_field
from skyfill.cli.model_lines import beyond_line, cells_line, limit_words, logarithms_line
from skyfill.cli.quality_lines import quality_lines
from skyfill.cli.terminal import note, now_and_then, write_json
from skyfill.cli.train_classes import CLASS_OPTIONS, components_of, grow_classes, learn_classes
from skyfill.cli.train_large import out_of_core, resume
from skyfill.cli.train_network import (
    arcs_of,
    refine_of,
    refining,
    settle_network,
    which_network,
    words_of_network,
)
from skyfill.cli.training_columns import (
    choose_features,
    error_rules,
    refuse_without_label,
    takes_classes,
    takes_tree,
    with_labels,
)
from skyfill.cli.work_progress import work_bar
from skyfill.errors import CatalogError, counted, shortened
from skyfill.progress import watched

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.model import Model
    from skyfill.scale import Source


# Rows, and cells, at each place of a large catalogue that are looked at.
SAMPLED_ROWS, SAMPLED_CELLS = 1 << 13, 1 << 22


@click.command(
    "train",
    epilog=shared.examples(
        "skyfill train training/joined.parquet --features V,R,J_two_mass -o colors.skyfill",
        "skyfill train training/joined.parquet --features V,R,m36_sage,sigma_lc --label "
        "class_truth -o small.skyfill",
        "skyfill train training/joined.parquet --features V,R,m36_sage,sigma_lc --label "
        "class_truth --method paper -o paper.skyfill",
    ),
)
@click.argument("catalog", type=shared.CATALOG)
@shared.output("Where to write the model.")
@shared.feature_option()
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column of the classes: the model can then classify. Blanks, unid, unknown, ? and the "
    "like are no class.",
)
@takes_classes
@shared.group()
@shared.schema()
@shared.text()
@click.option("--components", metavar="N|auto", default="auto", show_default=True)
@shared.choice(
    "--arcs",
    "none|full|factors|shared|own|auto",
    "Components with full covariances, with a few factors, with one graph for all, or with one "
    "each; none: full or, if a wide table gains from them, factors.",
)
@click.option(
    "--gaps",
    type=click.Choice(["ignorable", "informative", "auto"]),
    help="Whether the pattern of gaps is informative about an object.  [default: auto with "
    "--label, else ignorable]",
)
@shared.uncertainties
@takes_effort
@click.option(
    "--fits",
    type=click.IntRange(min=1),
    help="Fits of the network to average.  [default: 3 with --label, else 8]",
)
@shared.choice(
    "--method",
    "both|forest|boosting|paper",
    "Trees that classify; paper: the paper's own model, one network by Algorithm 1 and a "
    "random forest on filled values, without limits, errors or calibration.",
)
@which_network
@refining
@click.option("--trees", type=click.IntRange(min=1), help="Trees of each forest.")
@click.option(
    "--class-weight",
    metavar="balanced|CLASS=WEIGHT,...",
    help="Weights of the classes; by default every object weighs the same.",
)
@click.option(
    "--prior",
    metavar="CLASS=SHARE,...",
    help="Shares of the classes in the field, if they are not those of the training set.",
)
@takes_tree
@takes_field(
    "A catalogue that is to be classified: up to 10,000 of its rows help to learn the features, "
    "and the shares of the classes are estimated from them, unless --prior gives them."
)
@click.option("--no-calibration", is_flag=True, help="Leave the trees' probabilities as they are.")
@shared.force("set by people")
@out_of_core
@shared.device
@shared.scheduler
@resume
@shared.seed()
@shared.as_json("what was learned")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Learn a model of the features of CATALOG, including incomplete rows.

    With --label it also learns to classify; rows without a label help with the features. Columns
    of role limit and error, and reasons of gaps, tell what is known besides the values. Out of
    core all rows count, but memory holds few of them; on a cluster the workers share them.
    """
    model, facts, words, judged = learn(context, options)
    if options["as_json"]:
        write_json({"model": model.identifier, **facts, "columns": judged})
    note(cells_line(facts["cells"]))
    if facts["cells"] and (limits := facts["cells"]["limits"]):
        note(f"limits: {shortened([f'{name}: {words}' for name, words in limits.items()], 240)}")
    if facts["logarithmic"]:
        note(logarithms_line(facts["logarithmic"]))
    if facts["beyond"]["shares"]:
        note(beyond_line(facts["beyond"]))
    # What is filled matters less here, and is in --json and in the model.
    kept = ("classes",) if options["label"] else ("filling",)
    for line in quality_lines({k: found for k, found in model.quality.items() if k in kept}):
        note(line)
    note(
        f"{counted(row=facts['rows'])}, {counted(feature=len(model.names))}: {words} -> "
        f"{options['output']} (model {model.identifier})"
    )


class Trained(NamedTuple):
    """A model, facts about it for JSON, a summary, and what each column of the table is."""

    model: Model
    facts: dict[str, Any]
    words: str
    judged: dict[str, Any]


def learn(context: click.Context, options: dict[str, Any]) -> Trained:
    """Learn a model as the options say, which are settled here, and write it to `output`.

    The catalogue is a path or, as `open_source` takes it, a table in memory. Without `output`
    nothing is written.
    """
    from skyfill.catalog import Provenance
    from skyfill.cli.train_large import Place, choose_place, learn_large
    from skyfill.model import before_filling
    from skyfill.model.description import describe_beyond, describe_logarithms, describe_refined
    from skyfill.scale import TableSource, open_source, read_whole

    refuse_without_label(options, CLASS_OPTIONS)
    settle_effort(context, options)
    settle_network(context, options)
    place, catalog = choose_place(options), options["catalog"]
    rules = shared.rules_of(options)
    source = None if place is Place.MEMORY else open_source(catalog)
    table = rules.apply(source.table()) if source else read_whole(catalog, rules)
    table = before_filling(table)
    mention_rules(rules, table.names)
    sample = before_filling(rules.apply(_sampled(source))) if source else table
    if not len(sample):
        raise CatalogError(f"{catalog}: has no rows, so there is nothing to learn from")
    if options["label"] and not source:
        sample = table = with_labels(table, options)
    names, judged = choose_features(sample, options, "features")
    if options["errors"] == "on":
        more = error_rules(judged, names)
        rules, table, sample = rules + more, more.apply(table), more.apply(sample)
    check_training(sample, names, rules)
    inputs, seed = source.checked_files if source else [catalog], options["seed"]
    if isinstance(catalog, TableSource):
        inputs = []
    inputs = [*inputs, *field_files(options["field"])]
    made = json.loads(Provenance(shared.as_typed(context), inputs, seed=seed).to_json())
    expected = expect_train(source or table, names, options)
    with work_bar("learning", *expected) as advance, watched(advance):
        asked = options | {"place": place, "rules": rules, "made": made}
        asked["typed"] = shared.typed_options(context)
        if source:
            step = expected.seconds / (LARGE_STEPS * options["fits"])
            asked["report"] = _stages(partial(advance, step))
            grow = partial(grow_classes, source, asked) if options["label"] else None
            how = _fitting(asked)
            model, facts, words = learn_large(source, table, names, asked, grow=grow, **how)
        else:
            model, facts, words = _learn_in_memory(table, names, asked)
    facts |= {
        "cells": _describe_cells(model),
        "found": {name: list(values) for name, values in model.found.items()},
        "beyond": describe_beyond(model),
        "logarithmic": describe_logarithms(model),
        "refined": list(dict.fromkeys(each["name"] for each in describe_refined(model))),
        "quality": dict(model.quality),
    }
    return Trained(model, facts, words, judged)


def _sampled(source: Source) -> Table:
    """Read a few rows of a large catalogue with all columns: fewer if these are many."""
    names = source.schema.names
    return source.sample(names, rows=max(1, min(SAMPLED_ROWS, SAMPLED_CELLS // len(names))))


def _stages(advance: Callable[[], None]) -> Callable[[str], None]:
    """Give a function that counts stages of learning, and names them in a log."""
    say = now_and_then()

    def report(stage: str) -> None:
        say(f"learning: {stage}")
        advance()

    return report


def _describe_cells(model: Model) -> dict[str, Any] | None:
    """Count the cells of all features, and those beyond limits of each."""
    from skyfill.model import summarize_cells

    found = summarize_cells(model)
    if found is None:
        return None
    each = dict(zip(model.names, model.detections, strict=True))
    limits = {
        n: limit_words(vars(d), d.counts.limited)
        for n, d in each.items()
        if d.side and d.counts.limited
    }
    limited = {name: detection.counts.limited for name, detection in each.items()}
    return {**found, "limited_by_feature": limited, "limits": limits}


Learned = tuple["Model", dict[str, Any], str]


def _learn_in_memory(table: Table, names: tuple[str, ...], options: dict[str, Any]) -> Learned:
    from skyfill.model import save_model

    learned = (learn_classes if options["label"] else _learn_features)(table, names, options)
    if options["output"] is not None:
        save_model(learned[0], options["output"])
    return learned


def _fitting(options: dict[str, Any]) -> dict[str, Any]:
    """Give the options of `skyfill.model.train`."""
    shown = {
        "provenance": options["made"],
        "force": shared.words_of(options["force"]),
        "limits": options["limits"],
        "errors": options["errors"],
        "rng": options["seed"],
    }
    if options["network"] != "mixture":
        from skyfill.network import learn_one_network

        score, how = arcs_of(options)
        return shown | {"learn": learn_one_network, "score": score, "margins": False, **how}
    return shown | {
        "n_components": components_of(options["components"]),
        "arcs": options["arcs"],
        "gaps": options["gaps"] or ("auto" if options["label"] else "ignorable"),
        "n_fits": options["fits"],
        "refine": refine_of(options),
    }


def _learn_features(table: Table, names: tuple[str, ...], options: dict[str, Any]) -> Learned:
    from skyfill.model import train

    model, learned = train(table, names, rules=options["rules"], **_fitting(options))
    trials = [{**plan._asdict(), "held_out": score} for plan, score in learned.trials]
    facts = {"rows": len(table), "plan": learned.plan._asdict(), "trials": trials}
    return model, facts, words_of_network(model, learned.plan)
