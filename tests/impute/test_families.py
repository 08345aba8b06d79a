"""Forests of columns that are often missing with others: one for such gaps, one for the rest."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.impute import NetworkImputer
from skyfill.impute.hidden_views import kinds_of
from skyfill.impute.refined_network import RefinedNetwork
from skyfill.impute.refinement import Refinement, lacks_family
from skyfill.network import Cells


def survey_table(n=600, seed=0):
    """The last three columns are of one survey; the third is nearly a function of the fourth."""
    rng = np.random.default_rng(seed)
    a, b, c, noise = rng.normal(size=(4, n))
    # Away from 0, where a column would end by nature.
    rule = 5 + np.abs(c) + 0.02 * noise
    truth = np.column_stack([a, b, rule, c, np.abs(a) + 0.3 * c])
    lost = rng.random(truth.shape) < 0.08
    lost[rng.random(n) < 0.25, 2:] = True
    return truth, np.where(lost, np.nan, truth)


@pytest.fixture(scope="module")
def fitted():
    X = survey_table()[1]
    return NetworkImputer(1, n_fits=1, shrinkage=5.0, refine="trees", random_state=0).fit(X)


def test_families_are_what_is_missing_together():
    cells = Cells(survey_table(5000)[1])
    for j in (2, 3, 4):
        usual, apart = kinds_of(cells, j)
        assert set(np.flatnonzero(usual.family)) == {2, 3, 4} - {j}
        assert (usual.apart, apart.apart) == (False, True)
        assert (usual.alone, apart.alone) == (1.0, 0.0)
    (only,) = kinds_of(cells, 0)
    assert not only.family.any()
    assert only.alone == 0.5


def test_a_row_lacks_a_family_if_half_of_it_is_missing():
    lost = np.array([[0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0]], bool)
    assert lacks_family(lost, np.array([1, 1, 0, 1], bool)).tolist() == [False, False, True]
    assert lacks_family(lost, np.array([1, 1, 0, 0], bool)).tolist() == [False, True, True]
    assert not lacks_family(lost, np.zeros(4, bool)).any()


def test_a_rule_within_the_survey_is_used_where_it_can_be(fitted):
    truth, new = survey_table(3000, 1)
    lost = np.isnan(new[:, 2])
    error, alone = (fitted.transform(new) - truth)[:, 2], ~np.isnan(new[:, 3])
    assert error[lost & alone].std() < 0.25
    assert error[lost & ~alone].std() > 0.5
    low, high = fitted.interval(new)
    for rows in (lost & alone, lost & ~alone):
        assert ((low <= truth) & (truth <= high))[rows, 2].mean() > 0.84
    width = (high - low)[:, 2]
    assert np.median(width[lost & alone]) < 0.7 * np.median(width[lost & ~alone])


def test_a_forest_is_for_its_kind_of_gaps_only(fitted):
    new, found = survey_table(300, 2)[1], fitted.refinement_
    # The last column is nearly the size of the first, which is there without the family, too.
    assert found.columns.tolist().count(4) == 2
    none = found.mean._replace(weight=np.where(found.apart, 0.0, found.mean.weight))
    flat = found.shape._replace(weight=np.where(found.apart, 0.0, found.shape.weight))
    less = RefinedNetwork(fitted.network_, replace(found, mean=none, shape=flat))
    whole, lacking = RefinedNetwork(fitted.network_, found), found.lies_apart(np.isnan(new))
    for before, after in (
        (whole.posterior(new).mean, less.posterior(new).mean),
        (whole.quantiles(new, [0.2])[0], less.quantiles(new, [0.2])[0]),
        (whole.draws(new, 1, 0)[0], less.draws(new, 1, 0)[0]),
    ):
        assert_array_equal(before[~lacking], after[~lacking])
        assert (before != after)[:, 2:].any()
    mixture = fitted.network_.posterior(new).mean
    assert_array_equal(less.posterior(new).mean[lacking], mixture[lacking])


def test_a_row_is_filled_alone_as_among_others(fitted):
    new = survey_table(40, 3)[1]
    for ask in (fitted.transform, lambda X: fitted.quantiles(X, [0.1, 0.9])[1]):
        assert_allclose(np.vstack([ask(row[None]) for row in new]), ask(new), rtol=1e-9)


def test_arrays_make_the_same_refinement(fitted):
    arrays = fitted.refinement_.arrays()
    again = Refinement.from_arrays(arrays, 5).arrays()
    assert arrays.keys() == again.keys()
    for name, array in arrays.items():
        assert_array_equal(again[name], array)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {k: v for k, v in a.items() if k != "apart"}, "not complete"),
        (lambda a: a | {"family": a["family"][:, :2]}, "wrong type or shape"),
        (lambda a: a | {"apart": a["apart"].astype(float)}, "wrong type or shape"),
        (lambda a: a | {"apart": ~a["apart"]}, "rise"),
    ],
)
def test_forged_families_are_refused(fitted, change, words):
    with pytest.raises(ValueError, match=words):
        Refinement.from_arrays(change(fitted.refinement_.arrays()), 5)
