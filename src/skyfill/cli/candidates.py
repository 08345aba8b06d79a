"""`skyfill candidates`: probable members of a class, ranked and compared with published lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options
from skyfill.cli.checks import mention_position, mention_training
from skyfill.cli.expected_purity import (
    SHOWN,
    Expectation,
    doubt_about,
    expected_at,
    takes_purity,
    without_known,
    words_of,
)
from skyfill.cli.survey_options import named_values
from skyfill.cli.terminal import GUESSED, echo, mention, note, warn, write_json

if TYPE_CHECKING:
    from skyfill.catalog import Scan, Table
    from skyfill.report.candidates import Candidates, Selection
    from skyfill.report.published_lists import ListReport, Search
    from skyfill.report.purity import ExpectedList
    from skyfill.sky import PositionColumns

RESULTS = "results"


@click.command(
    "candidates",
    epilog=options.examples(
        "skyfill candidates classified.parquet --class QSO --min-probability 0.9 -o sure.fits",
        "skyfill candidates classified.parquet --class QSO --compare field/candidates.ecsv "
        "--model lmc.skyfill -o compared.fits",
        "skyfill candidates classified.parquet --class QSO --purity 0.9 -o pure.fits",
    ),
)
@click.argument("results", type=click.Path(path_type=Path))
@options.output()
@click.option("--class", "name", required=True, help="The class to look for.")
@click.option("--min-probability", "least", type=float, default=0.8, show_default=True, metavar="P")
@takes_purity
@click.option(
    "--compare",
    "lists",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A published list of objects of this class; may be repeated.",
)
@click.option(
    "--radius",
    type=click.FloatRange(min=0),
    default=1.5,
    show_default=True,
    metavar="ARCSEC",
    help="Largest separation from an entry of a list when matching by position.",
)
@click.option(
    "--id",
    "key",
    metavar="COLUMN",
    help="Identifier column of RESULTS and lists.  [default: one that both have, or positions]",
)
@click.option(
    "--position",
    "positions",
    multiple=True,
    metavar="NAME=RA:DEC[:UNIT]",
    help="Position columns; NAME is a list or `results`; H+M+S:D+M+S if they are in parts.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="The model that classified RESULTS; adds the evidence for and against each candidate.",
)
@click.option(
    "--missing",
    type=click.Path(path_type=Path),
    help="Where to list missing entries, with the reasons.",
)
@options.prefix(
    options.RESULTS_PREFIX,
    "Put this before the names of new columns; those of RESULTS may have it, too.",
)
@options.as_json("the counts")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Rank the objects of RESULTS (see skyfill classify) that probably belong to a class."""
    from skyfill.catalog import Provenance, write_table
    from skyfill.model.results import after_identifier, candidate_infos
    from skyfill.report.published_lists import missing_entries, report_on, with_lists

    _refuse_both(context, given)
    selection, searches, expected = _gather(given)
    found = selection.ranked()
    reports = [report_on(search, given["least"], found.rows) for search in searches]
    table, identifier = _explained(found, given)
    table = with_lists(table, searches, found.rows)
    infos = candidate_infos(lists=[report.name for report in reports], with_evidence=True)
    new = [given["prefix"] + name for name in infos]
    table = after_identifier(table, [name for name in new if name in table.names])
    inputs = [given["results"], *given["lists"], *filter(None, [given["model"], given["checked"]])]
    made = Provenance(options.as_typed(context), inputs, model=identifier)
    write_table(table, given["output"], provenance=made)
    if given["missing"]:
        write_table(missing_entries(searches, given["least"]), given["missing"])
    _report(found, selection, reports, expected, given)


def _refuse_both(context: click.Context, given: Mapping[str, Any]) -> None:
    is_default = context.get_parameter_source("least") is click.core.ParameterSource.DEFAULT
    if given["purity"] and not is_default:
        raise click.UsageError("give either --purity or --min-probability")
    if given["label"] and not given["checked"]:
        raise click.BadParameter("needs --checked FILE", param_hint="--label")


def _gather(given: dict[str, Any]) -> tuple[Selection, list[Search], ExpectedList]:
    """Read the results in bounded memory; with --purity twice, as the threshold comes first."""
    from skyfill.catalog import Table

    scan = _scan(given)
    empty = _fresh(Table(scan.schema.empty_table()), given)
    selection = _selection(empty, given)
    searches = _searches(empty, given)
    _check_names(empty, searches, given)
    expectation = Expectation(given, partial(_search, empty, given))
    if given["purity"]:
        for table in _tables(scan, given):
            expectation.add(table)
        given["least"] = expectation.found().threshold_for(given["purity"])
        selection, scan = _selection(empty, given), _scan(given)
    collectors: list[Any] = [selection, *searches]
    collectors += [] if given["purity"] else [expectation]
    for table in _tables(scan, given):
        for collector in collectors:
            collector.add(table)
    return selection, searches, expectation.found()


def _selection(empty: Table, given: Mapping[str, Any]) -> Selection:
    from skyfill.report.candidates import Selection

    selection = Selection(given["name"], given["least"], given["prefix"])
    selection.add(empty)
    return selection


def _scan(given: Mapping[str, Any]) -> Scan:
    from skyfill.catalog import Schema, open_scan

    used = Schema.from_options(roles=[f"{name}=identifier" for name in _used(given)])
    return open_scan(given["results"], rules=used)


def _tables(scan: Scan, given: Mapping[str, Any]) -> Iterator[Table]:
    import pyarrow as pa

    from skyfill.catalog import Table

    with scan:
        for batch in scan.batches:
            yield _fresh(Table(pa.Table.from_batches([batch])), given)


