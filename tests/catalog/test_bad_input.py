"""Whatever is wrong with a file: one clear error, and nothing half-written."""

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from astropy.io import votable
from astropy.table import Table as AstropyTable

from skyfill.catalog import (
    ColumnInfo,
    Table,
    in_unit,
    numbers_in,
    open_writer,
    read_batches,
    read_table,
    write_table,
)
from skyfill.errors import CatalogError

EXTENSIONS = ("parquet", "fits", "vot", "ecsv", "csv", "csv.gz", "fits.gz")


@pytest.fixture
def table():
    return Table.from_columns({"id": ["a", "b"] * 500, "J": [14.2, None] * 500})


def run(code, folder):
    """Run code in a process of its own; give what it prints."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


def assert_fails(path, message):
    with pytest.raises(CatalogError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.8])
def test_a_truncated_file_is_refused(extension, share, table, tmp_path):
    path = tmp_path / f"t.{extension}"
    write_table(table, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    if extension == "csv" or (extension == "ecsv" and share > 0.5):
        # Text that ends early cannot be told from a shorter table, except in its last line.
        return
    with pytest.raises(CatalogError, match=r"t\."):
        read_table(path)


def test_a_truncated_fits_file_says_where_it_ends(table, tmp_path):
    path = tmp_path / "t.fits"
    write_table(table, path)
    path.write_bytes(path.read_bytes()[:9000])
    assert_fails(path, "truncated: 1000 rows end at byte 14760, the file at byte 9000")


def test_a_ragged_row_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('# note\nid,J\n1,"two\nlines"\n2,3\n4,5,6\n')
    assert_fails(path, "line 6 has 3 cells where the header names 2 columns")


def test_text_where_the_header_promises_numbers_is_named(table, tmp_path):
    path = tmp_path / "t.ecsv"
    write_table(table.select(["J", "id"]), path)
    lines = path.read_text().splitlines()
    line = len(lines) - 3
    lines[line - 1] = 'bright,"a"'
    path.write_text("\n".join(lines))
    assert_fails(path, f"line {line}, column 'J': 'bright' does not read as double")


def test_text_in_a_number_column_is_named_when_numbers_are_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,J\n1,14.2\n2,bright\n")
    with pytest.raises(CatalogError, match="column 'J', row 2: 'bright' is not a number"):
        read_table(path).numbers("J")


@pytest.mark.parametrize("cell", ["17,185", "-0,5", "1,234.5"])
def test_a_comma_in_a_number_is_named(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"id;J\na;14.2\nb;{cell}\n")
    with pytest.raises(CatalogError, match=f"column 'J', row 2: '{cell}' is a number with a comma"):
        read_table(path).numbers("J")


def test_a_votable_with_an_unknown_datatype_is_refused(tmp_path):
    path = tmp_path / "t.vot"
    AstropyTable({"J": [1.5]}).write(path, format="votable")
    path.write_text(path.read_text().replace('datatype="double"', 'datatype="quaternion"'))
    assert_fails(path, "not a readable VOTable: .*quaternion")


def test_a_votable_without_a_table_is_refused(tmp_path):
    votable.tree.VOTableFile().to_xml(str(tmp_path / "t.vot"))
    assert_fails(tmp_path / "t.vot", "no table")


def test_a_unit_that_does_not_convert_is_named():
    table = Table.from_columns({"ra": [1.0]}, info={"ra": ColumnInfo(unit="mag")})
    with pytest.raises(CatalogError, match="column 'ra': the unit 'mag' does not convert to 'deg'"):
        in_unit(table, "ra", "deg")
    with pytest.raises(CatalogError, match="column 'ra': 'degs' is not a unit"):
        numbers_in(table.with_info("ra", unit="degs"), "ra", "deg")
    with pytest.raises(CatalogError, match="column 'ra' has no unit, 'deg' is needed"):
        numbers_in(table.with_info("ra", unit=None), "ra", "deg")


@pytest.mark.parametrize("extension", [*EXTENSIONS, "txt"])
def test_an_empty_file_is_refused(extension, tmp_path):
    path = tmp_path / f"t.{extension}"
    path.write_bytes(b"")
    assert_fails(path, "the file is empty")


def test_a_directory_is_refused(tmp_path):
    assert_fails(tmp_path, "is a directory")
    with pytest.raises(CatalogError, match="is a directory"):
        write_table(Table.from_columns({"J": [1]}), tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert_fails(tmp_path / "absent.fits", "no such file")
    with pytest.raises(CatalogError, match="there is no directory"):
        write_table(Table.from_columns({"J": [1]}), tmp_path / "absent" / "t.fits")


def test_a_missing_column_names_its_neighbors(table, tmp_path):
    for extension in EXTENSIONS:
        path = tmp_path / f"t.{extension}"
        write_table(table, path)
        with pytest.raises(CatalogError, match=r"t\..*: no column 'j'; did you mean 'J'\?"):
            read_table(path, columns=["id", "j"])


def test_a_name_that_occurs_twice_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("J,J\n1,2\n")
    assert_fails(path, "column 2: the name 'J' occurs twice")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,name\n1,caf\xe9\n")
    assert_fails(path, "not UTF-8 text; convert it")


@pytest.mark.parametrize(
    ("extension", "message"),
    [("fits", "SIMPLE"), ("vot", "not a readable VOTable"), ("parquet", "magic bytes")],
)
def test_a_format_that_the_content_does_not_have_is_refused(extension, message, tmp_path):
    path = tmp_path / f"t.{extension}"
    path.write_text("id,J\n1,2\n")
    assert_fails(path, message)


@pytest.mark.parametrize("extension", ["fits", "vot", "csv"])
def test_a_type_that_the_format_cannot_hold_is_refused(extension, tmp_path):
    lists = Table.from_columns({"mags": pa.array([[1.5], [2.5, 3.5]])})
    with pytest.raises(CatalogError, match="column 'mags' of type list"):
        write_table(lists, tmp_path / f"t.{extension}")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def open_folder():
    """A folder that everybody may enter; each start of pytest closes its own for other users."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_no_permission_to_read_or_write_is_said(open_folder, table):
    path = open_folder / "t.parquet"
    write_table(table, path)
    path.chmod(0)
    open_folder.chmod(0o555)
    # For root every file is open: the child becomes nobody once everything is imported.
    code = """
        import os, pyarrow.parquet, skyfill.catalog.parquet
        from skyfill.catalog import Table, read_table, write_table
        from skyfill.errors import CatalogError
        if os.geteuid() == 0:
            os.setuid(65534)
        for task in (lambda: read_table("t.parquet"),
                     lambda: write_table(Table.from_columns({"J": [1]}), "new.parquet")):
            try:
                task()
            except CatalogError as error:
                print(error)
    """
    done = run(code, open_folder)
    open_folder.chmod(0o755)
    assert done.splitlines() == [
        "t.parquet: permission denied",
        "new.parquet: permission denied; nothing was written",
    ]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_disk_that_fills_leaves_the_old_file(extension, tmp_path):
    code = f"""
        import resource, numpy as np
        from skyfill.catalog import Table, write_table
        from skyfill.errors import CatalogError
        table = Table.from_columns({{"J": np.random.default_rng(1).random(200_000)}})
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            write_table(table, "t.{extension}")
        except CatalogError as error:
            print(error)
    """
    (tmp_path / f"t.{extension}").write_text("old")
    assert "file too large; nothing was written" in run(code, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"t.{extension}"]
    assert (tmp_path / f"t.{extension}").read_text() == "old"


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_an_interrupt_leaves_nothing_behind(extension, fault, table, tmp_path):
    batch = table.arrow.to_batches()[0]

    def fail():
        with open_writer(tmp_path / f"t.{extension}", batch.schema) as writer:
            writer.write(batch)
            raise fault

    with pytest.raises(fault):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_batch_with_other_columns_is_refused(table, tmp_path):
    other = Table.from_columns({"J": ["text"]}).arrow.to_batches()[0]
    with (
        pytest.raises(CatalogError, match=r"a batch has columns J \(string\)"),
        open_writer(tmp_path / "t.fits", table.arrow.schema) as writer,
    ):
        writer.write(other)
    assert not list(tmp_path.iterdir())


