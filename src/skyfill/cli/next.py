"""`skyfill next`: the missing measurement that would reveal most about an object's class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skyfill.cli import options
from skyfill.cli.checks import check_use, mention_training
from skyfill.cli.terminal import echo, note, write_json
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.classify.next_measurement import Gains
    from skyfill.classify.scorer import Scorer
    from skyfill.model.weighing import Weights
    from skyfill.network import Cells

# A measurement that shows which counterpart is the right one.
POSITION = "position"


@click.command(
    "next",
    epilog=options.examples(
        "skyfill next lmc.skyfill quasars.fits --by survey -o plan.csv",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("objects", type=click.Path(path_type=Path))
@options.output("File for the expected gains of every object.", required=False)
@options.choice(
    "--by", "feature|survey", "Measure one feature, or all features of a survey together."
)
@options.surveys("--survey", "A survey to measure with.  [default: as recorded by skyfill match]")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Use only this many objects, chosen at random; enough for the summary.",
)
@options.count("--points", 12, "Quantiles used for one missing feature.", least=2)
@options.count("--draws", 32, "Joint draws used for several missing features.", least=2)
@options.prefix(options.RESULTS_PREFIX)
@options.schema()
@options.text()
@options.seed()
@options.as_json("the summary")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Estimate how many bits about their class each missing measurement of OBJECTS would give.

    A single missing feature is integrated over --points quantiles of its distribution, several
    features of a survey over --draws joint draws.
    For a table of all associations (match --probability --all) a better position is among the
    measurements.
    """
    from skyfill.catalog import Provenance, read_table, write_table
    from skyfill.catalog import Table as Taken
    from skyfill.classify.next_measurement import expected_gains
    from skyfill.model import absent_features, cells_of, load_model, scorer_of

    rules = options.rules_of(given)
    model, every = load_model(given["model"]), read_table(given["objects"], schema=rules)
    model = mention_training(model, rules, every.names)
    check_use(model, every)
    weights = _weights(every, given)
    table = _sampled(every if weights is None else Taken(every.arrow.take(weights.best)), given)
    absent_features(model.features, table.names, given["objects"])
    cells, _, absent = cells_of(model, table)
    scorer = scorer_of(model).without([model.names.index(name) for name in absent])
    blocks = _blocks(model.names, table, given)
    if given["output"]:
        table = check_next(table, blocks or model.names, given["prefix"])
    gains = expected_gains(
        scorer.probabilities,
        scorer.network,
        cells,
        blocks=blocks,
        n_points=given["points"],
        n_draws=given["draws"],
        rng=given["seed"],
    )
    if weights is not None:
        gains = _with_position(gains, scorer, cells_of(model, every)[0], weights, given["seed"])
    if given["output"]:
        inputs = [given["model"], given["objects"]]
        made = Provenance(options.as_typed(context), inputs, given["seed"], model.identifier)
        write_table(with_gains(table, gains, given["prefix"]), given["output"], provenance=made)
    _report(gains, given)


def _weights(table: Table, given: Mapping[str, Any]) -> Weights | None:
    """Weights of a table of all associations; None for one that has a row per object."""
    from skyfill.model.weighing import Weights, are_associations

    if not are_associations(table.names):
        return None
    if given["sample"] is not None:
        raise CatalogError(
            f"{given['objects']}: holds all associations of its objects; leave out --sample"
        )
    return Weights.of(table)


def _with_position(
    gains: Gains, scorer: Scorer, cells: Cells, weights: Weights, seed: int
) -> Gains:
    """Add the information gained from knowing the counterpart, through a better position."""
    from dataclasses import replace

    from skyfill.model.weighing import position_bits

    bits = position_bits(scorer.probabilities(cells, rng=seed), weights)
    names = (*gains.names, POSITION)
    return replace(gains, names=names, bits=np.column_stack([gains.bits, bits]))


def _sampled(table: Table, given: Mapping[str, Any]) -> Table:
    from skyfill.catalog import Table as Taken

    n = given["sample"]
    if n is None or n >= len(table):
        return table
    rows = np.random.default_rng(given["seed"]).choice(len(table), n, replace=False)
    return Taken(table.arrow.take(np.sort(rows)))


def _blocks(
    names: Sequence[str], table: Table, given: Mapping[str, Any]
) -> dict[str, list[int]] | None:
    """Columns of each survey; features of no survey are measured one by one."""
    from skyfill.evaluate import find_surveys

    if given["by"] == "feature" and not given["survey"]:
        return None
    blocks = find_surveys(table, names, given["survey"])
    if not blocks:
        raise CatalogError(
            f"{given['objects']}: does not state which survey its columns come from; name the "
            "surveys with --survey NAME or --survey NAME=COLUMN,..."
        )
    taken = {j for columns in blocks.values() for j in columns}
    return blocks | {name: [j] for j, name in enumerate(names) if j not in taken}


def check_next(table: Table, measurements: Iterable[str], prefix: str) -> Table:
    """Drop what an earlier run added; refuse other columns of its names, before the work."""
    from skyfill.catalog.new_columns import check_new
    from skyfill.model.results import next_info, next_infos, without_results

    table = without_results(table, prefix, next_info)
    infos = next_infos([*measurements, POSITION])
    check_new(table, {prefix + name: info for name, info in infos.items()})
    return table


def with_gains(table: Table, gains: Gains, prefix: str) -> Table:
    """Add the best measurement of each object, its gain, and the gains of all."""
    from skyfill.model.results import after_identifier, next_infos

    best = gains.best
    names = np.array([*gains.names, None], dtype=object)
    known = np.where(np.isnan(gains.bits), -1.0, gains.bits)
    top = np.where(best < 0, np.nan, known.max(axis=1, initial=-1.0))
    values = [gains.entropy, names[best], top, *gains.bits.T]
    infos = next_infos(gains.names)
    for (name, info), column in zip(infos.items(), values, strict=True):
        table = table.with_column(prefix + name, column, info)
    return after_identifier(table, [prefix + name for name in infos])


def _report(gains: Gains, given: Mapping[str, Any]) -> None:
    benefits = [benefit for benefit in gains.summary() if benefit.missing]
    n, entropy = len(gains.bits), float(gains.entropy.mean()) if len(gains.bits) else 0.0
    if given["as_json"]:
        facts = {"objects": n, "entropy_bits": entropy}
        found = [benefit._asdict() for benefit in benefits]
        write_json({**facts, "measurements": found})
    else:
        from skyfill.classify.next_measurement import HELPED_BITS
        from skyfill.evaluate.score_tables import markdown

        head = ["measurement", "objects without", "bits in all", "bits each", "best for"]
        rows = [
            [b.name, str(b.missing), f"{b.total:.1f}", f"{b.mean:.3f}", str(b.best), str(b.helped)]
            for b in benefits
        ]
        echo(markdown([*head, f"{HELPED_BITS:g} bits or more for"], rows))
    where = f" -> {given['output']}" if given["output"] else ""
    note(f"{n} objects, {entropy:.3f} bits of uncertainty each{where}")
