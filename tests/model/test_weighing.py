"""Associations weighed by their probabilities: sums that can be done by hand, and the commands."""

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli.main import main
from skyfill.errors import CatalogError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    classify_associations,
    classify_table,
    fill_associations,
    fill_table,
    save_model,
    train_classifier,
)
from skyfill.model.weighing import Weights, position_bits

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    red = rng.random(400) < 0.5
    v = rng.normal(18, 1, 400)
    i = v - np.where(red, 1.5, 0.2) + rng.normal(0, 0.2, 400)
    columns = {"V": v, "I": i, "class": np.where(red, "red", "blue")}
    table = Table.from_columns(columns, info=INFO)
    small = CatalogClassifier(
        "forest", n_trees=20, imputer=NetworkImputer(2, n_fits=1, refine=None), random_state=0
    )
    return train_classifier(table, ["V", "I"], "class", classifier=small)[0]


def associations(p=(0.2, 0.5, 0.3, 1.0)):
    """Object 4: none, a red and a blue counterpart; object 9: a blue one, for certain."""
    columns = {
        "base_row": [4, 4, 4, 9],
        "prob_association": list(p),
        "V": [18.0, 18.0, 18.0, 17.0],
        "I": [np.nan, 16.5, 17.8, 16.8],
    }
    return Table.from_columns(columns, info=INFO)


def test_class_probabilities_are_the_weighted_sum_over_associations(model):
    table = associations()
    each = classify_table(model, table).numbers("sf_p_red", "sf_p_blue")
    done = classify_associations(model, table)
    assert len(done) == 2
    expected = [0.2 * each[0] + 0.5 * each[1] + 0.3 * each[2], each[3]]
    assert_allclose(done.numbers("sf_p_red", "sf_p_blue"), expected)
    assert done.numbers("base_row")[:, 0].tolist() == [4, 9]
    assert done.numbers("I")[:, 0].tolist() == [16.5, 16.8]
    assert done.column("sf_class").to_pylist() == ["red", "blue"]


def test_the_share_of_doubt_that_comes_from_the_counterpart_is_the_mutual_information(model):
    done = classify_associations(model, associations())
    share = done.numbers("sf_counterpart_share")[:, 0]
    assert share[0] > 0.3
    assert share[1] == pytest.approx(0.0, abs=1e-9)


def test_two_certain_classes_with_equal_odds_are_one_bit_of_position():
    weights = Weights(np.array([0, 0, 1]), np.array([0.5, 0.5, 1.0]))
    P = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert_allclose(position_bits(P, weights), [1.0, 0.0])


def test_filled_values_are_mixtures_over_associations_and_certain_ones_stay(model):
    table = associations()
    each = fill_table(model, table).numbers("I", "I_sd")
    done = fill_associations(model, table)
    p, values = np.array([0.2, 0.5, 0.3]), each[:3, 0]
    sd = np.nan_to_num(each[:3, 1])
    mean = p @ values
    spread = np.sqrt(p @ (values**2 + sd**2) - mean**2)
    assert_allclose(done.numbers("I", "I_sd")[0], [mean, spread])
    assert done.numbers("I")[1, 0] == 16.8
    assert np.isnan(done.numbers("I_sd")[1, 0])
    assert_array_equal(done.numbers("V")[:, 0], [18.0, 17.0])
    assert done.reasons("I").to_pylist() == ["filled", None]


def test_probabilities_that_do_not_sum_to_one_are_refused(model):
    with pytest.raises(CatalogError, match=r"base_row 4 sum to 0\.9, not to 1"):
        classify_associations(model, associations((0.2, 0.5, 0.2, 1.0)))


def test_the_commands_weigh_a_table_of_all_associations(model, tmp_path):
    save_model(model, tmp_path / "m.skyfill")
    write_table(associations(), tmp_path / "all.parquet")
    for command in ("classify", "impute"):
        words = [
            command,
            tmp_path / "m.skyfill",
            tmp_path / "all.parquet",
            "-o",
            tmp_path / "o.csv",
        ]
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 0, done.output
        assert "4 associations of 2 objects weighed" in done.stderr
        assert len(read_table(tmp_path / "o.csv")) == 2
        refused = CliRunner().invoke(main, [*map(str, words), "--resume"])
        assert refused.exit_code == 2
        assert "leave out --scheduler and --resume" in refused.stderr


def in_a_folder(table, place):
    """Two files; the associations of an object are in both."""
    place.mkdir()
    for k, rows in enumerate(([0, 2], [1, 3])):
        write_table(Table(table.arrow.take(rows)), place / f"part{k}.parquet")
    return str(place)


def in_hats(table, place):
    hats = pytest.importorskip("skyfill.scale.hats", exc_type=ImportError)
    placed = table.with_column("ra", [10.0, 10.0, 10.0, 200.0]).with_column("dec", [0.0] * 4)
    hats.write_hats(placed, place, partition_rows=3, margin_arcsec=1)
    return f"hats://{place}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LSDB uses what pandas deprecates
@pytest.mark.parametrize("write", [in_a_folder, in_hats])
def test_associations_in_folders_and_hats_are_weighed_like_those_in_a_file(model, tmp_path, write):
    if write is in_hats:
        pytest.importorskip("lsdb", exc_type=ImportError)
    save_model(model, tmp_path / "m.skyfill")
    place = write(associations(), tmp_path / "all")
    alone = {"classify": classify_associations, "impute": fill_associations}
    for command, weigh in alone.items():
        words = (command, tmp_path / "m.skyfill", place, "-o", tmp_path / "o.parquet")
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 0, done.output
        found, expected = read_table(tmp_path / "o.parquet"), weigh(model, associations())
        assert found.numbers("base_row")[:, 0].tolist() == [4, 9]
        name = "sf_p_red" if command == "classify" else "I"
        assert_allclose(found.numbers(name), expected.numbers(name), rtol=1e-9)


def test_next_answers_a_better_position_where_the_counterpart_decides(model, tmp_path):
    save_model(model, tmp_path / "m.skyfill")
    write_table(associations((0.0, 0.5, 0.5, 1.0)), tmp_path / "all.parquet")
    words = ["next", tmp_path / "m.skyfill", tmp_path / "all.parquet", "-o", tmp_path / "plan.csv"]
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 0, done.output
    plan = read_table(tmp_path / "plan.csv")
    assert plan.column("sf_next").to_pylist()[0] == "position"
    assert plan.numbers("sf_bits_position")[0, 0] > 0.3
    assert plan.numbers("sf_bits_position")[1, 0] == pytest.approx(0.0, abs=1e-9)
