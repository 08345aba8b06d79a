"""Agreement with nway (extra `compare`) on its own geometric test."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.catalog import Table, read_table
from skyfill.sky.associations import Associations, associate
from skyfill.sky.ellipses import Sources, circles
from skyfill.sky.posterior import probabilities, summarize

AREA_ARCSEC2 = 0.01 * 3600**2
COMPLETENESS = {"R": 0.9, "O": 0.7}
NAMES = {"X": "CHANDRA", "R": "XMM", "O": "OPT"}


@pytest.fixture(scope="module")
def folder() -> Path:
    place = Path(os.environ.get("SKYFILL_DATA", "nowhere")) / "nway"
    if not place.is_dir():
        pytest.skip("SKYFILL_DATA does not name a folder with nway/")
    if shutil.which("nway.py") is None:
        pytest.skip("nway is not installed (extra compare)")
    return place


def sources(folder: Path, key: str) -> Sources:
    table = read_table(folder / f"randomcat{key}.fits")
    columns = ["RA", "DEC"] if key == "O" else ["RA", "DEC", "pos_err"]
    ra, dec, *errors = table.numbers(*columns).T
    return Sources(ra, dec, circles(errors[0] if errors else np.full(len(ra), 0.1)))


def run_nway(folder: Path, keys: str, radius: float, out: Path, *options: str) -> Table:
    files = [(str(folder / f"randomcat{k}.fits"), "0.1" if k == "O" else ":pos_err") for k in keys]
    shares = ":".join(str(COMPLETENESS[k]) for k in keys[1:])
    command = ["nway.py", *(word for file in files for word in file), "--radius", str(radius)]
    command += ["--prior-completeness", shares, "--out", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, cwd=out.parent)
    return read_table(out)


def run_skyfill(
    folder: Path, keys: str, radius: float, rest: str
) -> tuple[Associations, np.ndarray]:
    base, *surveys = (sources(folder, key) for key in keys)
    # nway adds one to each number of sources, and leaves the factors 1 - c out of its priors.
    density = [(len(survey) + 1) / AREA_ARCSEC2 for survey in surveys]
    found = associate(base, surveys, density, [radius] * len(surveys), rest=rest)
    odds = np.array([COMPLETENESS[key] for key in keys[1:]])
    return found, probabilities(found, odds / (1 + odds))


@pytest.mark.parametrize(
    ("keys", "radius", "rest", "options"),
    [
        ("XO", 20.0, "sum", ()),
        ("XRO", 12.0, "ignore", ("--ignore-unrelated-associations",)),
        ("XRO", 12.0, "best", ()),
    ],
)
def test_p_any_and_p_i_agree_to_a_thousandth(folder, tmp_path, keys, radius, rest, options):
    theirs = run_nway(folder, keys, radius, tmp_path / "nway.fits", *options)
    found, p = run_skyfill(folder, keys, radius, rest)
    best = summarize(found, p)
    ids = theirs.numbers(*(f"{NAMES[key]}_ID" for key in keys)).astype(int)
    their_any = dict(zip(ids[:, 0], theirs.numbers("p_any")[:, 0], strict=True))
    assert_allclose([their_any[i + 1] for i in range(found.n_base)], best.p_any, atol=1e-3)
    their_p = dict(zip(map(tuple, ids.tolist()), theirs.numbers("p_i")[:, 0], strict=True))
    relative = np.where((found.rows >= 0).any(axis=1), p, 0) / best.p_any[found.base]
    rows = np.column_stack([found.base, found.rows])
    ours = zip(np.where(rows >= 0, rows + 1, -99).tolist(), relative, strict=True)
    shared = [(their_p[tuple(row)], mine) for row, mine in ours if tuple(row) in their_p]
    assert len(shared) > 0.95 * len(found)
    assert_allclose(*zip(*shared, strict=True), atol=1e-3)
