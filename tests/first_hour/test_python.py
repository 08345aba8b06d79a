"""The same eight tables from Python, each as the object in which its users hold it."""

import astropy.table
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyfill


def of_blanks(path):
    return astropy.table.Table.read(path, format="ascii.commented_header")


READERS = {
    "survey": pd.read_csv,
    "fits": astropy.table.Table.read,
    "votable": astropy.table.Table.read,
    "blanks": of_blanks,
    "spreadsheet": lambda path: pd.read_csv(path, sep=";", decimal=","),
    "ecsv": astropy.table.Table.read,
    "parquet": pd.read_parquet,
    "wide": lambda path: pl.read_csv(path, null_values="NaN"),
}
# Learned again from Python; for the others the file of the shell is loaded.
TRAINED = ("spreadsheet", "parquet", "fits")


def numbers(table, column):
    """Return a column of any kind of table, NaN where there is no value."""
    if isinstance(table, pl.DataFrame):
        return table[column].cast(pl.Float64).to_numpy()
    if isinstance(table, pd.DataFrame):
        return table[column].to_numpy(float, na_value=np.nan)
    return np.ma.filled(np.ma.asarray(table[column]).astype(float), np.nan)


def words(table, column):
    return np.asarray(table[column]).astype(str)


def names_of(table):
    return table.colnames if isinstance(table, astropy.table.Table) else list(table.columns)


@pytest.fixture
def case(hour):
    """A table, its fresh rows as an object, and the model."""
    read = READERS[hour.folder.name]
    return hour, read(hour.table.fresh), skyfill.load_model(hour.model)


# Every kind of note of the shell is one warning; which there are is seen in the shell's tests.
pytestmark = pytest.mark.filterwarnings("ignore::skyfill.errors.SkyfillWarning")


def test_the_same_kind_of_table_comes_back_with_the_numbers_of_the_shell(case):
    hour, fresh, model = case
    rows, shell = model.classify(fresh), pd.read_csv(hour.classified)
    assert type(rows) is type(fresh)
    assert set(names_of(fresh)) <= set(names_of(rows))
    added = [name for name in names_of(rows) if name.startswith("sf_")]
    assert added == [name for name in shell if name.startswith("sf_")]
    assert (words(rows, "sf_class") == shell["sf_class"].to_numpy(str)).all()
    for name in [name for name in added if shell[name].dtype == float]:
        np.testing.assert_array_equal(numbers(rows, name), shell[name])


def test_gaps_are_filled_with_the_numbers_of_the_shell(case):
    hour, fresh, model = case
    rows, shell = model.impute(fresh), pd.read_csv(hour.filled)
    assert type(rows) is type(fresh)
    for name in hour.table.features:
        np.testing.assert_array_equal(numbers(rows, name), shell[name])
        np.testing.assert_array_equal(numbers(rows, f"{name}_sd"), shell[f"{name}_sd"])


def test_indices_units_and_masks_are_kept(case):
    _, fresh, model = case
    rows = model.classify(fresh)
    if isinstance(fresh, pd.DataFrame):
        pd.testing.assert_frame_equal(rows[list(fresh)], fresh)
    elif isinstance(fresh, pl.DataFrame):
        assert rows.select(fresh.columns).equals(fresh)
    else:
        for name in fresh.colnames:
            assert rows[name].unit == fresh[name].unit
            same = np.ma.allequal(rows[name], fresh[name], fill_value=False)
            assert same or (np.ma.getmaskarray(rows[name]) == np.ma.getmaskarray(fresh[name])).all()


@pytest.mark.parametrize("name", TRAINED)
def test_python_learns_the_model_of_the_shell(first_hour, name, tmp_path):
    hour = first_hour(name)
    model = skyfill.train(READERS[name](hour.table.train), label=hour.table.label)
    assert model.identifier == skyfill.load_model(hour.model).identifier
    model.save(tmp_path / "m.skyfill")
    assert skyfill.load_model(tmp_path / "m.skyfill").identifier == model.identifier


def test_an_arrow_table_comes_back_as_one(first_hour):
    hour = first_hour("spreadsheet")
    fresh = pa.Table.from_pandas(READERS["spreadsheet"](hour.table.fresh))
    rows = skyfill.load_model(hour.model).classify(fresh)
    assert isinstance(rows, pa.Table)
    assert rows.column("sf_entropy").to_pylist() == pd.read_csv(hour.classified).sf_entropy.tolist()
