"""The joined table: no row lost, no type changed, every gap with its reason."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.errors import CatalogError
from skyfill.sky import (
    Footprint,
    MatchRules,
    NothingMatchedWarning,
    Survey,
    find_position_columns,
    join,
    join_surveys,
)

ARCSEC = 1 / 3600


def base() -> Table:
    columns = {
        "id": ["a", "b", "c", "d"],
        "ra": [10.0, 20.0, 30.0, np.nan],
        "dec": [0.0, 0.0, 0.0, 0.0],
        "V": [15.0, 16.0, 17.0, 18.0],
    }
    return Table.from_columns(columns, info={"V": ColumnInfo(unit="mag", role=Role.FEATURE)})


def nir() -> Table:
    """Two candidates for `b`, one for `a`; the second has a gap of its own."""
    columns = {
        "ra": [20.0, 10.0, 20.0, 200.0],
        "dec": [0.1 * ARCSEC, 0.0, 0.8 * ARCSEC, 5.0],
        "J": [14.0, np.nan, 13.0, 12.0],
        "e_J": [0.1, np.nan, 0.3, 0.4],
        "n_obs": pa.array([7, 8, 9, 10], pa.int16()),
        "is_blend": [True, False, True, False],
        "note": ["x", "y", "z", "w"],
    }
    info = {
        "J": ColumnInfo("mag", "phot.mag;em.IR.J", "J magnitude", Role.FEATURE),
        "e_J": ColumnInfo("mag", "stat.error", "error of J", Role.ERROR, of="J"),
        "ra": ColumnInfo("deg", "pos.eq.ra;meta.main", None, Role.POSITION),
        "dec": ColumnInfo("deg", "pos.eq.dec;meta.main", None, Role.POSITION),
    }
    table = Table.from_columns(columns, info=info, meta={"citation": "Nobody 2020"})
    return table.with_reasons("J", [None, "undetected", None, None])


def test_every_base_row_stays_with_its_values_in_order():
    joined = join(base(), {"nir": nir()}, 1.0)
    assert joined.select(base().names).arrow.equals(base().arrow)


def test_values_gaps_and_flags_of_a_joined_survey():
    joined, _ = join_surveys(base(), [Survey("nir", nir(), 1.0)], MatchRules())
    assert joined.column("J_nir").to_pylist() == [None, 14.0, None, None]
    assert joined.column("note_nir").to_pylist() == ["y", "x", None, None]
    assert joined.reasons("J_nir").to_pylist() == ["undetected", None, "unmatched", "uncovered"]
    assert joined.reasons("n_obs_nir").to_pylist() == [None, None, "unmatched", "uncovered"]
    assert_allclose(joined.numbers("sep_nir")[:, 0], [0, 0.1, np.nan, np.nan], atol=1e-9)
    assert joined.column("n_nir").to_pylist() == [1, 2, 0, 0]
    flags = ["matched", "ambiguous", "unmatched", "unplaced"]
    assert joined.column("flag_nir").to_pylist() == flags


def test_types_are_not_changed_by_unmatched_rows():
    joined = join(base(), {"nir": nir()}, 1.0)
    for name in ("J", "n_obs", "is_blend", "note", "ra"):
        assert joined.column(f"{name}_nir").type == nir().column(name).type
        assert joined.column(f"{name}_nir").null_count >= 2


def test_what_is_known_of_a_column_travels_with_it():
    joined = join(base(), {"nir": nir()}, 1.0)
    assert joined.info("J_nir") == nir().info("J")
    assert joined.info("e_J_nir") == ColumnInfo(
        "mag", "stat.error", "error of J", Role.ERROR, of="J_nir"
    )
    assert joined.info("J_nir_gap") == ColumnInfo(role=Role.REASON, of="J_nir")
    assert joined.info("sep_nir").unit == "arcsec"
    assert joined.info("sep_nir").ucd == "pos.angDistance"
    assert joined.info("V") == base().info("V")
    assert joined.meta["citation_nir"] == "Nobody 2020"
    assert json.loads(joined.meta["match_nir"])["matched"] == 2


def test_identifiers_positions_and_errors_get_no_companion():
    joined = join(base(), {"nir": nir()}, 1.0)
    assert {"ra_nir_gap", "dec_nir_gap", "e_J_nir_gap"}.isdisjoint(joined.names)


def test_the_main_position_and_identifier_of_a_joined_table_are_those_of_the_base():
    base = Table.from_columns({"RAJ2000": [10.0, 20.0], "DEJ2000": [0.0, 0.0]})
    infos = {
        "id": ColumnInfo(None, "meta.id;meta.main", role=Role.IDENTIFIER),
        "ra": ColumnInfo("deg", "pos.eq.ra;meta.main", role=Role.POSITION),
        "dec": ColumnInfo("deg", "pos.eq.dec;meta.main", role=Role.POSITION),
    }
    survey = Table.from_columns({"id": ["a"], "ra": [20.0], "dec": [0.0]}, info=infos)
    joined = join(base, {"nir": survey}, 1.0)
    assert [joined.info(f"{name}_nir").ucd for name in infos] == [
        "meta.id",
        "pos.eq.ra",
        "pos.eq.dec",
    ]
    assert find_position_columns(joined).ra == ("RAJ2000",)


def test_several_surveys_are_all_matched_to_the_base():
    one, two = nir(), Table.from_columns({"ra": [30.0], "dec": [0.0], "W1": [9.0]})
    surveys = [Survey("nir", one, 1.0), Survey("wise", two, 6.0)]
    joined, reports = join_surveys(base(), surveys, MatchRules())
    assert joined.column("W1_wise").to_pylist() == [None, None, 9.0, None]
    assert [report.matched for report in reports] == [2, 1]
    assert [report.unplaced for report in reports] == [1, 1]
    assert [report.ambiguous for report in reports] == [1, 0]


def test_keep_all_repeats_a_base_row_for_each_counterpart():
    other = Table.from_columns({"ra": [10.0, 30.0], "dec": [0.5 * ARCSEC, 0.0], "W1": [8.0, 9.0]})
    surveys = [Survey("nir", nir(), 1.0), Survey("wise", other, 1.0)]
    joined, _ = join_surveys(base(), surveys, MatchRules(keep="all"))
    assert joined.column("id").to_pylist() == ["a", "b", "b", "c", "d"]
    assert joined.column("J_nir").to_pylist() == [None, 14.0, 13.0, None, None]
    assert joined.column("n_nir").to_pylist() == [1, 2, 2, 0, 0]
    assert joined.column("W1_wise").to_pylist() == [8.0, None, None, 9.0, None]


def test_a_row_whose_candidates_belong_to_closer_rows_is_taken():
    crowd = Table.from_columns({"ra": [10.0, 10.0], "dec": [0.0, 0.5 * ARCSEC], "V": [15.0, 16.0]})
    other = Table.from_columns({"ra": [10.0], "dec": [0.0], "J": [14.0]})
    joined, (report,) = join_surveys(crowd, [Survey("nir", other, 1.0)], MatchRules())
    assert joined.column("flag_nir").to_pylist() == ["matched", "taken"]
    assert joined.reasons("J_nir").to_pylist() == [None, "unmatched"]
    assert (report.matched, report.taken, report.unmatched) == (1, 1, 1)


def test_outside_the_footprint_a_gap_is_uncovered():
    moc = pytest.importorskip("mocpy").MOC
    from astropy import units as u

    around_c = moc.from_cone(30 * u.deg, 0 * u.deg, radius=1 * u.deg, max_depth=8)
    other = Table.from_columns({"ra": [200.0], "dec": [0.0], "J": [14.0]})
    survey = Survey("nir", other, 1.0, footprint=Footprint(around_c))
    joined, (report,) = join_surveys(base(), [survey], MatchRules())
    assert joined.reasons("J_nir").to_pylist() == [
        "uncovered",
        "uncovered",
        "unmatched",
        "uncovered",
    ]
    assert (report.uncovered, report.unmatched, report.unplaced) == (2, 1, 1)


def test_a_survey_without_rows_or_a_base_without_rows_joins():
    empty = Table(nir().arrow.slice(0, 0))
    with pytest.warns(UserWarning, match="nir: .* the survey or the base has no positions"):
        joined = join(base(), {"nir": empty}, 1.0)
    assert joined.column("J_nir").null_count == 4
    assert joined.column("n_obs_nir").type == pa.int16()
    with pytest.warns(UserWarning, match="no positions"):
        nothing = join(Table(base().arrow.slice(0, 0)), {"nir": nir()}, 1.0)
    assert len(nothing) == 0
    assert "J_nir" in nothing.names


def test_nothing_matched_is_a_warning_with_the_distance_and_a_hint():
    far = Table.from_columns({"ra": [np.radians(10.0)], "dec": [0.0], "J": [1.0]})
    with pytest.warns(
        NothingMatchedWarning, match=r"19\.8 degrees: check the units of the positions"
    ):
        join(base(), {"far": far}, 1.0)


def test_names_that_would_clash_are_refused():
    other = Table.from_columns({"ra": [10.0], "dec": [0.0], "J": [1.0]})
    taken = base().with_column("J_nir", [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(CatalogError, match="nir: column 'J_nir' is already a column of the base"):
        join(taken, {"nir": other}, 1.0)
    twice = [Survey("nir", other, 1.0), Survey("nir", other, 2.0)]
    with pytest.raises(CatalogError, match="nir: column 'ra_nir' is already a column of nir"):
        join_surveys(base(), twice, MatchRules())
    counted = Table.from_columns({"ra": [10.0], "dec": [0.0], "n": [1]})
    with pytest.raises(CatalogError, match="'n_nir' is already a column of nir"):
        join(base(), {"nir": counted}, 1.0)
    with pytest.raises(CatalogError, match="needs a name"):
        join(base(), {" ": other}, 1.0)


def test_an_error_in_a_survey_names_the_survey():
    with pytest.raises(CatalogError, match="wise: no position columns"):
        join(base(), {"wise": Table.from_columns({"W1": [1.0]})}, 1.0)


positions = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans()), min_size=0, max_size=12
)


@given(positions, positions, st.sampled_from(["symmetric", "best", "all"]))
@pytest.mark.filterwarnings("ignore::skyfill.sky.NothingMatchedWarning")
def test_a_join_loses_no_row_and_every_lost_value_has_a_reason(left, right, keep):
    """Positions on a grid of half arcseconds: many ties, copies and gaps."""

    def table(cells, name: str) -> Table:
        ra = np.array([np.nan if lost else 10 + x * ARCSEC / 2 for x, _, lost in cells], float)
        dec = np.array([y * ARCSEC / 2 for _, y, _ in cells], float)
        return Table.from_columns({"ra": ra, "dec": dec, name: np.arange(len(cells))})

    joined = join(table(left, "i"), {"s": table(right, "j")}, 1.0, rules=MatchRules(keep=keep))
    rows = joined.column("i").to_numpy()
    assert_array_equal(np.unique(rows), np.arange(len(left)))
    assert keep == "all" or len(rows) == len(left)
    partners, reasons = joined.column("j_s").to_pylist(), joined.reasons("j_s").to_pylist()
    for j, reason, flag in zip(partners, reasons, joined.column("flag_s").to_pylist(), strict=True):
        assert (reason is None) == (j is not None) == (flag in ("matched", "ambiguous"))
    seen = [j for j in partners if j is not None]
    assert keep != "symmetric" or len(set(seen)) == len(seen)
    assert (joined.numbers("sep_s")[:, 0][[j is not None for j in partners]] <= 1.0 + 1e-6).all()
