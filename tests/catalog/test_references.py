"""Files that point to other files: nothing outside a table is ever read into it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy.io import fits

from skyfill.catalog import Table, read_table, write_table
from skyfill.errors import CatalogError

VOTABLE = """<?xml version="1.0"?>
{declared}
<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">
<RESOURCE><TABLE><FIELD name="id" datatype="char" arraysize="6"/>
<DATA>{data}</DATA></TABLE></RESOURCE></VOTABLE>
"""
STREAMS = {
    "BINARY": '<BINARY><STREAM href="{}"/></BINARY>',
    "BINARY2": '<BINARY2><STREAM encoding="base64" href="{}"></STREAM></BINARY2>',
    "FITS": '<FITS extnum="1"><STREAM href="{}"/></FITS>',
    "with a prefix": '<v:BINARY xmlns:v="v"><v:STREAM v:href="{}"/></v:BINARY>',
    "after a sign": "<BINARY><STREAM encoding='>' href='{}'/></BINARY>",
}


def check_refused(path, secret):
    with pytest.raises(
        CatalogError, match=r"t\.vot: its rows are not in the file but at"
    ) as caught:
        read_table(path)
    assert "SECRET" not in str(caught.value)
    assert secret.as_uri() in str(caught.value)


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"SECRET")
    return path


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_rows_in_another_file_are_refused(tmp_path, secret, stream):
    path = tmp_path / "t.vot"
    path.write_text(VOTABLE.format(declared="", data=stream.format(secret.as_uri())))
    check_refused(path, secret)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_reference_cannot_hide_in_an_entity_or_an_encoding(tmp_path, secret, encoding):
    hidden = f"&#60;BINARY>&#60;STREAM hr&#101;f='{secret.as_uri()}'/>&#60;/BINARY>"
    text = VOTABLE.format(declared=f'<!DOCTYPE v [<!ENTITY s "{hidden}">]>', data="&s;")
    path = tmp_path / "t.vot"
    path.write_bytes(text.encode(encoding))
    check_refused(path, secret)


def test_a_reference_cannot_hide_before_the_rows_of_skyfills_own_files(tmp_path, secret):
    path = tmp_path / "t.vot"
    write_table(Table.from_columns({"id": ["a"]}), path)
    stream = STREAMS["BINARY"].format(secret.as_uri())
    first = f'<TABLE><FIELD name="id" datatype="char" arraysize="6"/><DATA>{stream}</DATA></TABLE>'
    whole = path.read_text()
    assert '<TABLE nrows="1">' in whole
    path.write_text(whole.replace('<TABLE nrows="1">', f'{first}<TABLE nrows="1">'))
    check_refused(path, secret)


def test_links_that_nobody_follows_are_no_harm(tmp_path):
    data = "<TABLEDATA><TR><TD>a</TD></TR></TABLEDATA>"
    text = VOTABLE.format(declared="", data=data)
    path = tmp_path / "t.vot"
    path.write_text(text.replace("<TABLE>", '<LINK href="file:///none"/><TABLE>'))
    assert read_table(path).column("id").to_pylist() == ["a"]


def test_metadata_of_parquet_are_words_only(tmp_path, secret):
    path = tmp_path / "t.parquet"
    votable = VOTABLE.format(declared="", data=STREAMS["BINARY"].format(secret.as_uri()))
    table = pa.table({"id": ["a"]}).replace_schema_metadata(
        {"IVOA.VOTable-Parquet.content": votable, "IVOA.VOTable-Parquet.version": "1.0"}
    )
    pq.write_table(table, path)
    assert read_table(path).arrow.to_pydict() == {"id": ["a"]}


def test_a_votable_in_the_first_part_of_a_fits_file_is_not_read(tmp_path, secret):
    votable = VOTABLE.format(declared="", data=STREAMS["BINARY"].format(secret.as_uri()))
    first = fits.PrimaryHDU(np.frombuffer(votable.encode(), np.uint8))
    first.header["VOTMETA"] = True
    rows = fits.BinTableHDU.from_columns([fits.Column("id", "6A", array=["a"])])
    fits.HDUList([first, rows]).writeto(tmp_path / "t.fits")
    assert read_table(tmp_path / "t.fits").column("id").to_pylist() == ["a"]
