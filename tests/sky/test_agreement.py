"""Pairs of independent programs: astropy and STILTS."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.sky import match_positions
from tests.sky.fields import pairs_of, scattered


def test_best_agrees_with_astropy():
    from astropy import units as u
    from astropy.coordinates import SkyCoord

    a, b = scattered(3000, 1, width=0.04), scattered(2000, 2, width=0.04)
    index, angle, _ = SkyCoord(*a, unit="deg").match_to_catalog_sky(SkyCoord(*b, unit="deg"))
    inside = angle <= 4 * u.arcsec
    found = match_positions(*a, *b, 4.0, keep="best")
    assert_array_equal(found.left, np.flatnonzero(inside))
    assert_array_equal(found.right, index[inside])
    assert_allclose(found.separation_arcsec, angle[inside].arcsec, atol=1e-8)


def stilts_pairs(a, b, radius: float, find: str, *, folder: Path) -> set[tuple[int, int]]:
    from astropy.table import Table

    for name, (ra, dec) in {"a": a, "b": b}.items():
        columns = {"ra": ra, "dec": dec, f"row_{name}": np.arange(len(ra))}
        Table(columns).write(folder / f"{name}.fits", overwrite=True)
    words = ["in1=a.fits", "in2=b.fits", "matcher=sky", "values1=ra dec", "values2=ra dec",
             f"params={radius}", f"find={find}", "join=1and2", "out=pairs.fits"]  # fmt: skip
    subprocess.run(
        ["stilts", "tmatch2", *words, "progress=none"], cwd=folder, check=True, capture_output=True
    )
    pairs = Table.read(folder / "pairs.fits")
    return set(zip(pairs["row_a"].tolist(), pairs["row_b"].tolist(), strict=True))


@pytest.mark.skipif(shutil.which("stilts") is None, reason="STILTS is not installed")
@pytest.mark.parametrize(
    ("n1", "n2", "find", "keep"),
    [
        (3000, 1000, "best", "symmetric"),
        (2900, 3000, "best", "symmetric"),
        (1000, 9000, "best", "symmetric"),
        (3000, 2000, "best1", "best"),
        (3000, 2000, "all", "all"),
    ],
)
def test_pairs_are_those_of_stilts_in_a_crowded_field(n1, n2, find, keep, tmp_path: Path):
    a, b = scattered(n1, 3, width=0.04), scattered(n2, 4, width=0.04)
    found = match_positions(*a, *b, 4.0, keep=keep)
    assert len(found) > n1 / 5
    assert set(pairs_of(found)) == stilts_pairs(a, b, 4.0, find, folder=tmp_path)
