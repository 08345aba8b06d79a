"""Footprints from files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skyfill.errors import CatalogError
from skyfill.sky import read_footprint

mocpy = pytest.importorskip("mocpy")


@pytest.mark.parametrize(("suffix", "kind"), [("fits", "fits"), ("json", "json")])
def test_a_written_footprint_covers_what_it_covered(tmp_path: Path, suffix: str, kind: str):
    path = tmp_path / f"survey.{suffix}"
    mocpy.MOC.from_string("0/1").save(path, format=kind)
    ra, dec = np.array([135.0, 315.0, -45.0, np.nan]), np.array([45.0, 45.0, -45.0, 0.0])
    assert_array_equal(read_footprint(path).covers(ra, dec), [True, False, False, False])


def test_a_file_that_is_no_moc_is_refused(tmp_path: Path):
    path = tmp_path / "no.fits"
    path.write_text("not a map")
    with pytest.raises(CatalogError, match=r"no\.fits: not a MOC in FITS format"):
        read_footprint(path)
    with pytest.raises(CatalogError, match="no such file"):
        read_footprint(tmp_path / "absent.fits")


def test_without_mocpy_the_message_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mocpy", None)
    with pytest.raises(CatalogError, match=r"pip install 'skyfill\[moc\]'"):
        read_footprint(tmp_path / "survey.fits")
