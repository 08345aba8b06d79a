"""Roles are guessed from names, UCDs and units, and applied only on request."""

import pyarrow as pa
import pytest

from skyfill.catalog import ColumnInfo, Role, Table, guess_roles, read_table, with_guessed_roles

REAL = pa.float64()


def guess(name, kind=REAL, beside=(), **metadata):
    field = pa.field(name, kind, metadata=metadata or None)
    others = [pa.field(other, REAL) for other in beside]
    found = guess_roles(pa.schema([field, *others])).get(name)
    return (str(found.role), found.of) if found else None


@pytest.mark.parametrize(
    "name", ["ra", "DEC", "RAJ2000", "DEJ2000", "_RA", "ra_deg", "rarad", "glon", "declination"]
)
def test_names_of_coordinates_are_positions(name):
    assert guess(name) == ("position", None)


@pytest.mark.parametrize("name", ["id", "source_id", "starid", "MACHO_Id", "name", "star_id_b"])
def test_names_of_objects_are_identifiers(name):
    assert guess(name, pa.string()) == ("identifier", None)


@pytest.mark.parametrize("name", ["class", "Class", "SpClass", "var_type", "label", "type"])
def test_names_of_classes_are_labels(name):
    assert guess(name, pa.string()) == ("label", None)


@pytest.mark.parametrize("name", ["e_J", "J_err", "sigma_J", "Jerr", "J_error", "eJ"])
def test_an_error_is_that_of_its_neighbor(name):
    assert guess(name, beside=["J", "H"]) == ("error", "J")
    assert guess(name) == ("feature", None)


def test_a_limit_and_a_reason_are_those_of_their_neighbor():
    assert guess("J_limit", beside=["J"]) == ("limit", "J")
    assert guess("J_gap", pa.string(), beside=["J"]) == ("reason", "J")


@pytest.mark.parametrize(
    ("ucd", "role"),
    [
        ("pos.eq.ra;meta.main", "position"),
        ("meta.id;meta.main", "identifier"),
        ("stat.error;phot.mag", "error"),
        ("src.class", "label"),
        ("phot.mag;em.IR.J", "feature"),
    ],
)
def test_the_ucd_decides_before_the_name(ucd, role):
    assert guess("class", ucd=ucd) == (role, None)


def test_units_and_real_numbers_make_features():
    assert guess("n", pa.int64(), unit="mag") == ("feature", None)
    assert guess("x") == ("feature", None)
    assert guess("n", pa.int64()) is None


def test_a_role_that_is_set_is_not_guessed_again():
    table = Table.from_columns(
        {"ra": [1.0], "J": [1.0]}, info={"ra": ColumnInfo(role=Role.FEATURE)}
    )
    assert set(guess_roles(table.arrow.schema)) == {"J"}
    assert with_guessed_roles(table).info("ra").role is Role.FEATURE


def test_reading_guesses_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("ra,dec\n1.5,2.5\n")
    table = read_table(tmp_path / "t.csv")
    assert {table.info(name).role for name in table.names} == {Role.OTHER}
