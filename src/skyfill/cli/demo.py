"""`skyfill demo`: every step from catalogues to a page, on a simulated field of the LMC."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click

from skyfill.cli import options
from skyfill.cli.demo_files import claim_folder
from skyfill.cli.demo_steps import PAGE, Step, steps
from skyfill.cli.notes import note


@click.command("demo", epilog=options.examples("skyfill demo", "skyfill demo -o lmc --seed 1"))
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    default=Path("skyfill-demo"),
    show_default=True,
    help="Folder to write to; only what an earlier demo wrote is replaced.",
)
@click.option(
    "--objects",
    type=click.IntRange(min=100),
    default=2000,
    show_default=True,
    help="Objects of the field that is classified.",
)
@options.seed("Seed of the field and of all that is learned from it.")
@options.as_json("the commands with their times")
@click.pass_context
def command(
    context: click.Context, /, output: Path, objects: int, seed: int, as_json: bool
) -> None:
    """Simulate a field of the Large Magellanic Cloud and do everything with it.

    Four catalogues are simulated, their light curves turned into features, matched on the sky;
    a model learns to fill their gaps and to classify; the field is classified and its quasar
    candidates compared with a published list. Each step is a command that you could type.
    """
    planned = steps(output, objects, seed)
    claim_folder(output, planned)
    times: dict[str, float] = {}
    for number, step in enumerate(planned, start=1):
        note(f"\n[{number}/{len(planned)}] {step.title}\n$ {step.typed}")
        start = time.perf_counter()
        _run(context.find_root(), step, quiet=as_json)
        times[step.typed] = round(time.perf_counter() - start, 1)
    if as_json:
        click.echo(json.dumps({"folder": str(output), "seconds": times}, indent=2))
    _say_what_next(output, sum(times.values()))


def _run(root: click.Context, step: Step, *, quiet: bool) -> None:
    """Run a step through the command that a user would type."""
    group = root.command
    found = group.get_command(root, step.words[0]) if isinstance(group, click.Group) else None
    if found is None:
        raise click.UsageError(f"no command {step.words[0]!r}")
    said = StringIO()
    hide = quiet or step.into or not step.speaks
    inside = found.make_context(step.words[0], list(step.words[1:]), parent=root)
    with redirect_stdout(said) if hide else nullcontext(), inside as context:
        found.invoke(context)
    if step.into:
        _keep(step.into, said.getvalue())


def _keep(path: Path, text: str) -> None:
    from skyfill.catalog.file_io import open_atomic

    with open_atomic(path) as stream:
        stream.write(text.encode())
    for line in _scores(json.loads(text)):
        note(line)


def _scores(facts: dict[str, Any]) -> list[str]:
    """Give one line for each method that was compared, at filling or at classifying."""
    if "runs" in facts:
        return [f"{run['method']}: error {run['nrmse']:.3f} of the spread" for run in facts["runs"]]
    return [
        f"{method['method']}: F1 {method['macro_f']['value']:.3f} over classes, "
        f"log loss {method['log_loss']['value']:.3f}"
        for method in facts["methods"]
    ]


def _say_what_next(folder: Path, seconds: float) -> None:
    at = shlex.quote(str(folder))
    note(
        f"""
done in {seconds:.0f} s. Look at
  {at}/{PAGE}  in a browser: gaps, network, classes, every object
  {at}/quasars.fits  the candidates, the surest first
  {at}/missing.csv  published candidates that are not among them, and why
Type next
  skyfill show {at}/lmc.skyfill
  skyfill next {at}/lmc.skyfill {at}/quasars.fits --by survey
  skyfill inspect YOUR_CATALOG
  skyfill match --help"""
    )
