"""What a model does to one table, whatever else the table holds."""

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.classify import CatalogClassifier
from skyfill.errors import CatalogError, ModelError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Filling,
    Scoring,
    classify_table,
    fill_table,
    train_classifier,
)
from tests.stars import explained_table


def test_filled_cells_get_value_sd_and_reason_and_seen_cells_stay_bit_for_bit(star_model):
    table = explained_table(100, seed=1)
    lost = np.isnan(table.numbers("I")[:, 0])
    done = fill_table(star_model, table, Filling(quantiles=(0.16, 0.84), n_draws=2))
    assert (done.numbers("I")[~lost] == table.numbers("I")[~lost]).all()
    assert done.column("id").equals(table.column("id"))
    assert not np.isnan(done.numbers("I")).any()
    assert np.abs(done.numbers("I") - done.numbers("V") + 0.8).max() < 1.5
    for name in ("I_sd", "I_q16", "I_q84", "I_draw1", "I_draw2"):
        assert (np.isnan(done.numbers(name)[:, 0]) == ~lost).all()
        assert done.info(name).unit == "mag"
        assert done.info(name).role is Role.ERROR
    assert (done.numbers("I_q16")[lost] < done.numbers("I_q84")[lost]).all()
    assert done.reasons("I").to_pylist() == ["filled" if gap else None for gap in lost]
    assert done.column("I_was").to_pylist() == table.reasons("I").to_pylist()


@pytest.mark.parametrize("prefix", ["", "sf_"])
def test_filling_a_filled_table_changes_nothing(star_model, prefix):
    how = Filling(quantiles=(0.16,), n_draws=1, prefix=prefix)
    done = fill_table(star_model, explained_table(50, seed=1), how)
    again = fill_table(star_model, done, how)
    assert again.arrow.equals(done.arrow)
    more = fill_table(star_model, done, Filling(quantiles=(0.84,), prefix=prefix))
    assert more.numbers("I").tolist() == done.numbers("I").tolist()
    assert more.column(f"{prefix}I_q84").null_count == done.column(f"{prefix}I_q16").null_count


@pytest.mark.parametrize("name", ["I_sd", "i_SD", "V_gap", "I_q16", "V_draw1"])
def test_measured_columns_with_the_names_of_results_are_never_replaced(star_model, name):
    table = explained_table(20).with_column(
        name, np.arange(20.0), ColumnInfo("mag", role=Role.ERROR)
    )
    with pytest.raises(CatalogError, match=rf"column '{name}' has the name of a result"):
        fill_table(star_model, table, Filling(quantiles=(0.16,), n_draws=1))
    done = fill_table(star_model, table, Filling(quantiles=(0.16,), n_draws=1, prefix="sf_"))
    assert done.column(name).equals(table.column(name))
    assert done.info(name) == table.info(name)


def test_integers_that_doubles_cannot_hold_are_refused_not_changed(star_model):
    table = explained_table(3).with_column("V", [1, None, 2**53 + 1])
    with pytest.raises(CatalogError, match=r"column 'V', row 3: 9007199254740993 has more digits"):
        fill_table(star_model, table)
    exact = fill_table(star_model, table.with_column("V", [2**53, 1, -(2**53)]))
    assert exact.numbers("V")[:, 0].tolist() == [2**53, 1, -(2**53)]


def test_columns_in_another_order_unit_or_absent_are_understood(star_model):
    table = explained_table(60, seed=2)
    plain = fill_table(star_model, table)
    turned = fill_table(star_model, table.select(["I_gap", "I", "id", "V"]))
    assert np.array_equal(turned.numbers("I"), plain.numbers("I"))
    milli = table.with_column("V", table.numbers("V")[:, 0] * 1000).with_info("V", unit="mmag")
    assert np.allclose(fill_table(star_model, milli).numbers("I"), plain.numbers("I"))
    alone = fill_table(star_model, table.select(["V"]))
    assert alone.info("I").unit == "mag"
    assert set(alone.reasons("I").to_pylist()) == {"filled"}


def test_a_column_with_the_name_of_a_result_is_never_replaced(star_model):
    names = ["RRL" if v < 18 else "QSO" for v in explained_table().numbers("V")[:, 0]]
    imputer = NetworkImputer(1, n_fits=1, refine=None)
    small = CatalogClassifier("forest", n_trees=5, imputer=imputer)
    table = explained_table().with_column("class", names).with_meta(citation="Jones 2017")
    classifier, _ = train_classifier(table, ["V", "I"], "class", classifier=small)
    with pytest.raises(CatalogError, match=r"column 'class' has the name of a result.*--prefix"):
        classify_table(classifier, table, Scoring(prefix=""))
    done = classify_table(classifier, table)
    assert done.select(table.names).arrow.equals(table.arrow)
    assert done.info("sf_class").description == "Most probable class"
    assert done.meta["citation"] == "Jones 2017"
    with pytest.raises(ModelError, match="trained without labels"):
        classify_table(star_model, table)


@pytest.mark.parametrize("prefix", ["sf_", "", "my_"])
def test_classifying_again_replaces_what_an_earlier_run_or_another_model_said(prefix):
    table, how = explained_table().drop(["I_gap"]), Scoring(prefix=prefix)
    names = ["RRL" if v < 18 else "QSO" for v in table.numbers("V")[:, 0]]
    imputer = NetworkImputer(1, n_fits=1, refine=None)
    small = CatalogClassifier("forest", n_trees=5, imputer=imputer)
    labelled = table.with_column("kind", names)
    first, _ = train_classifier(labelled, ["V", "I"], "kind", classifier=small)
    other = labelled.with_column("kind", [{"RRL": "LPV"}.get(name, name) for name in names])
    second, _ = train_classifier(other, ["V", "I"], "kind", classifier=small)
    done = classify_table(first, table, how)
    assert classify_table(first, done, how).arrow.equals(done.arrow)
    again = classify_table(second, done, how)
    assert again.select(again.names).arrow.equals(classify_table(second, table, how).arrow)
    assert f"{prefix}p_RRL" not in again.names
    # Behind the identifier, before all else.
    place = table.names.index("id") + 1
    assert again.names[:place] == table.names[:place]
    assert again.names[place] == f"{prefix}class"
    # Names alone are enough where they have our own prefix.
    bare = Table.from_columns({name: done.column(name) for name in done.names})
    if prefix == "sf_":
        assert classify_table(second, bare).names == again.names
        return
    with pytest.raises(CatalogError, match="the name"):
        classify_table(second, bare, how)
