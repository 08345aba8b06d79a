"""`skyfill train`: a model from a catalogue with gaps."""

import json
from pathlib import Path
from typing import Any

import click


@click.command(
    "train",
    epilog="Example: skyfill train joined.parquet --features J,H,K,V,I --gaps auto -o lmc.skyfill",
)
@click.argument("catalog", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option(
    "--features", metavar="COLUMN,...", help="Columns to learn; else those of role feature."
)
@click.option(
    "--schema", type=click.Path(path_type=Path), help="TOML with roles, units, sentinels."
)
@click.option("--components", metavar="N|auto", default="auto", show_default=True)
@click.option(
    "--arcs",
    type=click.Choice(["full", "shared", "own", "auto"]),
    default="full",
    show_default=True,
    help="Full covariances, one graph for all components, or one each.",
)
@click.option(
    "--gaps",
    type=click.Choice(["ignorable", "informative", "auto"]),
    default="ignorable",
    show_default=True,
    help="Whether the pattern of gaps tells about an object.",
)
@click.option("--fits", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write what was learned as JSON.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Learn a model of the features of CATALOG in spite of its gaps."""
    from rich.console import Console

    from skyfill.catalog import Provenance, read_table
    from skyfill.cli.match import as_typed
    from skyfill.model import save_model, train

    table = read_table(options["catalog"], schema=options["schema"])
    names, guessed = _features(table, options["features"])
    click.echo(f"features{' (guessed)' if guessed else ''}: {', '.join(names)}", err=True)
    made = Provenance(as_typed(context), inputs=[options["catalog"]], seed=options["seed"])
    with Console(stderr=True).status("learning"):
        model, learned = train(
            table,
            names,
            provenance=json.loads(made.to_json()),
            n_components=_components(options["components"]),
            arcs=options["arcs"],
            gaps=options["gaps"],
            n_fits=options["fits"],
            rng=options["seed"],
        )
    save_model(model, options["output"])
    if options["as_json"]:
        trials = [{**plan._asdict(), "held_out": score} for plan, score in learned.trials]
        facts = {"model": model.identifier, "plan": learned.plan._asdict(), "trials": trials}
        click.echo(json.dumps(facts, indent=2))
    plan = learned.plan
    click.echo(
        f"{len(table)} rows, {len(names)} features: {options['fits']} fits of about "
        f"{plan.n_components} components -> {options['output']} (model {model.identifier})",
        err=True,
    )


def _features(table: Any, asked: str | None) -> tuple[tuple[str, ...], bool]:
    """Columns asked for, or of role feature; guessed roles only where no role is set."""
    from skyfill.catalog import Role, with_guessed_roles
    from skyfill.errors import CatalogError

    if asked:
        names = tuple(name.strip() for name in asked.split(","))
        for name in names:
            table.column(name)
        return names, False
    names = table.names_with(Role.FEATURE)
    if names:
        return names, False
    guessed = with_guessed_roles(table).names_with(Role.FEATURE)
    if not guessed:
        raise CatalogError("no column looks like a feature; name them with --features COLUMN,...")
    return guessed, True


def _components(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdigit() or int(text) < 1:
        raise click.BadParameter(
            f"{text!r} is neither a number from 1 nor auto", param_hint="--components"
        )
    return int(text)
