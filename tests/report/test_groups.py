"""Which features belong together."""

import pytest

from skyfill.errors import CatalogError
from skyfill.model import Feature
from skyfill.report import guess_groups, parse_groups


def test_groups_are_read_and_the_rest_is_other():
    groups = parse_groups(["2MASS=J, K", "UBVI=V"], ["V", "J", "K", "eta"])
    assert groups == {"2MASS": ("J", "K"), "UBVI": ("V",), "other": ("eta",)}


@pytest.mark.parametrize("text", ["2MASS", "=J", "2MASS="])
def test_a_group_that_names_nothing_is_refused(text):
    with pytest.raises(CatalogError, match="write NAME=COLUMN"):
        parse_groups([text], ["J"])


def test_a_group_with_an_unknown_feature_is_refused():
    with pytest.raises(CatalogError, match="no feature 'H'"):
        parse_groups(["2MASS=J,H"], ["J"])


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
