"""Which features belong together."""

import pytest

from skyfill.catalog import Table
from skyfill.errors import CatalogError
from skyfill.evaluate import find_surveys, guess_groups, name_groups, survey_columns
from skyfill.model import Feature

JOINED = ["V", "V_sage", "m36_sage", "J_nir"]


@pytest.mark.parametrize(
    ("text", "columns"), [("sage", [1, 2]), ("V", [0]), ("red=m36_sage, J_nir", [2, 3])]
)
def test_a_survey_is_an_ending_or_a_list_of_features(text, columns):
    assert survey_columns(JOINED, text) == columns


def test_surveys_are_those_asked_for_else_those_that_a_match_noted():
    table = Table.from_columns({name: [1.0] for name in JOINED})
    table = table.with_meta(match_sage="{}", match_nir="{}", match_wise="{}")
    assert find_surveys(table, JOINED) == {"sage": [1, 2], "nir": [3]}
    assert find_surveys(table, JOINED, ["mine=V,J_nir"]) == {"mine": [0, 3]}


def test_groups_are_read_and_the_rest_is_other():
    groups = name_groups(["V", "J", "K", "eta"], ["2MASS=J, K", "UBVI=V"])
    assert groups == {"2MASS": ("J", "K"), "UBVI": ("V",), "other": ("eta",)}


@pytest.mark.parametrize("text", ["2MASS", "=J", "2MASS="])
def test_a_group_that_names_nothing_is_refused(text):
    with pytest.raises(CatalogError, match="write NAME or NAME=COLUMN"):
        name_groups(["J"], [text])


def test_a_group_with_an_unknown_feature_is_refused():
    with pytest.raises(CatalogError, match="no feature 'H'"):
        name_groups(["J"], ["2MASS=J,H"])


def test_surveys_of_a_join_are_groups():
    features = [Feature("V"), Feature("J_two_mass"), Feature("m36_sage")]
    groups = guess_groups(features, ["V", "sep_two_mass", "sep_sage"])
    assert groups == {"base": ("V",), "two_mass": ("J_two_mass",), "sage": ("m36_sage",)}


def test_without_a_join_ucds_decide():
    features = [
        Feature("V", ucd="phot.mag;em.opt.V"),
        Feature("P", ucd="time.period"),
        Feature("x"),
    ]
    assert list(guess_groups(features)) == ["optical", "variability", "other"]


def test_where_nothing_is_known_there_is_one_group():
    assert guess_groups([Feature("a"), Feature("b")]) == {"features": ("a", "b")}
