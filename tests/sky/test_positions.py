"""Positions of a table: which columns, which units, which signs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.errors import CatalogError
from skyfill.sky import PositionColumns, find_position_columns, read_positions


def table_of(columns: dict, **units: str) -> Table:
    info = {name: ColumnInfo(unit=unit) for name, unit in units.items()}
    return Table.from_columns(columns, info=info)


@pytest.mark.parametrize(
    ("ra", "dec"),
    [("ra", "dec"), ("RA", "DEC"), ("RAJ2000", "DEJ2000"), ("_RAJ2000", "_DEJ2000"),
     ("RA_ICRS", "DE_ICRS"), ("ra_deg", "dec_deg"), ("ALPHA_J2000", "DELTA_J2000"),
     ("right_ascension", "declination"), ("RA", "DE"), ("RAdeg", "DEdeg")],
)  # fmt: skip
def test_common_names_are_found_in_any_case(ra: str, dec: str):
    table = table_of({"id": ["a"], dec: [2.0], "J": [14.0], ra: [1.0]})
    assert find_position_columns(table) == PositionColumns((ra,), (dec,))


def test_degrees_are_preferred_to_parts():
    parts = {name: [1] for name in ("RAh", "RAm", "RAs", "DEd", "DEm", "DEs")}
    assert find_position_columns(table_of({**parts, "ra": [1.0], "dec": [1.0]})).ra == ("ra",)


def test_a_ucd_outweighs_a_name():
    table = table_of({"ra": [1.0], "dec": [1.0], "alpha_best": [5.0], "delta_best": [6.0]})
    table = table.with_info("alpha_best", ucd="pos.eq.ra;meta.main")
    table = table.with_info("delta_best", ucd="pos.eq.dec;meta.main")
    assert find_position_columns(table).ra == ("alpha_best",)


def test_a_role_outweighs_a_name_and_two_columns_of_that_role_need_no_name():
    table = table_of({"ra": [1.0], "dec": [1.0], "radeg": [5.0], "dedeg": [6.0]})
    for name in ("radeg", "dedeg"):
        table = table.with_info(name, role=Role.POSITION)
    assert find_position_columns(table).dec == ("dedeg",)
    plain = table_of({"x": [1.0], "y": [2.0]})
    for name in ("x", "y"):
        plain = plain.with_info(name, role=Role.POSITION)
    assert read_positions(plain).dec_deg == [2.0]


def test_galactic_coordinates_are_not_taken_for_equatorial():
    table = table_of({"glon": [1.0], "glat": [2.0]})
    for name in table.names:
        table = table.with_info(name, role=Role.POSITION)
    with pytest.raises(CatalogError, match="no position columns"):
        read_positions(table)


def test_missing_columns_are_named_with_what_there_is_and_what_to_do():
    with pytest.raises(CatalogError, match=r"RA:DEC:UNIT.*the columns are id, J"):
        read_positions(table_of({"id": ["a"], "J": [1.0]}))
    with pytest.raises(CatalogError, match="no column 'alfa'"):
        read_positions(table_of({"ra": [1.0]}), PositionColumns.parse("alfa:ra"))
    with pytest.raises(CatalogError, match="write RA:DEC"):
        PositionColumns.parse("ra")


@pytest.mark.parametrize(
    ("unit", "ra", "dec"),
    [("deg", 90.0, 45.0), ("rad", np.pi / 2, np.pi / 4), ("arcsec", 324000.0, 162000.0),
     ("mas", 3.24e8, 1.62e8), ("degrees", 90.0, 45.0), ("radians", np.pi / 2, np.pi / 4)],
)  # fmt: skip
def test_units_convert_to_degrees(unit: str, ra: float, dec: float):
    found = read_positions(table_of({"ra": [ra], "dec": [dec]}, ra=unit, dec=unit))
    assert_allclose([found.ra_deg[0], found.dec_deg[0]], [90.0, 45.0], rtol=1e-12)


def test_hours_concern_the_right_ascension_only():
    found = read_positions(table_of({"ra": [6.0], "dec": [45.0]}, ra="hourangle", dec="deg"))
    assert (found.ra_deg[0], found.dec_deg[0]) == (90.0, 45.0)
    asked = read_positions(
        table_of({"a": [6.0], "d": [45.0]}), PositionColumns.parse("a:d:hourangle")
    )
    assert (asked.ra_deg[0], asked.dec_deg[0]) == (90.0, 45.0)


def test_names_that_end_in_rad_are_radians_when_no_unit_says_otherwise():
    found = read_positions(table_of({"rarad": [np.pi], "decrad": [-np.pi / 2]}))
    assert_allclose([found.ra_deg[0], found.dec_deg[0]], [180.0, -90.0])


@pytest.mark.parametrize(
    ("text", "degrees"),
    [("-00:30:36", -0.51), ("-00 30 36.0", -0.51), ("-00d30m36s", -0.51), ("+00:30:36", 0.51),
     ("\N{MINUS SIGN}00:30:36", -0.51), ("-69:15.5", -69 - 15.5 / 60), ("12:00:00", 12.0),
     ("-0:0:3.6", -0.001), ("-00°30′36″", -0.51), ("-00°30'36\"", -0.51)],
)  # fmt: skip
def test_sexagesimal_declinations_keep_the_sign_of_minus_zero(text: str, degrees: float):
    found = read_positions(table_of({"ra": ["05:30:00"], "dec": [text]}))
    assert_allclose([found.ra_deg[0], found.dec_deg[0]], [82.5, degrees], rtol=1e-12)


def test_letters_and_units_decide_between_hours_and_degrees_of_right_ascension():
    def right_ascension(text: str, **units: str) -> float:
        return read_positions(table_of({"ra": [text], "dec": ["0:0:0"]}, **units)).ra_deg[0]

    assert right_ascension("06:00:00") == right_ascension("06h00m00s") == 90.0
    assert right_ascension("90d00m00s") == right_ascension("90:00:00", ra="deg") == 90.0
    assert right_ascension("06 00 00", ra='"h:m:s"') == 90.0


def test_blank_text_is_a_row_without_a_position():
    found = read_positions(table_of({"ra": ["05:30:00", "", None], "dec": ["1:0:0", "1:0:0", " "]}))
    assert_array_equal(np.isnan(found.ra_deg), [False, True, True])
    assert_array_equal(np.isnan(found.dec_deg), [False, True, True])


def test_decimal_numbers_in_a_text_column_are_read_as_numbers():
    found = read_positions(table_of({"ra": ["82.5", ""], "dec": ["-0.5", "1"]}))
    assert found.ra_deg[0] == 82.5
    assert np.isnan(found.dec_deg[1])


@pytest.mark.parametrize("degrees", [[-0.0, 0.0], ["-00", "00"], ["-0", "+0"]])
def test_parts_in_three_columns_keep_the_sign_of_minus_zero(degrees):
    table = table_of(
        {"ra_h": [5, 5], "ra_m": [30, 30], "ra_s": [0.0, 0.0],
         "dec_d": degrees, "dec_m": [30, 30], "dec_s": [36.0, 36.0]}
    )  # fmt: skip
    found = read_positions(table)
    assert_allclose(found.ra_deg, [82.5, 82.5])
    assert_allclose(found.dec_deg, [-0.51, 0.51])


def test_a_sign_column_and_negative_minutes_count_too():
    ra = {"RAh": [5, 5], "RAm": [30, 30], "RAs": [0.0, 0.0]}
    signs = {"DE-": ["-", "+"], "DEd": [0, 0], "DEm": [30, 30], "DEs": [36.0, 36.0]}
    assert_allclose(read_positions(table_of({**ra, **signs})).dec_deg, [-0.51, 0.51])
    minutes = {"DEd": [0, 0], "DEm": [-30, 30], "DEs": [36.0, 36.0]}
    assert_allclose(read_positions(table_of({**ra, **minutes})).dec_deg, [-0.51, 0.51])


def test_eros_right_ascensions_are_hours_although_their_column_ends_in_d():
    parts = {"asc_d": [5.0], "asc_m": [40.0], "asc_s": [51.37],
             "dec_d": [-70.0], "dec_m": [13.0], "dec_s": [58.78]}  # fmt: skip
    found = read_positions(table_of(parts))
    assert_allclose(found.ra_deg, 15 * (5 + 40 / 60 + 51.37 / 3600))
    assert_allclose(found.dec_deg, -(70 + 13 / 60 + 58.78 / 3600))


@given(st.integers(0, 360 * 36_000_000 - 1), st.integers(-90 * 36_000_000, 90 * 36_000_000))
def test_what_astropy_writes_in_sexagesimal_is_read_back(ra_units: int, dec_units: int):
    from astropy.coordinates import Angle

    ra, dec = ra_units / 36_000_000, dec_units / 36_000_000
    columns = {
        "ra": [Angle(ra, "deg").to_string(unit="hourangle", sep=":", precision=6)],
        "dec": [Angle(dec, "deg").to_string(unit="deg", sep=":", precision=6)],
    }
    found = read_positions(Table.from_columns(columns))
    assert_allclose([found.ra_deg[0], found.dec_deg[0]], [ra, dec], rtol=0, atol=3e-9)


@pytest.mark.parametrize(
    ("columns", "units", "message"),
    [
        ({"ra": [80.0], "dec": [-69.0]}, {"ra": "rad", "dec": "rad"},
         "column 'ra', row 1.*looks like degrees although the unit is rad"),
        ({"ra": [80.0], "dec": [-69.0]}, {"ra": "hourangle"}, "looks like degrees although"),
        ({"ra": [1.0, -999.0], "dec": [0.0, 0.0]}, {}, "column 'ra', row 2.*sentinel"),
        ({"ra": [1.0], "dec": [99.999]}, {}, "column 'dec', row 1: 99.999 deg is beyond 90"),
        ({"ra": [1.0], "dec": [0.0]}, {"ra": "mag"}, "column 'ra': 'mag' is not a unit of angle"),
        ({"ra": [1.0], "dec": [0.0]}, {"ra": "furlong"}, "'furlong' is not a unit of angle"),
        ({"ra": ["5:30:00", "abc"], "dec": ["0:0:0", "0:0:0"]}, {},
         "column 'ra', row 2: 'abc' is not an angle"),
        ({"ra": ["5:75:00"], "dec": ["0:0:0"]}, {}, "75 minutes or seconds"),
        ({"ra": [True], "dec": [[1.0]]}, {}, "column 'dec'"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_positions_are_refused_with_column_and_row(columns, units, message):
    with pytest.raises(CatalogError, match=message):
        read_positions(table_of(columns, **units))


def test_an_infinite_position_is_refused():
    table = Table.from_columns({"ra": [np.inf], "dec": [0.0]})
    with pytest.raises(CatalogError, match="column 'ra', row 1: inf deg"):
        read_positions(table)


def test_an_empty_table_has_no_positions():
    table = Table.from_columns({"ra": np.empty(0), "dec": np.empty(0)})
    assert len(read_positions(table)) == 0
