"""`skyfill demo`: a network from a simulated field, its gaps filled and judged by the truth."""

import json
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

N_OBJECTS, N_ARCS = 6, 15


class Result(NamedTuple):
    """What the demo computed; tables have a row per object and a column per band."""

    bands: tuple[str, ...]
    kinds: list[str]
    table: NDArray[np.float64]
    truth: NDArray[np.float64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    network: Any
    n_rounds: int


@click.command("demo", epilog="Example: skyfill demo --seed 1 --score k2")
@click.option("--seed", default=0, show_default=True, help="Seed of the field and of the search.")
@click.option(
    "--score",
    type=click.Choice(["bic", "k2"]),
    default="bic",
    show_default=True,
    help="How graphs are compared: bic is structural EM, k2 the paper's Algorithm 1.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the numbers as JSON instead.")
def command(seed: int, score: str, as_json: bool) -> None:
    """Learn a network from a simulated table with gaps and fill it.

    The table is a simulated field of the Large Magellanic Cloud: a base catalog joined with SAGE,
    2MASS and UBVI, which cover parts of it down to their limits. The truth is known, so that the
    filled values can be judged.
    """
    click.echo("simulating a field, learning a network from it ...", err=True)
    result = _run(seed, score)
    if as_json:
        click.echo(json.dumps(_summary(result), indent=2))
    else:
        _print(result)


def _run(seed: int, score: str) -> Result:
    from skyfill.catalog import Role
    from skyfill.datasets import join_by_truth, simulate_training_set
    from skyfill.network import learn_network

    field = simulate_training_set(seed=seed)
    table = join_by_truth(field)
    bands = table.names_with(Role.FEATURE)
    X = table.numbers(*bands)
    truth = field.truth.numbers(*(f"true_{band.removesuffix('_macho')}" for band in bands))
    learned = learn_network(X, bands, score=score, rng=seed)
    filled = learned.network.posterior(X)
    kinds = table.column("class").to_pylist()
    rounds = len(learned.trace)
    return Result(bands, kinds, X, truth, filled.mean, filled.sd, learned.network, rounds)


def _summary(result: Result) -> dict[str, Any]:
    """Numbers of the demo: arcs with weights, and the errors of the filled values per band."""
    lost = np.isnan(result.table)
    arcs = [
        {"parent": result.network.names[k], "child": child, "weight": weight}
        for j, child in enumerate(result.network.names)
        for k, weight in zip(result.network.parents[j], result.network.weights[j], strict=True)
    ]
    bands = [
        {"band": band, **_errors(result, j, lost[:, j])}
        for j, band in enumerate(result.bands)
        if lost[:, j].any()
    ]
    return {
        "rows": len(result.table),
        "gaps": int(lost.sum()),
        "rounds": result.n_rounds,
        "arcs": arcs,
        "bands": bands,
    }


def _errors(result: Result, j: int, lost: NDArray[np.bool_]) -> dict[str, float]:
    error = result.mean[lost, j] - result.truth[lost, j]
    by_mean = np.nanmean(result.table[:, j]) - result.truth[lost, j]
    return {
        "missing": float(lost.mean()),
        "rms_error": float(np.sqrt(np.mean(error**2))),
        "rms_error_of_column_mean": float(np.sqrt(np.mean(by_mean**2))),
        "typical_sd": float(np.median(result.sd[lost, j])),
        "within_one_sd": float(np.mean(np.abs(error) < result.sd[lost, j])),
    }


def _print(result: Result) -> None:
    from rich.console import Console

    console = Console()
    summary = _summary(result)
    console.print(
        f"\n{summary['rows']} objects, {len(result.bands)} magnitudes, {summary['gaps']} gaps; "
        f"{len(summary['arcs'])} arcs in {summary['rounds']} rounds."
    )
    console.print(_arc_table(result, summary["arcs"]))
    console.print(_object_table(result))
    console.print(_error_table(summary["bands"]))
    console.print(
        "One Gaussian network for seven classes of objects: too sure of its values where a survey "
        "lost an object because it is faint.\nNext: skyfill demo --score k2, skyfill data list, "
        "skyfill data simulate FOLDER"
    )


def _arc_table(result: Result, arcs: list[dict[str, Any]]) -> Any:
    """Arcs by the change of the child, in its standard deviations, per standard deviation."""
    from rich.table import Table

    sd = dict(zip(result.bands, np.sqrt(np.diag(result.network.joint().cov)), strict=True))
    ranked = sorted(arcs, key=lambda a: -abs(a["weight"]) * sd[a["parent"]] / sd[a["child"]])
    table = Table(title=f"Strongest arcs ({min(N_ARCS, len(arcs))} of {len(arcs)})")
    for column in ("parent", "child"):
        table.add_column(column)
    table.add_column("mag per mag", justify="right")
    for arc in ranked[:N_ARCS]:
        table.add_row(arc["parent"], arc["child"], f"{arc['weight']:+.2f}")
    return table


def _object_table(result: Result) -> Any:
    from rich.table import Table

    table = Table(title="Some filled values")
    for column in ("object", "class", "band"):
        table.add_column(column)
    for column in ("filled", "sd", "truth"):
        table.add_column(column, justify="right")
    rows = np.flatnonzero(np.isnan(result.table).any(axis=1))
    # A variable object of each kind first: they are what people look for.
    firsts = [next(r for r in rows if result.kinds[r] == kind) for kind in _kinds(result, rows)]
    for r in firsts[:N_OBJECTS]:
        for j in np.flatnonzero(np.isnan(result.table[r]))[:3]:
            numbers = (result.mean[r, j], result.sd[r, j], result.truth[r, j])
            cells = (f"{number:.2f}" for number in numbers)
            table.add_row(str(r), result.kinds[r], result.bands[j], *cells)
    return table


def _kinds(result: Result, rows: NDArray[np.intp]) -> list[str]:
    return sorted({result.kinds[r] for r in rows} - {"NV"})


def _error_table(bands: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title="Filled values against the truth (magnitudes)")
    table.add_column("band")
    for column in ("missing", "rms error", "of column mean", "typical sd", "within 1 sd"):
        table.add_column(column, justify="right")
    for row in bands:
        table.add_row(
            row["band"],
            f"{row['missing']:.0%}",
            f"{row['rms_error']:.2f}",
            f"{row['rms_error_of_column_mean']:.2f}",
            f"{row['typical_sd']:.2f}",
            f"{row['within_one_sd']:.0%}",
        )
    return table