def test_what_the_reader_of_batches_does_is_not_blamed_on_the_file(table, tmp_path):
    write_table(table, tmp_path / "t.parquet")

    def fail():
        for batch in read_batches(tmp_path / "t.parquet"):
            _ = batch.num_rows / 0

    with pytest.raises(ZeroDivisionError):
        fail()


def test_an_existing_file_is_kept_when_asked(table, tmp_path):
    (tmp_path / "t.csv").write_text("old")
    with pytest.raises(CatalogError, match="exists"):
        write_table(table, tmp_path / "t.csv", overwrite=False)
    assert (tmp_path / "t.csv").read_text() == "old"


def test_the_permissions_of_a_replaced_file_stay(table, tmp_path):
    path = tmp_path / "t.parquet"
    path.touch(0o640)
    write_table(table, path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_name_of_two_lines_is_refused_in_text(tmp_path):
    with pytest.raises(CatalogError, match="the name has a line break"):
        write_table(Table.from_columns({"a\nb": [1]}), tmp_path / "t.csv")


def test_comments_alone_are_no_table(tmp_path):
    (tmp_path / "t.csv").write_text("# nothing\n# here\n")
    assert_fails(tmp_path / "t.csv", "no line with column names")


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        (b"PK\x03\x04", "sheet of Excel: save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0", "sheet of Excel: save it as CSV"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 file: write its table as Parquet or FITS"),
        (b"ARROW1\0\0", "Feather file: write it as Parquet"),
    ],
)
@pytest.mark.parametrize("name", ["stars.xlsx", "stars.csv", "stars"])
def test_tables_of_other_programs_are_refused_with_what_to_do(tmp_path, start, advice, name):
    (tmp_path / name).write_bytes(start + bytes(range(256)))
    assert_fails(tmp_path / name, advice)
