"""CSV and other text as people write it."""

import gzip

import pytest

from skyfill.catalog import Schema, Table, read_batches, read_table, write_table
from skyfill.errors import CatalogError


def read_text(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path)


def test_types_come_from_all_rows_not_from_the_first(tmp_path):
    rows = "".join(f"{i},{i},x\n" for i in range(200_000))
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + rows + "0.5,word,x\n")
    table = read_table(path)
    assert [str(kind) for kind in table.arrow.schema.types] == ["double", "string", "string"]
    batches = list(read_batches(path, batch_rows=50_000))
    assert {str(batch.schema.types) for batch in batches} == {str(table.arrow.schema.types)}
    assert sum(batch.num_rows for batch in batches) == 200_001


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2", ""], [1, 2, None]),
        (["1", "NaN", "--"], [1, None, None]),
        (["1.5", "nan", "inf"], [1.5, None, float("inf")]),
        ([" 1.5 ", "2", "3"], [1.5, 2.0, 3.0]),
        (["007", "012", "001"], ["007", "012", "001"]),
        (["05.5", "07", "10"], [5.5, 7.0, 10.0]),
        (["18446744073709551615", "0", "1"], [2**64 - 1, 0, 1]),
        (["99999999999999999999", "0", "1"], ["99999999999999999999", "0", "1"]),
        (["-1", "18446744073709551615", "1"], ["-1", "18446744073709551615", "1"]),
        (["true", "False", ""], [True, False, None]),
        (["True", "1", "0"], ["True", "1", "0"]),
        (["NA", "Na", ""], ["NA", "Na", None]),
        (["", "", ""], [None, None, None]),
        (["2020-01-01", "x", ""], ["2020-01-01", "x", None]),
    ],
)
def test_cells_get_the_narrowest_type_that_holds_them_all(cells, values, tmp_path):
    text = "id,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    assert read_text(tmp_path, text).column("x").to_pylist() == values


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,\n",
        "a,b\r\n1,x\r\n2,\r\n",
        "a,b\r1,x\r2,\r",
        "\ufeffa,b\n1,x\n2,\n",
        " a , b \n1,x\n2,\n",
        "a;b\n1;x\n2;\n",
        "a\tb\n1\tx\n2\t\n",
        "# a comment\n# another\na,b\n1,x\n2,\n",
        "# made by hand\n#a,b\n1,x\n2,\n",
        '"a","b"\n1,"x"\n2,""\n',
        "a,b\n1,x\n\n2,",
    ],
)
def test_dialects_of_csv_are_understood(text, tmp_path):
    assert read_text(tmp_path, text).arrow.to_pydict() == {"a": [1, 2], "b": ["x", None]}


def test_gaps_of_a_single_column_survive(tmp_path):
    table = Table.from_columns({"J": [1.5, None, 2.5, None]})
    write_table(table, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").column("J").to_pylist() == [1.5, None, 2.5, None]


def test_a_header_alone_is_a_table_without_rows(tmp_path):
    table = read_text(tmp_path, "a,b\n")
    assert (table.names, len(table)) == (("a", "b"), 0)


def test_a_column_without_a_name_gets_one(tmp_path):
    with pytest.warns(UserWarning, match=r"columns without a name are called col1, col3"):
        assert read_text(tmp_path, ",a,\n0,5,1\n").names == ("col1", "a", "col3")


@pytest.mark.parametrize("between", [";", "\t"])
def test_decimal_commas_are_read_where_no_number_has_a_point(tmp_path, between):
    text = "id;J;n;e;note\n1;14,25;3;;a,b\n2;-,5;4;;1.5 or 2,5\n3;1,5e-3;5;;\n".replace(
        ";", between
    )
    with pytest.warns(UserWarning, match=r"^t\.csv: numbers have decimal commas"):
        table = read_text(tmp_path, text)
    assert table.column("J").to_pylist() == [14.25, -0.5, 0.0015]
    assert table.column("n").to_pylist() == [3, 4, 5]
    assert table.column("note").to_pylist() == ["a,b", "1.5 or 2,5", None]
    mixed = read_text(tmp_path, text.replace(f"3{between}{between}", f"3.5{between}{between}"))
    assert mixed.column("J").to_pylist() == ["14,25", "-,5", "1,5e-3"]


def test_quoted_line_breaks_stay_in_the_cell(tmp_path):
    assert read_text(tmp_path, 'a,b\n1,"x\ny"\n').column("b").to_pylist() == ["x\ny"]


def test_gzip_is_recognized_by_content(tmp_path):
    packed = gzip.compress(b"a,b\n1,2\n")
    assert read_text(tmp_path, packed, "t.csv").arrow.to_pydict() == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    "text",
    [
        "  id  J\tH\n 1  14.2  13.1\n 2 15.0   14.0\n",
        "# id J H\n1 14.2 13.1\n2 15.0 14.0\n",
        "# by hand\nid J H\n1 14.2 13.1\n2 15.0 14.0\n",
        "id,J,H\n1,14.2,13.1\n2,15.0,14.0\n",
    ],
)
def test_text_tables_with_blanks_are_read(text, tmp_path):
    found = read_text(tmp_path, text, "t.txt").arrow.to_pydict()
    assert found == {"id": [1, 2], "J": [14.2, 15.0], "H": [13.1, 14.0]}


