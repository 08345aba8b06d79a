"""`skyfill demo`: every step from catalogues to a page, on a simulated field of the LMC."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click

from skyfill.cli import options
from skyfill.cli.terminal import note, write_json
from skyfill.errors import SkyfillError

PAGE, TITLE = "report.html", "A simulated field of the LMC"
SURVEYS = {
    "sage": ("m36", "m45", "m58", "m80"),
    "two_mass": ("J", "H", "K"),
    "ubvi": ("U", "B", "I"),
}
# Those of the paper's fourteen that need no period, since finding periods takes most of the time.
VARIABILITY = ("car_sigma", "car_tau", "sigma", "eta", "con", "stetson_l", "cusum", "color")
LABEL = "class_truth"
# The list of files written by the demo, which replaces only these.
MANIFEST, MAKER = "demo.json", "skyfill demo"


@click.command("demo", epilog=options.examples("skyfill demo", "skyfill demo -o lmc --seed 1"))
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    default=Path("skyfill-demo"),
    show_default=True,
    help="Output folder; only files written by an earlier demo are replaced.",
)
@options.count("--objects", 2000, "Number of objects in the field to be classified.", least=100)
@options.seed("Seed for the field and for everything learned from it.")
@options.as_json("the commands with their times")
@click.pass_context
def command(
    context: click.Context, /, output: Path, objects: int, seed: int, as_json: bool
) -> None:
    """Simulate a field of the Large Magellanic Cloud and run every step on it.

    Four catalogues are simulated, their light curves reduced to features, and all are matched on
    the sky. A model learns to fill their gaps and to classify. The field is then classified and
    its quasar candidates are compared with a published list. Each step is a command that you
    could type yourself.
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
        write_json({"folder": str(output), "seconds": times})
    _suggest(output, sum(times.values()))


def _run(root: click.Context, step: DemoStep, *, quiet: bool) -> None:
    """Run a step as the command that a user would type."""
    group = root.command
    found = group.get_command(root, step.words[0]) if isinstance(group, click.Group) else None
    if found is None:
        raise click.UsageError(f"no command {step.words[0]!r}")
    said = StringIO()
    hide = quiet or step.into or not step.is_shown
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
    """Return one line for each method compared, for filling or for classifying."""
    if "runs" in facts:
        return [f"{run['method']}: NRMSE {run['nrmse']:.3f}" for run in facts["runs"]]
    return [
        f"{method['method']}: F1 {method['macro_f']['value']:.3f} over classes, "
        f"log loss {method['log_loss']['value']:.3f}"
        for method in facts["methods"]
    ]


def _suggest(folder: Path, seconds: float) -> None:
    at = shlex.quote(str(folder))
    note(
        f"""
Done in {seconds:.0f} s. Look at
  {at}/{PAGE}  in a browser: gaps, network, classes, every object
  {at}/quasars.fits  the candidates, most probable first
  {at}/missing.csv  published candidates that are not among them, and why
The measurement that would settle each candidate
  skyfill next {at}/lmc.skyfill {at}/quasars.fits --by survey
Now your own table: columns of numbers with gaps, and a column of classes
  skyfill train stars.csv --label class -o m.skyfill
  skyfill classify m.skyfill others.csv -o classes.csv
  skyfill report m.skyfill classes.csv -o page.html"""
    )


def claim_folder(folder: Path, steps: Iterable[DemoStep]) -> None:
    """Make the folder and record what will be written; never replace files of other origin.

    Raises
    ------
    SkyfillError
        If there is a file of such a name that was not written by an earlier demo.
    """
    if folder.exists() and not folder.is_dir():
        raise SkyfillError(f"{folder}: is not a folder; choose another one with -o FOLDER")
    own, planned = _noted(folder), sorted(_outputs(folder, steps))
    for name in (MANIFEST, *planned):
        if name not in own and (folder / name).exists():
            raise SkyfillError(
                f"{folder / name}: was not made by skyfill demo; choose another folder with "
                "-o FOLDER, or move the file away"
            )
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"made by": MAKER, "files": [MANIFEST, *planned]}
    (folder / MANIFEST).write_text(json.dumps(facts, indent=1))


def _noted(folder: Path) -> set[str]:
    """Names of the files that an earlier demo has written here."""
    try:
        facts = json.loads((folder / MANIFEST).read_text())
        return set(facts["files"]) if facts["made by"] == MAKER else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _outputs(folder: Path, steps: Iterable[DemoStep]) -> set[str]:
    from skyfill.datasets.field.observing import SURVEYS
    from skyfill.datasets.field.write import FILES

    simulated = [*FILES.values(), "ubvi.toml", *(f"{name}.moc.fits" for name in SURVEYS)]
    paths: set[Path] = set()
    for step in steps:
        after = dict(zip(step.words, step.words[1:], strict=False))
        paths |= {Path(after[flag]) for flag in ("-o", "--missing") if flag in after}
        paths |= {step.into} if step.into else set()
        if step.words[:2] == ("data", "simulate"):
            paths |= {Path(step.words[2]) / name for name in simulated}
    return {str(path.relative_to(folder)) for path in paths}


