"""`skyfill match --probability`: tables, report, figure, and mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli.main import main

ARC = 1 / 3600


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A hundred objects, eighty of them with a bright counterpart among faint field sources."""
    folder = tmp_path_factory.mktemp("sky")
    rng = np.random.default_rng(1)
    n, n_field = 100, 3000
    ra, dec = rng.uniform(10, 10.5, n), rng.uniform(0, 0.5, n)
    survey = {
        "ra": np.append(ra[:80], rng.uniform(10, 10.5, n_field)),
        "dec": np.append(dec[:80], rng.uniform(0, 0.5, n_field)),
        "R": np.append(rng.normal(19, 0.5, 80), rng.normal(22, 1, n_field)),
        "err": np.full(80 + n_field, 0.1),
    }
    base = {
        "name": [f"x{i}" for i in range(n)],
        "ra": ra + rng.normal(0, 3, n) * ARC,
        "dec": dec + rng.normal(0, 3, n) * ARC,
        "pos_err": np.full(n, 3.0),
    }
    write_table(Table.from_columns(base), folder / "x.fits")
    write_table(Table.from_columns(survey), folder / "opt.fits")
    return folder


def run(*words) -> Result:
    return CliRunner().invoke(main, ["match", *map(str, words)])


def both(folder: Path, *words) -> Result:
    stated = ("--probability", "--error", "opt=err", "-o", folder / "best.parquet")
    return run(folder / "x.fits", folder / "opt.fits", *stated, *words)


def test_magnitudes_find_the_counterparts(folder: Path):
    done = both(folder, "--bands", "opt=R", "--all", folder / "all.parquet")
    assert done.exit_code == 0, done.output
    best, every = read_table(folder / "best.parquet"), read_table(folder / "all.parquet")
    assert len(best) == 100
    bright = best.numbers("R_opt")[:80, 0] < 21
    assert bright.mean() > 0.9
    assert best.numbers("p_any")[:80].mean() > best.numbers("p_any")[80:].mean() + 0.3
    sums = np.bincount(
        every.numbers("base_row")[:, 0].astype(int), every.numbers("prob_association")[:, 0]
    )
    np.testing.assert_allclose(sums, 1.0)
    assert "secure" in done.stdout


def test_a_wanted_false_rate_sets_the_threshold_and_a_figure_shows_it(folder: Path):
    pytest.importorskip("matplotlib")
    figure = folder / "purity.png"
    done = both(folder, "--photometry", "none", "--false-rate", "0.1", "--figure", figure, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    flags = read_table(folder / "best.parquet").column("flag").to_pylist()
    p_any = read_table(folder / "best.parquet").numbers("p_any")[:, 0]
    accepted = p_any >= report["threshold"]
    assert report["flags"]["none"] == flags.count("none") == np.count_nonzero(~accepted)
    assert figure.stat().st_size > 1000


def test_known_counterparts_may_come_from_a_table(folder: Path):
    rng = np.random.default_rng(2)
    write_table(Table.from_columns({"R_opt": rng.normal(19, 0.5, 300)}), folder / "known.csv")
    done = both(folder, "--bands", "opt=R", "--prior-from", folder / "known.csv")
    assert done.exit_code == 0, done.output
    bright = read_table(folder / "best.parquet").numbers("R_opt")[:80, 0] < 21
    assert bright.mean() > 0.9
    write_table(Table.from_columns({"R": [19.0]}), folder / "wrong.csv")
    refused = both(folder, "--bands", "opt=R", "--prior-from", folder / "wrong.csv")
    assert refused.exit_code == 2
    assert "no column 'R_opt'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--error", "base=0"), "row 1: the position error is 0"),
        (("--error", "base=nothing"), "nothing"),
        (("--completeness", "opt=1.5"), "a share between 0 and 1"),
        (("--area", "opt=0"), "an area of 0 square degrees"),
        (("--keep", "all"), "--all FILE"),
        (("--id", "opt=name"), "no probability"),
        (("--bands", "opt=mag"), "mag"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(folder: Path, words, message: str):
    out = folder / "never.parquet"
    done = run(folder / "x.fits", folder / "opt.fits", "--probability", "-o", out, *words,
               *(("--error", "opt=err") if "opt=err" not in words else ()))  # fmt: skip
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not out.exists()


def test_options_of_probability_are_refused_without_it(folder: Path):
    done = run(folder / "x.fits", folder / "opt.fits", "--error", "opt=1", "-o", folder / "no.csv")
    assert done.exit_code == 2
    assert "--error: only with --probability" in done.stderr


@pytest.mark.filterwarnings("always::skyfill.sky.CounterpartWarning")
def test_a_radius_below_the_errors_is_a_warning(folder: Path):
    done = both(folder, "--photometry", "none", "--radius", "5")
    assert done.exit_code == 0
    assert "below 3 standard deviations for 100 of 100 objects" in done.stderr
