"""Golden: files that astropy, pandas and STILTS write are read, and they read ours."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from astropy import units
from astropy.table import MaskedColumn
from astropy.table import Table as AstropyTable

from skyfill.catalog import ColumnInfo, Reason, Role, Table, read_table, write_table

needs_stilts = pytest.mark.skipif(shutil.which("stilts") is None, reason="stilts is not installed")

TRUTH = {
    "id": ["a1", None, "c3"],
    "n": [7, None, -3],
    "J": [14.25, None, 15.5],
    "seen": [True, False, True],
}


@pytest.fixture
def masked():
    """Give a table as TOPCAT users know it: every kind of column with a masked cell."""
    table = AstropyTable(masked=True)
    table["id"] = MaskedColumn(["a1", "", "c3"], mask=[0, 1, 0])
    table["n"] = MaskedColumn(np.array([7, 0, -3], "i4"), mask=[0, 1, 0])
    table["J"] = MaskedColumn([14.25, np.nan, 15.5], mask=[0, 1, 0], unit="mag")
    table["J"].description = "J magnitude"
    table["J"].info.meta = {"ucd": "phot.mag;em.IR.J"}
    table["seen"] = [True, False, True]
    return table


@pytest.fixture
def ours():
    return Table.from_columns(
        {**TRUTH, "seen": [True, None, False]},
        info={"J": ColumnInfo("mag", "phot.mag;em.IR.J", "J magnitude", Role.FEATURE)},
    ).with_reasons("J", [None, Reason.UNDETECTED, None])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("t.fits", {}),
        ("t.vot", {"format": "votable", "tabledata_format": "tabledata"}),
        ("t.vot", {"format": "votable", "tabledata_format": "binary2"}),
        ("t.ecsv", {}),
        ("t.ecsv", {"delimiter": ","}),
        ("t.csv", {}),
        ("t.parquet", {}),
    ],
)
def test_masked_columns_of_astropy_are_gaps(name, how, masked, tmp_path):
    masked.write(tmp_path / name, **how)
    table = read_table(tmp_path / name)
    assert {name: table.column(name).to_pylist() for name in TRUTH} == TRUTH
    if name != "t.csv":
        assert table.info("J").unit == "mag"
        assert table.info("J").description == "J magnitude"
    if name not in ("t.csv", "t.vot"):
        assert table.info("J").ucd == "phot.mag;em.IR.J"


def test_integer_types_of_astropy_are_kept(tmp_path):
    kinds = ["i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
    table = AstropyTable({kind: np.array([1, 2], kind) for kind in kinds})
    table["u8"][0] = 2**64 - 1
    table["u2"][0] = 65535
    table.write(tmp_path / "t.fits")
    found = read_table(tmp_path / "t.fits")
    expected = [pa.from_numpy_dtype(np.dtype(kind)) for kind in kinds]
    assert found.arrow.schema.types == expected
    assert found.arrow.to_pydict() == {k: table[k].tolist() for k in kinds}


def test_nullable_columns_of_pandas_are_read(tmp_path):
    frame = pd.DataFrame(
        {
            "n": pd.array([7, None], dtype="Int32"),
            "flag": pd.array([True, None], dtype="boolean"),
            "word": pd.array(["x", None], dtype="string"),
            "kind": pd.Categorical(["RRL", None]),
            "J": [np.nan, 1.5],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    truth = {
        "n": [7, None],
        "flag": [True, None],
        "word": ["x", None],
        "kind": ["RRL", None],
        "J": [None, 1.5],
    }
    table = read_table(tmp_path / "t.parquet")
    assert table.arrow.to_pydict() == truth
    assert table.arrow.schema.field("kind").type == pa.string()
    assert read_table(tmp_path / "t.csv").arrow.to_pydict() == truth


def test_pandas_reads_our_csv_and_parquet(ours, tmp_path):
    write_table(ours, tmp_path / "t.csv")
    write_table(ours, tmp_path / "t.parquet")
    frames = [pd.read_csv(tmp_path / "t.csv"), pd.read_parquet(tmp_path / "t.parquet")]
    for frame in frames:
        assert frame["J"].isna().tolist() == [False, True, False]
        assert frame["id"].tolist()[::2] == ["a1", "c3"]
        assert frame["J_gap"].tolist()[1] == "undetected"


@pytest.mark.parametrize("name", ["t.fits", "t.vot", "t.ecsv"])
# astropy has no null for FITS logicals and says so.
@pytest.mark.filterwarnings("ignore:Column 'seen' contains NULL")
def test_astropy_reads_what_we_write(name, ours, tmp_path):
    write_table(ours, tmp_path / name)
    reader = {"t.vot": "votable"}.get(name)
    found = AstropyTable.read(tmp_path / name, format=reader)
    assert found["n"].filled(0).tolist() == [7, 0, -3]
    assert np.ma.getmaskarray(found["n"]).tolist() == [False, True, False]
    assert found["J"].filled(-1.0).tolist() == [14.25, -1.0, 15.5]
    assert found["J"].unit == units.mag
    # Of TCOMMn astropy takes no notice.
    assert found["J"].description == (None if name == "t.fits" else "J magnitude")


@needs_stilts
@pytest.mark.parametrize("extension", ["fits", "vot"])
@pytest.mark.parametrize("out", ["fits", "votable-binary2", "votable-binary", "votable", "ecsv"])
def test_stilts_reads_ours_and_we_read_what_it_writes(extension, out, ours, tmp_path):
    source, target = tmp_path / f"in.{extension}", tmp_path / "out.dat"
    write_table(ours, source)
    target = target.with_suffix({"fits": ".fits", "ecsv": ".ecsv"}.get(out, ".vot"))
    subprocess.run(["stilts", "tcopy", f"in={source}", f"out={target}", f"ofmt={out}"], check=True)
    found = read_table(target)
    for name in ours.names:
        assert found.column(name).to_pylist() == ours.column(name).to_pylist(), name
    assert found.info("J").unit == "mag"
    assert found.info("J").ucd == "phot.mag;em.IR.J"
    assert found.info("J").description == "J magnitude"


@needs_stilts
def test_stilts_sees_nulls_units_and_provenance(ours, tmp_path):
    write_table(ours.with_meta(citation="Jones 2017"), tmp_path / "t.vot")
    said = subprocess.run(
        ["stilts", "tpipe", f"in={tmp_path / 't.vot'}", "omode=meta"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "Jones 2017" in said
    assert "phot.mag;em.IR.J" in said
