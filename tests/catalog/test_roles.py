"""The judge of columns: what it takes, what it leaves out, and why."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Role, Table, judge, read_table, with_guessed_roles
from skyfill.catalog.roles import (
    AS_TEXT,
    CONSTANT,
    COPY,
    EMPTY,
    OTHER_CLASS,
    UNNAMED,
    WHOLE,
    WORDS,
    thinned,
)

REAL = pa.float64()


def verdict(name, kind=REAL, beside=(), **metadata):
    field = pa.field(name, kind, metadata=metadata or None)
    others = [pa.field(other, REAL) for other in beside]
    return judge(Table(pa.schema([field, *others]).empty_table()))[name]


def guess(name, kind=REAL, beside=(), **metadata):
    found = verdict(name, kind, beside, **metadata)
    return str(found.role), found.of


@pytest.mark.parametrize(
    "name",
    ["ra", "DEC", "RAJ2000", "DEJ2000", "_RA", "ra_deg", "rarad", "glon", "declination", "decl",
     "raMean", "ALPHA_J2000", "gal_l2", "ecl_lat"],
)  # fmt: skip
def test_names_of_coordinates_are_positions(name):
    assert guess(name) == ("position", None)


@pytest.mark.parametrize(
    "name", ["id", "source_id", "starid", "MACHO_Id", "name", "star_id_b", "objID", "SRCID",
             "specObjID", "IAUNAME", "__index_level_0__", "recno"]
)  # fmt: skip
def test_names_of_objects_are_identifiers(name):
    assert guess(name, pa.string()) == ("identifier", None)


@pytest.mark.parametrize("name", ["star", "source", "Object", "star_no", "target"])
def test_a_word_for_an_object_names_it_unless_it_is_a_real_number(name):
    assert guess(name, pa.string()) == guess(name, pa.int64()) == ("identifier", None)
    assert guess(name, REAL) == ("feature", None)


@pytest.mark.parametrize(
    "name", ["class", "Class", "SpClass", "subClass", "var_type", "SpType", "label", "type"]
)
def test_names_of_classes_are_labels(name):
    assert guess(name, pa.string()) == ("label", None)


@pytest.mark.parametrize(
    ("name", "of"),
    [("e_J", "J"), ("J_err", "J"), ("sigma_J", "J"), ("Jerr", "J"), ("J_error", "J"), ("eJ", "J"),
     ("J_sd", "J"), ("j_msigcom", "j_m"), ("w1sigmpro", "w1mpro"), ("psfMagErr_r", "psfMag_r"),
     ("MAGERR_AUTO_G", "MAG_AUTO_G"), ("phot_g_mean_flux_error", "phot_g_mean_flux"),
     ("SC_FVARERR", "SC_FVAR"), ("ra_error", "ra")],
)  # fmt: skip
def test_an_error_is_that_of_its_neighbor(name, of):
    assert guess(name, beside=[of, "H"]) == ("error", of)


@pytest.mark.parametrize(
    "name", ["e_J", "J_err", "yMagErr", "SC_POSERR", "err_ellipse_r0", "j_cmsig"]
)
def test_a_sure_error_is_no_feature_without_its_neighbor(name):
    assert guess(name) == ("error", None)


@pytest.mark.parametrize(
    "name", ["sigma_J", "eJ", "parallax_over_error", "CAR_sigma", "sig_r", "epsi", "Autocor"]
)
def test_what_only_sounds_like_an_error_is_a_feature(name):
    assert guess(name) == ("feature", None)


def test_a_capital_e_is_an_error_only_beside_a_small_one():
    assert guess("E_F", beside=["F", "e_F"]) == ("error", "F")
    assert guess("E_B_V", beside=["B_V", "V"]) == ("feature", None)
    assert guess("B_V", beside=["B", "V"]) == ("feature", None)


def test_a_limit_and_a_reason_are_those_of_their_neighbor():
    assert guess("J_limit", beside=["J"]) == ("limit", "J")
    assert guess("J_gap", pa.string(), beside=["J"]) == ("reason", "J")


@pytest.mark.parametrize(
    ("name", "beside"),
    [("hjd", ()), ("w1mjdmean", ()), ("ref_epoch", ()), ("MJD_FIRST", ()), ("jdate", ()),
     ("date_obs", ()), ("time", ()), ("period_max_HJD", ()),
     ("sep_sage", ()), ("angDist", ()), ("separation_arcsec", ()), ("sigma_sage", ["sep_sage"]),
     ("P_QSO", ()), ("classprob_dsc_combmod_quasar", ()), ("p_any", ()), ("class_code", ()),
     ("teff_truth", ()), ("true_U", ()), ("pmra_pmdec_corr", ["pmra", "pmdec"]),
     ("teff_gspphot_lower", ["teff_gspphot"]), ("flux_aper_lolim_b", ["flux_aper_b"]),
     ("flux_ivar_g", ["flux_g"]), ("ext_flg", ()), ("quality", ())],
)  # fmt: skip
def test_what_is_no_property_of_the_object_is_no_feature(name, beside):
    found = verdict(name, beside=beside)
    assert (found.role, bool(found.why)) == (Role.OTHER, True)


@pytest.mark.parametrize(
    "name", ["period", "rise_time", "time_scale", "n_epochs", "candidates", "PM", "sepsi", "P_rot"]
)
def test_properties_of_the_object_are_features(name):
    assert guess(name) == ("feature", None)


@pytest.mark.parametrize(
    ("ucd", "role"),
    [
        ("pos.eq.ra;meta.main", "position"),
        ("meta.id;meta.main", "identifier"),
        ("stat.error;phot.mag", "error"),
        ("src.class", "label"),
        ("phot.mag;em.IR.J", "feature"),
        ("time.epoch", "other"),
        ("pos.angDistance", "other"),
        ("stat.probability", "other"),
        ("meta.number", "other"),
    ],
)
def test_the_ucd_decides_before_the_name(ucd, role):
    assert guess("class", ucd=ucd) == (role, None)


def test_units_and_real_numbers_make_features():
    assert guess("n", pa.int64(), unit="mag") == ("feature", None)
    assert guess("x") == ("feature", None)
    assert verdict("n", pa.int64()).why == WHOLE
    assert judge(Table.from_columns({"n": [1, 2], "n_err": [0.1, 0.2]}))["n"].is_feature


def test_a_role_that_is_set_is_not_guessed_again():
    table = Table.from_columns(
        {"ra": [1.0], "J": [1.0]}, info={"ra": ColumnInfo(role=Role.FEATURE)}
    )
    assert with_guessed_roles(table).info("ra").role is Role.FEATURE
    # The table names its features: no other column is one.
    assert judge(table)["J"].why == UNNAMED
    assert with_guessed_roles(table).info("J").role is Role.OTHER


def test_positions_behind_which_match_put_the_name_of_a_survey_are_positions():
    columns = {"ra": 1, "ra_near": 2, "dec_near": 3, "sep_near": 4, "J_near": 5}
    columns = {name: [k / 7, k / 9] for name, k in columns.items()}
    found = judge(Table.from_columns(columns))
    assert [str(each.role) for each in found.values()] == [*["position"] * 3, "other", "feature"]
    assert judge(Table.from_columns({"ra": [1.0, 2.0], "ra_near": [1.0, 2.0]}))[
        "ra_near"
    ].is_feature


def test_reading_guesses_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("ra,dec\n1.5,2.5\n")
    table = read_table(tmp_path / "t.csv")
    assert {table.info(name).role for name in table.names} == {Role.OTHER}


def test_values_can_take_the_role_of_a_feature_away():
    n = 60
    table = Table.from_columns(
        {
            "J": np.linspace(14, 15, n),
            "same": np.where(np.arange(n) % 2, 3.5, np.nan),
            "nothing": np.full(n, np.nan),
            "written": [f" {i / 7:.3f}" for i in range(n)],
            "dots": ["..." if i == 7 else f"{i / 7:.3f}" for i in range(n)],
            "comma": [f"{i},5" for i in range(n)],
            "few": ["0.5" if i % 6 == 0 else "..." for i in range(n)],
            "limits": ["<4.0" if i % 2 else "5.1" for i in range(n)],
            "note": ["seen twice"] * n,
            "star": 1e9 + np.arange(n),
            "bright": 1e9 + np.arange(n) // 3,
        }
    )
    found = judge(table)
    assert {name: each.why for name, each in found.items() if not each.is_feature} == {
        "same": CONSTANT,
        "nothing": EMPTY,
        "dots": WORDS,
        "comma": WORDS,
        "few": WORDS,
        "limits": WORDS,
        "note": "text",
        "star": "large whole numbers, hardly any twice",
    }
    assert (found["dots"].example, found["comma"].example) == ("'...'", "'0,5'")
    assert found["written"].why == AS_TEXT
    assert found["star"].role is Role.IDENTIFIER


RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, 300)
KINDS = np.array(["a", "b", "c"])[CODES]


def beside_class(values, kinds=KINDS):
    return judge(Table.from_columns({"x": values, "kind": kinds}), "kind")["x"]


@pytest.mark.parametrize(
    ("values", "is_copy"),
    [
        (CODES * 1.0, True),
        (np.where(np.arange(300) < 100, np.nan, CODES), True),
        (10.0 * CODES + np.arange(300) % 3, True),
        (10.0 * CODES + np.arange(300) % 4, False),
        ((CODES > 0) * 1.0, False),
        (np.where(np.arange(300) < 1, 1 - CODES, CODES), False),
    ],
    ids=["code", "gaps", "three values", "four values", "flag", "one wrong"],
)
def test_a_column_that_is_the_class_again_is_left_out(values, is_copy):
    assert (beside_class(values).why == COPY) == is_copy


@pytest.mark.parametrize(
    ("values", "tells"),
    [
        (-5.0 * CODES + RNG.normal(0, 0.1, 300), "abc"),
        (np.where(CODES == 1, np.nan, RNG.normal(size=300)), "b"),
        (np.where(CODES == 1, RNG.uniform(3, 4, 300), RNG.uniform(0, 2, 300)), "b"),
        (np.where(CODES == 1, -np.inf, RNG.normal(size=300)), "b"),
        (1e-18 * (CODES == 1) + RNG.uniform(0, 1e-20, 300), "b"),
        (CODES + RNG.normal(0, 0.4, 300), ""),
        (RNG.normal(size=300), ""),
    ],
    ids=["noisy code", "gaps of one", "one apart", "infinite", "tiny", "strong", "noise"],
)
def test_a_feature_that_gives_a_class_away_is_named_and_a_strong_one_is_not(values, tells):
    found = beside_class(values)
    assert (found.is_feature, "".join(found.tells)) == (True, tells)


def test_a_common_class_is_not_given_away_by_being_common():
    few = np.where(np.arange(2000) < 15, "rare", "common")
    assert beside_class(RNG.normal(size=2000), few).tells == ()
    assert beside_class(np.where(few == "rare", 5.0, RNG.normal(size=2000)), few).tells == (
        "common",
        "rare",
    )


def test_objects_without_a_class_and_rare_classes_do_not_hide_a_copy():
    none = np.array([None if i % 2 else kind for i, kind in enumerate(KINDS)], object)
    assert beside_class(CODES * 1.0, none).why == COPY
    none[:6] = "odd"
    assert beside_class(CODES * 1.0, none).why == COPY


def test_repeated_objects_with_gaps_give_no_class_away():
    x, other = RNG.normal(size=(2, 60))
    other[::3] = np.nan
    columns = {"x": np.tile(x, 4), "y": np.tile(x + 1, 4), "z": np.tile(other, 4)}
    kinds = np.tile(np.arange(60) % 2, 4)
    found = judge(Table.from_columns({**columns, "kind": np.array(["a", "b"])[kinds]}), "kind")
    assert all(found[name].tells == () for name in "xyz")
    same = Table.from_columns({"x": [1.0] * 30, "y": [2.0] * 30, "kind": ["a"] * 30})
    assert judge(same, "kind")["kind"].role is Role.LABEL


def test_other_columns_of_classes_are_no_features():
    columns = {"x": RNG.normal(size=300), "kind": KINDS, "type": CODES}
    found = judge(Table.from_columns(columns), "kind")
    assert (found["kind"].role, found["type"].why) == (Role.LABEL, OTHER_CLASS)
    assert judge(Table.from_columns(columns))["type"].role is Role.LABEL


@given(st.integers(1, 5000), st.integers(1, 50))
def test_rows_that_are_looked_at_are_evenly_spaced_and_few(n_rows, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skyfill.catalog.roles.MOST_ROWS", most)
        rows = thinned(Table.from_columns({"i": np.arange(n_rows)})).numbers("i")[:, 0]
    assert len(rows) <= most
    assert rows[0] == 0
    assert len(rows) == n_rows or (2 * len(rows) >= most and len(set(np.diff(rows))) <= 1)
