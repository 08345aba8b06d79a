"""What a model does to one table, whatever else the table holds."""

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.classify import CatalogClassifier
from skyfill.errors import ModelError
from skyfill.impute import NetworkImputer
from skyfill.model import Filling, classify_table, fill_table, train, train_classifier

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


def make_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    i = v - 0.8 + rng.normal(0, 0.2, n)
    i = np.where(rng.random(n) < 0.3, np.nan, i)
    table = Table.from_columns({"id": np.arange(n), "V": v, "I": i}, info=INFO)
    return table.with_reasons("I", [None if np.isfinite(x) else "unmatched" for x in i])


@pytest.fixture(scope="module")
def model():
    return train(make_table(), ["V", "I"], n_components=2, n_fits=2)[0]


def test_filled_cells_get_value_sd_and_reason_and_seen_cells_stay_bit_for_bit(model):
    table = make_table(100, seed=1)
    lost = np.isnan(table.numbers("I")[:, 0])
    done = fill_table(model, table, Filling(quantiles=(0.16, 0.84), n_draws=2))
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


def test_columns_in_another_order_unit_or_absent_are_understood(model):
    table = make_table(60, seed=2)
    plain = fill_table(model, table)
    turned = fill_table(model, table.select(["I_gap", "I", "id", "V"]))
    assert np.array_equal(turned.numbers("I"), plain.numbers("I"))
    milli = table.with_column("V", table.numbers("V")[:, 0] * 1000).with_info("V", unit="mmag")
    assert np.allclose(fill_table(model, milli).numbers("I"), plain.numbers("I"))
    alone = fill_table(model, table.select(["V"]))
    assert alone.info("I").unit == "mag"
    assert set(alone.reasons("I").to_pylist()) == {"filled"}


def test_a_column_whose_name_a_result_needs_is_kept_with_all_that_is_known_of_the_table(model):
    names = ["RRL" if v < 18 else "QSO" for v in make_table().numbers("V")[:, 0]]
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1))
    table = make_table().with_column("class", names).with_meta(citation="Jones 2017")
    classifier, _ = train_classifier(table, ["V", "I"], "class", classifier=small)
    done = classify_table(classifier, table)
    assert done.column("class_was").to_pylist() == names
    assert done.names[: len(table.names)] == tuple(
        "class_was" if name == "class" else name for name in table.names
    )
    assert done.meta == {"citation": "Jones 2017"}
    with pytest.raises(ModelError, match="trained without labels"):
        classify_table(model, table)