def _fresh(results: Table, given: Mapping[str, Any]) -> Table:
    """Drop what an earlier list of candidates says of its objects."""
    from skyfill.model.results import candidate_info, without_results

    return without_results(results, given["prefix"], candidate_info)


def _check_names(results: Table, searches: Sequence[Search], given: Mapping[str, Any]) -> None:
    """Refuse results with columns of the names of those that are added, before the work."""
    from skyfill.catalog.new_columns import check_new
    from skyfill.model.results import candidate_infos

    lists = [search.published.name for search in searches]
    infos = candidate_infos(given["name"], lists, with_evidence=bool(given["model"]))
    check_new(results, {given["prefix"] + name: info for name, info in infos.items()})


def _used(given: Mapping[str, Any]) -> tuple[str, ...]:
    return (given["key"],) if given["key"] else ()


def _searches(results: Table, given: Mapping[str, Any]) -> list[Search]:
    from skyfill.report.published_lists import check_list_names

    searches = [_search(results, given, path) for path in given["lists"]]
    check_list_names([search.published for search in searches])
    return searches


def _search(results: Table, given: Mapping[str, Any], path: Path) -> Search:
    """Prepare to look for the objects of a file in the results."""
    from skyfill.catalog import read_table
    from skyfill.errors import CatalogError
    from skyfill.report.published_lists import Published, Search, choose_key
    from skyfill.sky import PositionColumns

    files = [*given["lists"], *filter(None, [given["checked"]])]
    known = [RESULTS, *map(_list_name, files)]
    where = named_values(given["positions"], known, "--position", PositionColumns.parse)
    table, name = read_table(path, identifiers=_used(given)), _list_name(path)
    try:
        key = choose_key(results, table, given["key"])
        published = Published(name, table, key, where.get(name))
        how: dict[str, Any] = {"position": where.get(RESULTS), "prefix": given["prefix"]}
        search = Search(published, given["name"], given["radius"], **how)
        search.add(results)
        if key is None:
            _mention_positions(results, table, name, where)
        elif not given["key"]:
            mention(GUESSED, f"{name}: compared by {key}")
    except CatalogError as error:
        both = f"{path} with {given['results']}"
        raise CatalogError(f"{both}: they share no identifier, and {error}") from None
    return search


def _mention_positions(
    results: Table, table: Table, name: str, where: Mapping[str, PositionColumns]
) -> None:
    """List the positions that are guessed, where a list is compared by position."""
    for owner, each in ((RESULTS, results), (name, table)):
        if owner not in where:
            mention_position(each, f"{owner}: ")


def _list_name(path: Path) -> str:
    return path.name.split(".")[0]


def _explained(found: Candidates, given: Mapping[str, Any]) -> tuple[Table, str | None]:
    """Add the evidence for and against each candidate if a model is given."""
    from skyfill.catalog import Schema
    from skyfill.errors import ModelError
    from skyfill.model import load_model, scorer_and_cells, scorer_of
    from skyfill.model.results import record_of
    from skyfill.report.candidates import evidence, with_evidence

    if not given["model"]:
        return found.table, None
    model = load_model(given["model"])
    mention_training(model, Schema(), found.table.names)
    scorer = scorer_of(model)
    if given["name"] not in scorer.classes:
        raise ModelError(
            f"{given['model']}: has no class {given['name']!r}; its classes are "
            f"{', '.join(scorer.classes)}; give the model that made {given['results']}"
        )
    record = record_of(found.table, given["prefix"]) or {}
    is_own = record.get("model") == model.identifier
    scorer, cells = scorer_and_cells(model, found.table, record.get("prior") if is_own else None)
    # Draws would add scatter to every difference of odds.
    classify = partial(scorer.probabilities, n_draws=0)
    bits = evidence(classify, cells, scorer.classes.index(given["name"]))
    return with_evidence(found.table, bits, model.names, given["prefix"]), model.identifier


def _warn_of_known(table: Table, given: Mapping[str, Any]) -> None:
    """Say how many candidates taught the model their class."""
    from skyfill.model.results import TRAINED_ON, results_prefix

    if known := len(table) - len(without_known(table, given["prefix"])):
        rest = "" if known == len(table) else ", and what is expected of the list is of the others"
        warn(
            f"{known} of {len(table)} candidates were in the training set (marked in the column "
            f"{results_prefix(table, given['prefix'])}{TRAINED_ON}): their class was known{rest}"
        )


def _report(
    found: Candidates,
    selection: Selection,
    reports: Sequence[ListReport],
    expected: ExpectedList,
    given: dict[str, Any],
) -> None:
    (doubt, caution), n, of = doubt_about(found.table, given), len(found.rows), selection.n_rows
    _warn_of_known(found.table, given)
    here, *there = (expected_at(expected, p, doubt) for p in (given["least"], *SHOWN))
    if given["as_json"]:
        lists = [{**asdict(r), "percent": r.percent, "new": r.new} for r in reports]
        facts = {"class": given["name"], "min_probability": given["least"]}
        every = {"expected": here, "doubt": doubt or None, "thresholds": there}
        write_json({**facts, "rows": of, "candidates": n, "lists": lists, **every})
    else:
        for report in reports:
            echo(str(report))
    note(
        f"{n} of {of} objects are {given['name']} with probability {given['least']:g} or more"
        f"{words_of(here, given['name'], doubt, caution)} -> {given['output']}",
    )
