"""Memory and time are bounded before they are spent, and every bound can be raised."""

import gzip
import io

import numpy as np
import pytest
from astropy.io import fits
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError, SkyfillError
from skyfill.limits import LIMITS, VARIABLE, read_limits


def assert_refused(path, *words):
    with pytest.raises(CatalogError) as caught:
        read_table(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    for word in (*words, "--limit"):
        assert word in message


@pytest.fixture
def lower(monkeypatch):
    """Lower limits, so that a test of a bound needs no large file."""
    return lambda **most: monkeypatch.setattr(
        "skyfill.limits.LIMITS", LIMITS | {k.replace("_", "-"): v for k, v in most.items()}
    )


def yaml_bomb(depth=9, width=9):
    lines = ["a0: &a0 [x, x]"]
    for k in range(1, depth):
        lines.append(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * width)}]")
    return lines


def test_aliases_of_a_yaml_header_are_counted_with_all_that_they_repeat(tmp_path):
    path = tmp_path / "bomb.ecsv"
    head = ["%ECSV 1.0", "---", "datatype:", "- {name: J, datatype: float64}", "meta:"]
    lines = [*head, *(f"  {line}" for line in yaml_bomb())]
    path.write_text("".join(f"# {line}\n" for line in lines) + "J\n14.2\n")
    assert_refused(path, "aliases")
    path.write_text("".join(f"# {x}\n" for x in [*head, "  a: &a [*a]"]) + "J\n14.2\n")
    assert_refused(path, "aliases")


def test_aliases_that_repeat_little_are_read(tmp_path):
    path = tmp_path / "fine.ecsv"
    lines = ["%ECSV 1.0", "---", "datatype:", "- {name: J, datatype: float64, unit: &u mag}"]
    lines += ["- {name: K, datatype: float64, unit: *u}"]
    path.write_text("".join(f"# {line}\n" for line in lines) + "J K\n14.2 13.1\n")
    assert read_table(path).info("K").unit == "mag"


def test_a_gzipped_line_that_never_ends_is_refused(tmp_path, lower):
    path = tmp_path / "line.csv.gz"
    path.write_bytes(gzip.compress(b"a" * 10_000_000, 9))
    lower(line_bytes=1_000_000)
    assert_refused(path, "a line has more bytes", "line-bytes")


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.txt.gz", "rows.vot.gz"])
def test_a_file_that_grows_absurdly_when_unpacked_is_refused(tmp_path, monkeypatch, name):
    path = tmp_path / name
    start = {"v": b"<VOTABLE>" + b" " * 100, "c": b"a,b\n", "t": b"a b\n"}[name[5]]
    path.write_bytes(gzip.compress(start + b"1,2\n" * 3_000_000, 9))
    monkeypatch.setattr("skyfill.catalog.file_io.FREE_BYTES", 1 << 20)
    assert_refused(path, "unpacked", "gzip-ratio")


def test_a_table_that_must_be_read_whole_is_not_read_beyond_its_bound(tmp_path, lower):
    lower(whole_bytes=1000)
    (tmp_path / "long.txt").write_text("a b\n" + "1 2\n" * 1000)
    assert_refused(tmp_path / "long.txt", "whole-bytes")


def test_a_word_that_never_ends_is_refused(tmp_path):
    (tmp_path / "word.txt").write_text("a" * 10_000_000)
    assert_refused(tmp_path / "word.txt", "word-bytes")


@pytest.mark.parametrize("size", ["10000000", "10000x1000", "10000000*"])
def test_a_cell_of_too_many_elements_is_refused(tmp_path, size):
    path = tmp_path / "size.vot"
    path.write_text(
        '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE><TABLE>'
        f'<FIELD name="J" datatype="double" arraysize="{size}"/><DATA><TABLEDATA><TR><TD>1</TD>'
        "</TR></TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"
    )
    assert_refused(path, "a cell has 10000000 elements", "row-bytes")


@pytest.mark.parametrize("form", ["csv", "txt", "vot", "parquet", "ecsv"])
def test_too_many_columns_are_refused(tmp_path, lower, form):
    path = tmp_path / f"wide.{form}"
    if form == "txt":
        path.write_text(" ".join(f"c{i}" for i in range(200)) + "\n" + "1 " * 200 + "\n")
    else:
        write_table(Table.from_columns({f"c{i}": [1.0] for i in range(200)}), path)
    lower(columns=100)
    assert_refused(path, "columns", "columns=")


def bintable(tmp_path, **cards):
    path = tmp_path / "t.fits"
    columns = [fits.Column("v", "PD()", array=np.array([[1.0], [2.0, 3.0]], dtype=object))]
    fits.BinTableHDU.from_columns(columns).writeto(path)
    data = bytearray(path.read_bytes())
    for key, value in cards.items():
        at = data.find(f"{key:8}=".encode())
        data[at : at + 30] = f"{key:8}= {value:>20}".encode()
    path.write_bytes(data)
    return path


def test_fits_rows_without_width_are_refused_when_there_are_too_many(tmp_path):
    header = fits.BinTableHDU.from_columns([fits.Column("x", "0A", array=np.zeros(0, "S1"))]).header
    header["NAXIS2"] = 10**12
    stream = io.BytesIO()
    stream.write(fits.PrimaryHDU().header.tostring().encode())
    stream.write(header.tostring().encode())
    (tmp_path / "t.fits").write_bytes(stream.getvalue())
    assert_refused(tmp_path / "t.fits", "empty-rows")


def test_a_fits_heap_that_is_not_there_takes_no_memory(tmp_path):
    path = bintable(tmp_path, PCOUNT=10**11)
    assert read_table(path).column("v").to_pylist() == [[1.0], [2.0, 3.0]]


def test_limits_are_raised_by_an_option_for_one_command(tmp_path, monkeypatch, lower):
    monkeypatch.delenv(VARIABLE, raising=False)
    write_table(Table.from_columns({f"c{i}": [1.0] for i in range(200)}), tmp_path / "t.parquet")
    lower(columns=100)
    words = ["inspect", str(tmp_path / "t.parquet")]
    said = CliRunner().invoke(main, words)
    assert (said.exit_code, "--limit columns=200" in said.stderr) == (2, True)
    assert CliRunner().invoke(main, [*words, "--limit", "columns=200"]).exit_code == 0
    assert CliRunner().invoke(main, words).exit_code == 2
    said = CliRunner().invoke(main, [*words, "--limit", "colums=200"])
    assert (said.exit_code, "the limits are columns" in said.stderr) == (2, True)


@pytest.mark.parametrize("text", ["columns", "columns=x", "columns=-1", "rows=5", "columns=1e999"])
def test_a_limit_that_is_none_is_named(text):
    with pytest.raises(SkyfillError, match=r"limit '.*'"):
        read_limits(text)
