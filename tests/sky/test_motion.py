"""Proper motion: on paper, and for rows that have none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import ColumnInfo, Table
from skyfill.errors import CatalogError
from skyfill.sky import MatchRules, Survey, join_surveys, read_positions


def gaia(**changes) -> Table:
    columns = {"ra": [10.0, 20.0, 30.0], "dec": [60.0, 0.0, 0.0],
               "pmra": [1000.0, np.nan, 0.0], "pmdec": [0.0, 5.0, 0.0]}  # fmt: skip
    return Table.from_columns({**columns, **changes})


def test_one_arcsec_a_year_along_the_sky_is_two_arcsec_of_right_ascension_at_60_degrees():
    moved = read_positions(gaia(), epoch=2000.0).at(2001.0)
    assert_allclose((moved.ra_deg[0] - 10) * 3600, 2.0, rtol=1e-5)
    assert_allclose(moved.dec_deg[0], 60.0, atol=1e-8)


def test_rows_without_proper_motion_stay_where_they_are():
    there = read_positions(gaia(), epoch=2016.0)
    moved = there.at(2000.0)
    assert_array_equal(moved.ra_deg[1:], there.ra_deg[1:])
    assert_array_equal(moved.dec_deg[1:], there.dec_deg[1:])


def test_barnards_star_moves_as_published():
    """From Gaia DR3 (2016.0) back to Hipparcos (1991.25, van Leeuwen 2007): 257 arcsec.

    What is left is the perspective that comes with 110 km/s towards us.
    """
    columns = {
        "ra": [269.448502525],
        "dec": [4.739420051],
        "pmra": [-801.551],
        "pmdec": [10362.394],
    }
    moved = read_positions(Table.from_columns(columns), epoch=2016.0).at(1991.25)
    assert_allclose(moved.ra_deg[0], 269.45402305, atol=0.5 / 3600)
    assert_allclose(moved.dec_deg[0], 4.66828815, atol=0.5 / 3600)


def test_moving_there_and_back_is_no_move():
    there = read_positions(gaia(), epoch=2016.0)
    back = there.at(1950.0).at(2016.0)
    assert_allclose(back.ra_deg, there.ra_deg, atol=1e-9)
    assert_allclose(back.dec_deg, there.dec_deg, atol=1e-9)


def test_the_epoch_column_of_gaia_is_used_row_by_row():
    table = gaia(ref_epoch=[2015.0, 2015.0, 2015.0])
    assert read_positions(table).single_epoch == 2015.0
    table = gaia(ref_epoch=[2015.0, 2016.0, np.nan], pmra=[1000.0] * 3, pmdec=[0.0] * 3)
    moved = read_positions(table).at(2017.0)
    assert_allclose((moved.ra_deg - [10, 20, 30]) * 3600, [4.0, 1.0, 0.0], atol=1e-4)
    assert read_positions(table).single_epoch is None


def test_units_of_proper_motion_convert():
    info = {name: ColumnInfo(unit="arcsec/yr") for name in ("pmra", "pmdec")}
    columns = {"ra": [10.0], "dec": [0.0], "pmra": [1.0], "pmdec": [0.0]}
    table = Table.from_columns(columns, info=info)
    assert_allclose(read_positions(table).motion.ra_cosdec, 1000.0)
    with pytest.raises(CatalogError, match="'mag' is not a unit of proper motion"):
        read_positions(table.with_info("pmra", unit="mag"))


def test_proper_motions_are_found_by_ucd():
    table = Table.from_columns({"ra": [10.0], "dec": [0.0], "mu_a": [3.0], "mu_d": [4.0]})
    table = table.with_info("mu_a", ucd="pos.pm;pos.eq.ra")
    table = table.with_info("mu_d", ucd="pos.pm;pos.eq.dec")
    assert_allclose(read_positions(table).motion.total, 5.0)


def test_a_fast_star_matches_at_the_epoch_of_the_survey_that_knows_no_motion():
    base = gaia(ref_epoch=[2016.0] * 3)
    then = read_positions(base).at(2000.0)
    old = Table.from_columns({"ra": then.ra_deg[:1], "dec": then.dec_deg[:1]})

    def matched(epoch: float | None, *, at: float | None = None) -> int:
        survey = Survey("old", old, 1.0, epoch=epoch)
        _, (report,) = join_surveys(base, [survey], MatchRules(epoch=at))
        return report.matched

    assert matched(None) == 0
    assert matched(2000.0) == 1
    assert matched(None, at=2000.0) == 1


def test_a_survey_with_motions_is_moved_to_the_epoch_of_the_base():
    other = gaia(ref_epoch=[2016.0] * 3)
    then = read_positions(other).at(2000.0)
    columns = {"ra": then.ra_deg, "dec": then.dec_deg, "ref_epoch": [2000.0] * 3}
    _, (report,) = join_surveys(
        Table.from_columns(columns), [Survey("gaia", other, 0.01)], MatchRules()
    )
    assert report.matched == 3