def test_text_tables_with_blanks_are_not_written(tmp_path):
    with pytest.raises(
        CatalogError, match="no output format has this extension; use .parquet, .fits"
    ):
        write_table(Table.from_columns({"J": [1]}), tmp_path / "t.txt")


def test_content_decides_before_the_extension(tmp_path):
    write_table(Table.from_columns({"J": [1]}), tmp_path / "t.parquet")
    (tmp_path / "t.parquet").rename(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").column("J").to_pylist() == [1]


def write_rows(folder, suffix, *rows):
    path, between = folder / f"stars.{suffix}", {"csv": ",", "txt": " "}[suffix]
    path.write_text("".join(f"{between.join(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["csv", "txt"])
@pytest.mark.parametrize(
    "cells",
    [
        ("82.1", "82.10", "82.100"),
        ("7E400", "7E401"),
        ("1e5", "100000"),
        ("007", "7"),
        ("+7", "7"),
        ("0.1", "2"),
        ("12345678901234567890123", "1"),
        ("True", "False"),
    ],
)
def test_identifiers_of_plain_text_stay_as_they_are_written(tmp_path, suffix, cells):
    path = write_rows(tmp_path, suffix, ("star_id", "V"), *((cell, "1.5") for cell in cells))
    table = read_table(path)
    assert table.column("star_id").to_pylist() == list(cells)
    assert table.column("V").to_pylist() == [1.5] * len(cells)


@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_whole_numbers_that_are_written_the_same_may_be_identifiers(tmp_path, suffix):
    path, gap = tmp_path / f"stars.{suffix}", "," if suffix == "csv" else " "
    cells = ("0", "-7", "9223372036854775807")
    path.write_text(
        "".join(f"{gap.join(row)}\n" for row in [("star_id", "V"), *((c, "1.5") for c in cells)])
    )
    assert read_table(path).column("star_id").to_pylist() == [int(cell) for cell in cells]


def test_a_number_too_large_for_a_float_is_no_infinity(tmp_path):
    path = tmp_path / "stars.csv"
    path.write_text("star,V\n7E400,1\n7E401,inf\n")
    table = read_table(path)
    assert table.column("star").to_pylist() == ["7E400", "7E401"]
    assert table.column("V").type == "double"


@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_the_user_says_which_columns_are_text_or_identifiers(tmp_path, suffix):
    path = write_rows(tmp_path, suffix, ("star", "id"), ("82.10", "5"), ("82.1", "6"))
    assert read_table(path).column("star").to_pylist() == [82.1, 82.1]
    for how in (
        {"identifiers": ["star"]},
        {"schema": Schema.from_options(text=["star"])},
        {"schema": Schema.from_options(roles=["star=identifier"])},
        {"schema": Schema.from_toml("columns.star.text = true")},
    ):
        assert read_table(path, **how).column("star").to_pylist() == ["82.10", "82.1"]
    words = read_table(path, schema=Schema.from_options(text=["id"])).column("id")
    assert words.to_pylist() == ["5", "6"]
    numbers = Schema.from_toml('columns.star = {role = "identifier", text = false}')
    assert read_table(path, schema=numbers).column("star").to_pylist() == [82.1, 82.1]


@pytest.mark.parametrize("blank", ["", " ", "  ", " NaN ", "\tnull"])
def test_gaps_of_numbers_may_have_blanks_around_them(tmp_path, blank):
    table = read_text(tmp_path, f"V, I, class\n14.2, 13.1, RRL\n{blank},{blank}, EB\n")
    assert table.arrow.to_pydict()["V"] == [14.2, None]
    assert table.arrow.to_pydict()["I"] == [13.1, None]


@pytest.mark.parametrize("word", ["INDEF", "null", "NaN", "--", "N/A"])
@pytest.mark.parametrize(("name", "between"), [("t.csv", ","), ("t.dat", " ")])
def test_words_for_no_value_are_gaps_of_numbers_whatever_separates_cells(
    tmp_path, word, name, between
):
    rows = [["V", "n_obs"], ["14.2", "7"], [word, word], ["15.0", "9"]]
    table = read_text(tmp_path, "\n".join(map(between.join, rows)) + "\n", name)
    V, n_obs = table.numbers("V", "n_obs").T
    assert V.tolist()[::2] == [14.2, 15.0]
    assert n_obs.tolist()[::2] == [7, 9]
    assert V[1] != V[1]
    assert n_obs[1] != n_obs[1]


def test_text_that_is_no_utf8_is_refused_with_a_command_that_converts_it(tmp_path):
    text = "Stern;Größe;Klasse\nS1;14,2;Veränderlicher\n".encode("latin-1")
    with pytest.raises(CatalogError, match="iconv -f WINDOWS-1252 -t UTF-8"):
        read_text(tmp_path, text)
