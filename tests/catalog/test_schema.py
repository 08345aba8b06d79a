"""Schema files and options: what the user says about columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Role, Schema, Table, read_schema, read_table
from skyfill.catalog.schema import sentinel_line
from skyfill.errors import CatalogError

TOML = """
sentinels = [-99]

[survey.sage]
columns = ["*mag", "[3.6]"]
sentinels = [999.9999]
unit = "mag"

[columns.Jmag]
role = "feature"
ucd = "phot.mag;em.IR.J"

[columns.Hmag]
sentinels = []

[columns.e_Jmag]
role = "error"
of = "Jmag"
unit = "mmag"
convert = "mag"
"""


@pytest.fixture
def table():
    return Table.from_columns(
        {
            "Jmag": [14.2, 999.9999, -99.0],
            "Hmag": [13.1, 999.9999, -99.0],
            "[3.6]": [12.0, 999.9999, -99.0],
            "e_Jmag": [50.0, -99.0, 999.9999],
            "name": ["a", "b", "c"],
        }
    )


def test_the_particular_overrides_the_general(table):
    found = Schema.from_toml(TOML).apply(table)
    assert found.info("Jmag") == ColumnInfo("mag", "phot.mag;em.IR.J", None, Role.FEATURE)
    assert found.column("Jmag").to_pylist() == [14.2, None, -99.0]
    assert found.column("Hmag").to_pylist() == [13.1, 999.9999, -99.0]
    assert found.column("[3.6]").to_pylist() == [12.0, None, -99.0]
    assert found.reasons("[3.6]").to_pylist() == [None, "rejected", None]
    assert found.column("name").to_pylist() == ["a", "b", "c"]


def test_units_convert_after_sentinels_are_gone():
    table = Table.from_columns({"dec": [180.0, -99.0]})
    rules = Schema.from_toml('[columns.dec]\nunit="arcmin"\nconvert="deg"\nsentinels=[-99]')
    found = rules.apply(table)
    assert found.column("dec").to_pylist() == pytest.approx([3.0, None])
    assert found.info("dec").unit == "deg"


def test_a_unit_that_does_not_convert_is_refused(table):
    rules = Schema.from_toml('[columns.Jmag]\nunit="mag"\nconvert="deg"')
    with pytest.raises(CatalogError, match="'mag' does not convert to 'deg'"):
        rules.apply(table)


def test_options_override_the_file(table):
    rules = Schema.from_toml(TOML) + Schema.from_options(
        roles=["Jmag=label"], units=["Hmag=Jy"], sentinels=["Hmag=13.1,999.9999", "name=b"]
    )
    found = rules.apply(table)
    assert found.info("Jmag").role is Role.LABEL
    assert found.info("Hmag").unit == "Jy"
    assert found.column("Hmag").to_pylist() == [None, None, -99.0]
    assert found.column("name").to_pylist() == ["a", None, "c"]


def test_reading_applies_a_schema_file(tmp_path):
    (tmp_path / "s.toml").write_text("columns.J.sentinels = [99.999]\ncolumns.J.role = 'feature'\n")
    (tmp_path / "t.csv").write_text("id,J,H\n1,99.999,13\n")
    found = read_table(tmp_path / "t.csv", schema=tmp_path / "s.toml")
    assert found.reasons("J").to_pylist() == ["rejected"]
    part = read_table(tmp_path / "t.csv", columns=["H"], schema=tmp_path / "s.toml")
    assert part.names == ("H",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not toml", "not a TOML file"),
        ("[columns.J]\nrle = 'label'", r"no key 'rle'; did you mean 'role'\?"),
        ("[columns.J]\nrole = 'star'", "no role 'star'"),
        ("[columns.J]\nunit = 5", "unit must be text, not 5"),
        ("[columns.J]\ntext = 1", "text must be true or false"),
        ('[survey.sage]\ncolumns = "*mag"', r"columns must be a list .* not '\*mag'"),
        ("[survey.sage]\ncolumns = [1]", "columns must be a list"),
        ("[columns.J]\nsentinels = 99", "sentinels must be a list"),
        ("columns = 5", "columns in the schema must be tables"),
        ("[columns.J]\nzz9 = 1", r"no key 'zz9'; the keys are convert, depth, description, "),
        ("[columns.K]\nunit = 'mag'", r"no column 'K'; the columns are J"),
        ("[columns.J]\nsentinels = ['x']", "cannot hold the sentinel 'x'"),
    ],
)
def test_mistakes_in_a_schema_are_named(text, message, tmp_path):
    (tmp_path / "s.toml").write_text(text)
    (tmp_path / "t.csv").write_text("J\n1.5\n")
    with pytest.raises(CatalogError, match=message):
        read_table(tmp_path / "t.csv", schema=tmp_path / "s.toml")


def test_a_mistake_in_a_schema_names_the_file(tmp_path):
    (tmp_path / "s.toml").write_text("[columns.J]\nrole = 'star'")
    with pytest.raises(CatalogError, match=r"s\.toml: no role 'star'"):
        read_schema(tmp_path / "s.toml")
    with pytest.raises(CatalogError, match=r"absent\.toml: no such file"):
        read_schema(tmp_path / "absent.toml")


@pytest.mark.parametrize("option", ["J", "=label", "J="])
def test_an_option_without_name_and_value_is_refused(option):
    with pytest.raises(CatalogError, match="is not of the form COLUMN=VALUE"):
        Schema.from_options(roles=[option])


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1),
       st.lists(st.floats(allow_nan=False) | st.integers(-(2**40), 2**40) | st.text(max_size=5),
                min_size=1))  # fmt: skip
def test_the_line_that_is_shown_declares_what_it_says(name, values):
    rules = Schema.from_toml(sentinel_line(name, values)).rules
    assert rules[0].patterns == (name,)
    assert rules[0].facts["sentinels"] == values
