"""The steps of the demo, as commands; small numbers, so that two cores need minutes only."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

PAGE, TITLE = "report.html", "A simulated field of the LMC"
SURVEYS = {
    "sage": ("m36", "m45", "m58", "m80"),
    "two_mass": ("J", "H", "K"),
    "ubvi": ("U", "B", "I"),
}
# Of the paper's fourteen those that need no period: finding periods takes most of the time.
VARIABILITY = ("car_sigma", "car_tau", "sigma", "eta", "con", "stetson_l", "cusum", "color")
LABEL = "class_truth"


class Step(NamedTuple):
    """A command, what it is for, where its stdout goes, and whether that is worth reading."""

    title: str
    words: tuple[str, ...]
    into: Path | None = None
    speaks: bool = True

    @property
    def typed(self) -> str:
        """The step as a user would type it."""
        into = f" > {shlex.quote(str(self.into))}" if self.into else ""
        return shlex.join(("skyfill", *self.words)) + into


def feature_names() -> str:
    """Name the columns of the joined table that are learned, with commas between them."""
    bands = [f"{band}_{name}" for name, all_bands in SURVEYS.items() for band in all_bands]
    return ",".join(["V", "R", *bands, *(f"{name}_lc" for name in VARIABILITY)])


def steps(folder: Path, n_objects: int, seed: int) -> list[Step]:
    """Give the demo's commands, in order, with files in `folder`."""
    training, field, model = folder / "training", folder / "field", folder / "lmc.skyfill"
    return [
        _simulate("objects of known class", training, "--training", f"--seed={seed}"),
        _simulate(
            "a field with twenty times the sky's share of variables",
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


def _simulate(what: str, folder: Path, *words: str) -> Step:
    line = ("data", "simulate", str(folder), "--light-curves", *words)
    return Step(f"simulate {what}", line, speaks=False)


def _features(folder: Path) -> Step:
    chosen = ("--set", ",".join(VARIABILITY), "--first-band")
    line = ("features", str(folder / "light_curves.parquet"), *chosen)
    title = f"features of the light curves: {folder.name}"
    return Step(title, (*line, "-o", str(folder / "lc.parquet")))


def _match(what: str, folder: Path, *more: str) -> Step:
    files = ("macho.csv", "sage.fits", "two_mass.vot", "ubvi.csv", "lc.parquet", *more)
    line = ("match", *(str(folder / file) for file in files), "--id", "lc=id")
    rules = ("--schema", f"ubvi={folder / 'ubvi.toml'}", "-o", str(folder / "joined.parquet"))
    return Step(f"match the four catalogues: {what}", (*line, *rules))


def _train(table: Path, model: Path, seed: int) -> Step:
    what = ("--label", LABEL, "--features", feature_names())
    small = ("--components", "6", "--fits", "1", "--method", "forest", "--trees", "60")
    how = ("--gaps", "informative", *small)
    line = ("train", str(table), *what, *how, "--seed", str(seed), "-o", str(model))
    return Step("learn to fill gaps and to classify", line)


def _hide(table: Path, into: Path, seed: int) -> Step:
    methods = ("--methods", "mean,mixture,knn,network-quick", "--rates", "10", "--repeats", "1")
    line = ("evaluate", str(table), "--features", feature_names(), *methods)
    title = "hide one cell in ten and fill it: how far off is each method?"
    return Step(title, (*line, "--seed", str(seed), "--json"), into)


def _evaluate(table: Path, into: Path, seed: int) -> Step:
    what = ("--label", LABEL, "--features", feature_names())
    small = ("--methods", "paper,skyfill-quick", "--folds", "2", "--seed", str(seed), "--json")
    title = "cross-validate: the paper's pipeline, and ours (a small one)"
    return Step(title, ("evaluate", str(table), *what, *small), into)


def _use(folder: Path, model: Path) -> list[Step]:
    joined, results = str(folder / "field" / "joined.parquet"), str(folder / "classified.parquet")
    lists = ("--compare", str(folder / "field" / "candidates.csv"), "--model", str(model))
    missing = ("--missing", str(folder / "missing.csv"))
    quasars = ("--class", "QSO", "--min-probability", "0.5", *lists, *missing)
    scores = [str(folder / name) for name in ("filling.json", "classes.json")]
    page = ("--evaluation", scores[0], "--evaluation", scores[1], "--title", TITLE)
    return [
        Step("classify the field", ("classify", str(model), joined, "-o", results)),
        Step(
            "quasar candidates, compared with a published list",
            ("candidates", results, *quasars, "-o", str(folder / "quasars.fits")),
        ),
        Step("the page", ("report", str(model), results, *page, "-o", str(folder / PAGE))),
    ]
