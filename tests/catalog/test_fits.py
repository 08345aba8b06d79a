"""FITS as others write it: scaled, unsigned, text tables, vectors, lists, several extensions."""

import gzip

import numpy as np
import pytest
from astropy.io import fits

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.errors import CatalogError


def write_fits(path, *columns, **cards):
    hdu = fits.BinTableHDU.from_columns(list(columns))
    hdu.header.update(cards)
    hdu.writeto(path)
    return path


def test_signed_bytes_and_scaled_integers_are_unpacked(tmp_path):
    path = write_fits(
        tmp_path / "t.fits",
        fits.Column("byte", "B", array=np.array([0, 255], "u1")),
        fits.Column("scaled", "I", array=np.array([1, 2], "i2")),
        **{"TZERO1": -128, "TSCAL2": 0.5, "TZERO2": 10},
    )
    assert read_table(path).arrow.to_pydict() == {"byte": [-128, 127], "scaled": [10.5, 11.0]}


def test_the_null_of_an_integer_column_is_compared_before_scaling(tmp_path):
    unsigned = fits.Column("n", "I", bzero=32768, array=np.array([5, 65535], "u2"))
    path = write_fits(tmp_path / "t.fits", unsigned, TNULL1=32767)
    assert read_table(path).column("n").to_pylist() == [5, None]


def test_logical_null_bits_and_complex_columns_are_read(tmp_path):
    path = write_fits(
        tmp_path / "t.fits",
        fits.Column("bits", "3X", array=np.array([[1, 0, 1], [0, 1, 0]], bool)),
        fits.Column("z", "C", array=np.array([1 + 2j, 3 - 4j], "c8")),
    )
    assert read_table(path).arrow.to_pydict() == {
        "bits": [[True, False, True], [False, True, False]],
        "z": [[1.0, 2.0], [3.0, -4.0]],
    }


def test_lists_of_variable_length_are_read(tmp_path):
    lists = np.array([np.array([1.5]), np.array([2.5, 3.5])], dtype=object)
    words = np.array(["ab", "c"], dtype=object)
    path = write_fits(
        tmp_path / "t.fits",
        fits.Column("mags", "PD()", array=lists),
        fits.Column("word", "PA()", array=words),
    )
    found = read_table(path).arrow.to_pydict()
    assert found == {"mags": [[1.5], [2.5, 3.5]], "word": ["ab", "c"]}


def test_a_text_table_is_read_with_blanks_as_gaps(tmp_path):
    columns = [
        fits.Column("name", "A5", ascii=True, array=np.array(["ab", "cde"])),
        fits.Column("n", "I6", null="---", ascii=True, array=np.array([7, 8])),
        fits.Column("x", "D12.4", ascii=True, array=np.array([1.5, -2.5e10])),
    ]
    fits.TableHDU.from_columns(columns).writeto(tmp_path / "t.fits")
    before, _, after = (tmp_path / "t.fits").read_bytes().rpartition(b"     8")
    (tmp_path / "t.fits").write_bytes(before + b"   ---" + after)
    assert read_table(tmp_path / "t.fits").arrow.to_pydict() == {
        "name": ["ab", "cde"],
        "n": [7, None],
        "x": [1.5, -2.5e10],
    }


def test_the_first_table_of_several_extensions_is_taken(tmp_path):
    image = fits.ImageHDU(np.zeros((4, 4)))
    tables = [
        fits.BinTableHDU.from_columns([fits.Column(n, "J", array=[1])]) for n in ("one", "two")
    ]
    fits.HDUList([fits.PrimaryHDU(), image, *tables]).writeto(tmp_path / "t.fits")
    assert read_table(tmp_path / "t.fits").names == ("one",)


def test_a_damaged_card_does_not_send_the_reader_in_circles(tmp_path):
    write_table(Table.from_columns({"J": [1.5]}), tmp_path / "t.fits")
    data = bytearray((tmp_path / "t.fits").read_bytes())
    data[14] = 0
    (tmp_path / "t.fits").write_bytes(gzip.compress(data))
    with pytest.raises(CatalogError, match="the header of an extension is damaged"):
        read_table(tmp_path / "t.fits")


def test_a_file_of_images_says_so(tmp_path):
    fits.PrimaryHDU(np.zeros((4, 4))).writeto(tmp_path / "t.fits")
    with pytest.raises(CatalogError, match=r"t\.fits: the file holds no table, only images"):
        read_table(tmp_path / "t.fits")


def test_the_header_uses_the_keywords_of_the_standard(tmp_path):
    info = ColumnInfo("mag", "phot.mag", "J magnitude", Role.ERROR, "J")
    table = Table.from_columns({"J": [1, 2], "e_J": [1, None]}, info={"e_J": info})
    write_table(table, tmp_path / "t.fits")
    header = fits.getheader(tmp_path / "t.fits", 1)
    cards = ["TTYPE2", "TUNIT2", "TUCD2", "TCOMM2", "TROLE2", "TROF2"]
    assert [header[card] for card in cards] == [
        "e_J",
        "mag",
        "phot.mag",
        "J magnitude",
        "error",
        "J",
    ]
    assert header["TNULL2"] == -(2**63)
    assert "TNULL1" not in header


def test_a_thousand_columns_are_too_many(tmp_path):
    table = Table.from_columns({f"c{i}": [1.0] for i in range(1000)})
    with pytest.raises(CatalogError, match="FITS holds at most 999 columns"):
        write_table(table, tmp_path / "t.fits")
    assert not list(tmp_path.iterdir())