class DemoStep(NamedTuple):
    """A command, its purpose, where its stdout goes, and whether to show it."""

    title: str
    words: tuple[str, ...]
    into: Path | None = None
    is_shown: bool = True

    @property
    def typed(self) -> str:
        """The step as a user would type it."""
        into = f" > {shlex.quote(str(self.into))}" if self.into else ""
        return shlex.join(("skyfill", *self.words)) + into


def feature_names() -> str:
    """List the columns of the joined table used as features, separated by commas."""
    bands = [f"{band}_{name}" for name, all_bands in SURVEYS.items() for band in all_bands]
    return ",".join(["V", "R", *bands, *(f"{name}_lc" for name in VARIABILITY)])


def steps(folder: Path, n_objects: int, seed: int) -> list[DemoStep]:
    """Return the commands of the demo in order, with files in `folder`."""
    training, field, model = folder / "training", folder / "field", folder / "lmc.skyfill"
    return [
        _simulate("objects of known class", training, "--training", f"--seed={seed}"),
        _simulate(
            "a field with twenty times as many variables as in the sky",
            field,
            f"--objects={n_objects}",
            "--variables=20",
            f"--seed={seed + 1}",
        ),
        *(_features(part) for part in (training, field)),
        _match("the known objects", training, "truth.parquet"),
        _match("the field", field),
        _train(training / "joined.parquet", model, seed),
        _hide(training / "joined.parquet", folder / "filling.json", seed),
        _evaluate(training / "joined.parquet", folder / "classes.json", seed),
        *_use(folder, model),
    ]


def _simulate(what: str, folder: Path, *words: str) -> DemoStep:
    line = ("data", "simulate", str(folder), "--light-curves", *words)
    return DemoStep(f"simulate {what}", line, is_shown=False)


def _features(folder: Path) -> DemoStep:
    chosen = ("--set", ",".join(VARIABILITY), "--first-band")
    line = ("features", str(folder / "light_curves.parquet"), *chosen)
    title = f"features of the light curves: {folder.name}"
    return DemoStep(title, (*line, "-o", str(folder / "lc.parquet")))


def _match(what: str, folder: Path, *more: str) -> DemoStep:
    files = ("macho.ecsv", "sage.fits", "two_mass.vot", "ubvi.ecsv", "lc.parquet", *more)
    line = ("match", *(str(folder / file) for file in files), "--id", "lc=id")
    rules = ("--schema", f"ubvi={folder / 'ubvi.toml'}", "-o", str(folder / "joined.parquet"))
    return DemoStep(f"match the four catalogues: {what}", (*line, *rules))


def _train(table: Path, model: Path, seed: int) -> DemoStep:
    what = ("--label", LABEL, "--features", feature_names())
    small = ("--components", "6", "--fits", "1", "--method", "forest", "--trees", "60")
    how = ("--gaps", "informative", "--refine", "off", *small)
    line = ("train", str(table), *what, *how, "--seed", str(seed), "-o", str(model))
    return DemoStep("train a model that fills gaps and classifies", line)


def _hide(table: Path, into: Path, seed: int) -> DemoStep:
    methods = ("--methods", "mean,mixture,knn,skyfill-quick", "--rates", "10", "--repeats", "1")
    line = ("evaluate", str(table), "--features", feature_names(), *methods)
    title = "hide one cell in ten and measure how well each method fills it"
    return DemoStep(title, (*line, "--seed", str(seed), "--json"), into)


def _evaluate(table: Path, into: Path, seed: int) -> DemoStep:
    what = ("--label", LABEL, "--features", feature_names())
    small = ("--methods", "paper,skyfill-quick", "--folds", "2", "--seed", str(seed), "--json")
    title = "cross-validate the paper's pipeline and a small version of ours"
    return DemoStep(title, ("evaluate", str(table), *what, *small), into)


def _use(folder: Path, model: Path) -> list[DemoStep]:
    joined, results = str(folder / "field" / "joined.parquet"), str(folder / "classified.parquet")
    lists = ("--compare", str(folder / "field" / "candidates.ecsv"), "--model", str(model))
    missing = ("--missing", str(folder / "missing.csv"))
    quasars = ("--class", "QSO", "--min-probability", "0.5", *lists, *missing)
    scores = [str(folder / name) for name in ("filling.json", "classes.json")]
    page = ("--evaluation", scores[0], "--evaluation", scores[1], "--title", TITLE)
    return [
        DemoStep("classify the field", ("classify", str(model), joined, "-o", results)),
        DemoStep(
            "quasar candidates, compared with a published list",
            ("candidates", results, *quasars, "-o", str(folder / "quasars.fits")),
        ),
        DemoStep("the page", ("report", str(model), results, *page, "-o", str(folder / PAGE))),
    ]
