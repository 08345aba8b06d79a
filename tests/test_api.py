"""Python's own door: the numbers of the shell, and tables of all kinds that come back as such."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from astropy import units as u
from astropy.table import MaskedColumn, QTable
from astropy.table import Table as Astropy
from astropy.time import Time
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import skyfill
from skyfill.catalog import Table, read_table, write_table
from skyfill.catalog.frames import as_given, as_table
from skyfill.cli.main import main
from skyfill.errors import CatalogError, ModelError, SkyfillWarning

SMALL = {
    "components": 2,
    "fits": 1,
    "refine": "off",
    "method": "forest",
    "trees": 10,
    "role": {"e_V": "error:V"},
    "errors": "on",
}
PLAIN = {**SMALL, "method": None, "trees": None}
TYPED = [
    *("--components", "2", "--fits", "1", "--refine", "off", "--method", "forest"),
    *("--trees", "10", "--role", "e_V=error:V", "--errors", "on"),
]


def make_frame(n=240, seed=0):
    """Stars with gaps, -999, an error, an identifier, text, a whole number and a class."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n) < 0.5, "RRL", "QSO")
    V = rng.normal(18, 1, n)
    frame = pd.DataFrame(
        {
            "source_id": np.arange(n) + 4_611_686_018_427_387_904,
            "V": V + rng.normal(0, 0.2, n),
            "e_V": rng.uniform(0.1, 0.3, n),
            "I": V - 0.8 + (kind == "RRL") + rng.normal(0, 0.2, n),
            "W1": V - 2.0 + rng.normal(0, 0.4, n),
            "n_obs": rng.poisson(30, n),
            "note": rng.choice(["", "blend", "see text"], n),
            "type": np.where(rng.random(n) < 0.1, None, kind),
        }
    )
    frame.loc[rng.random(n) < 0.3, "I"] = np.nan
    frame.loc[rng.random(n) < 0.1, "W1"] = -999.0
    frame["n_obs"] = frame["n_obs"].astype("Int64").mask(rng.random(n) < 0.05)
    return frame


def as_kind(frame, kind):
    """Give the same cells as a table of another package."""
    if kind == "odd pandas":
        odd = frame.assign(note=frame["note"].astype("category"), type=frame["type"].astype("str"))
        odd["V"] = odd["V"].astype(object)
        odd["I"] = odd["I"].astype("Float64")
        odd["source_id"] = odd["source_id"].astype("UInt64")
        return odd.set_index(pd.Index(np.arange(len(odd))[::-1] // 2, name="row"))
    if kind == "polars":
        return pl.from_pandas(frame)
    if kind == "arrow":
        return pa.Table.from_pandas(frame)
    if kind == "astropy":
        table = Astropy({name: frame[name].to_numpy() for name in ("source_id", "V", "e_V", "W1")})
        table["I"] = MaskedColumn(frame["I"].fillna(0.0), mask=frame["I"].isna())
        lost = frame["n_obs"].isna()
        table["n_obs"] = MaskedColumn(frame["n_obs"].fillna(0).astype(int), mask=lost)
        for name in ("note", "type"):
            texts = frame[name].fillna("").astype(str).to_numpy(str)
            table[name] = MaskedColumn(texts, mask=texts == "")
        return table[list(frame.columns)]
    return frame


@pytest.fixture(scope="module")
def by_shell(tmp_path_factory):
    """What the shell makes of a CSV file: model, classes and filled table."""
    folder = tmp_path_factory.mktemp("shell")
    make_frame().to_csv(folder / "stars.csv", index=False)
    make_frame(seed=1).to_csv(folder / "others.csv", index=False)
    words = [str(folder / "stars.csv"), "--label", "type", *TYPED, "-o", str(folder / "m.skyfill")]
    places = [str(folder / "m.skyfill"), str(folder / "others.csv")]
    classes, filled = folder / "classes.parquet", folder / "filled.parquet"
    said = {}
    for command in (
        ["train", *words],
        ["classify", *places, "--prefix", "sf_", "-o", str(classes)],
        ["impute", *places, "--quantiles", "0.16,0.84", "--draws", "2", "-o", str(filled)],
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
        said[command[0]] = result.stderr.splitlines()
    return folder, said, read_table(classes), read_table(filled)


def quietly(call, *args, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return call(*args, **options), found


@pytest.mark.parametrize("kind", ["path", "pandas", "odd pandas", "polars", "arrow", "astropy"])
def test_python_has_the_bits_of_the_shell(by_shell, kind):
    folder, _, classes, filled = by_shell
    stars, others = (as_kind(make_frame(seed=seed), kind) for seed in (0, 1))
    if kind == "path":
        stars, others = folder / "stars.csv", str(folder / "others.csv")
    model, _ = quietly(skyfill.train, stars, "type", **SMALL)
    assert model.identifier == skyfill.load_model(folder / "m.skyfill").identifier
    found, _ = quietly(model.classify, others, prefix="sf_")
    again, _ = quietly(model.impute, others, quantiles=[0.16, 0.84], draws=2)
    for one, two in ((found, classes), (again, filled)):
        mine = one if isinstance(one, Table) else as_table(one)
        assert mine.names == two.names
        for name in two.names:
            assert mine.column(name).to_pylist() == two.column(name).to_pylist(), name


def test_what_the_shell_prints_is_a_warning_each(by_shell):
    _, said, _, _ = by_shell
    kinds = ("guessed: ", "declared: ", "converted: ", "warning: ")
    model, found = quietly(skyfill.train, make_frame(), "type", **SMALL)
    assert all(issubclass(each.category, SkyfillWarning) for each in found)
    assert {each.filename for each in found} == {__file__}
    lines = [line.removeprefix("warning: ") for line in said["train"] if line.startswith(kinds)]
    assert [str(each.message) for each in found] == lines
    _, found = quietly(model.classify, make_frame(seed=1), prefix="sf_")
    lines = [line.removeprefix("warning: ") for line in said["classify"] if line.startswith(kinds)]
    assert [str(each.message) for each in found] == lines


@pytest.fixture(scope="module")
def model():
    return quietly(skyfill.train, make_frame(), label="type", **SMALL)[0]


def test_a_frame_of_pandas_keeps_index_types_and_cells(model):
    frame = as_kind(make_frame(seed=1), "odd pandas")
    frame.attrs["origin"] = "here"
    before = frame.copy()
    found, _ = quietly(model.classify, frame, prefix="sf_")
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(found[list(frame.columns)], before)
    assert found.attrs == frame.attrs
    filled, _ = quietly(model.impute, frame)
    kept = ["source_id", "n_obs", "note", "type"]
    pd.testing.assert_frame_equal(filled[kept], before[kept])
    seen = frame["I"].notna()
    assert filled["I"].dtype == np.float64
    assert filled["I"].notna().all()
    assert filled.loc[seen.to_numpy(), "I"].tolist() == frame.loc[seen.to_numpy(), "I"].tolist()


def test_a_frame_of_polars_keeps_its_types(model):
    frame = as_kind(make_frame(seed=1), "polars").with_columns(pl.col("note").cast(pl.Categorical))
    found, _ = quietly(model.classify, frame, prefix="sf_")
    assert found.select(frame.columns).equals(frame)
    assert found.schema["note"] == frame.schema["note"]
    assert found["sf_class"].dtype == pl.String


def test_a_table_of_astropy_keeps_units_masks_and_columns_of_other_kinds(model):
    table = QTable(as_kind(make_frame(seed=1), "astropy"))
    table["V"] = table["V"] * u.mag
    table["when"] = Time(np.full(len(table), 59000.0), format="mjd")
    table.meta["origin"] = "here"
    found, _ = quietly(model.classify, table, prefix="sf_")
    assert isinstance(found, QTable)
    assert found.meta == table.meta
    assert found["V"].unit == u.mag
    assert (found["V"] == table["V"]).all()
    assert (found["I"].mask == table["I"].mask).all()
    assert (found["when"] == table["when"]).all()
    filled, _ = quietly(model.impute, table)
    assert filled["V"].unit == u.mag
    assert not np.ma.getmaskarray(filled["I"]).any()


def test_a_table_of_arrow_keeps_its_types(model):
    table = as_kind(make_frame(seed=1), "arrow")
    table = table.set_column(6, "note", table.column("note").dictionary_encode())
    found, _ = quietly(model.classify, table, prefix="sf_")
    assert found.select(table.column_names).equals(table)
    assert found.schema.field("sf_entropy").metadata


def test_a_path_and_a_table_of_skyfill_give_one_of_skyfill(model, tmp_path):
    make_frame(seed=1).to_csv(tmp_path / "stars.csv", index=False)
    one, _ = quietly(model.impute, tmp_path / "stars.csv")
    two, _ = quietly(model.impute, read_table(tmp_path / "stars.csv"))
    assert isinstance(one, Table)
    assert isinstance(two, Table)
    assert one.arrow.equals(two.arrow)


def test_a_model_comes_back_from_its_file(model, tmp_path):
    model.save(tmp_path / "m.skyfill")
    again = skyfill.load_model(str(tmp_path / "m.skyfill"))
    assert again.identifier == model.identifier
    frame = make_frame(seed=2)
    one, two = (quietly(each.classify, frame, prefix="sf_")[0] for each in (model, again))
    pd.testing.assert_frame_equal(one, two)


def test_options_are_those_of_the_shell(model):
    frame = make_frame(seed=1)
    shares = {"RRL": 0.02, "QSO": 0.98}
    one, _ = quietly(model.classify, frame, prefix="sf_", prior=shares)
    two, _ = quietly(model.classify, frame, prefix="sf_", prior="RRL=0.02,QSO=0.98")
    pd.testing.assert_frame_equal(one, two)
    usual, _ = quietly(model.classify, frame, prefix="sf_", gap_draws=0)
    assert one["sf_p_RRL"].mean() < usual["sf_p_RRL"].mean()
    assert usual.loc[frame["I"].isna(), "sf_gap_share"].isna().all()
    with pytest.raises(TypeError, match=r"no option 'lable'; did you mean 'label'"):
        skyfill.train(frame, lable="type")
    with pytest.raises(TypeError, match=r"no option 'zz9'; the options are "):
        skyfill.train(frame, zz9=1)
    with pytest.raises(ValueError, match=r"no class 'zz9', the classes are QSO, RRL"):
        quietly(skyfill.train, frame, "type", merge="zz9=b")
    with pytest.raises(TypeError, match="output: has no effect in Python, since the result is"):
        skyfill.train(frame, "type", output="m.skyfill")
    with pytest.raises(TypeError, match="json: has no effect in Python"):
        model.classify(frame, json=True)
    with pytest.raises(TypeError, match="delimiter: is for files, not for tables in memory"):
        skyfill.train(frame, "type", delimiter=";")
    with pytest.raises(TypeError, match="scheduler: has no effect in Python, since the table"):
        model.impute(frame, scheduler="local")
    with pytest.raises(CatalogError, match=r"'--sure': 2.0 is not in the range"):
        model.classify(frame, sure=2.0)
    with pytest.raises(CatalogError, match=r"--prior: 'RRL': write CLASS=NUMBER"):
        quietly(model.classify, frame, prior="RRL")
    with pytest.raises(CatalogError, match="no column 'typ'; did you mean 'type'"):
        skyfill.train(frame, "typ")
    with pytest.raises(CatalogError, match="a builtins list is no table; give a path"):
        skyfill.train([[1.0, 2.0]])
    with pytest.raises(ModelError, match="was trained without labels"):
        quietly(
            quietly(skyfill.train, frame, **SMALL | {"method": None, "trees": None})[0].classify,
            frame,
        )


def test_the_device_that_was_chosen_stays(model):
    skyfill.use_device("cpu")
    try:
        quietly(model.impute, make_frame(seed=1))
        assert skyfill.device.chosen_device() == "cpu"
    finally:
        skyfill.use_device("auto")


def test_repeated_and_odd_names_are_told(model):
    frame = make_frame(seed=1)
    with pytest.raises(CatalogError, match="the name 'V' occurs twice"):
        model.impute(pd.concat([frame, frame[["V"]]], axis=1))
    found, _ = quietly(model.impute, frame.rename(columns={"note": 7}))
    assert 7 in found.columns


def test_columns_that_no_file_could_hold_are_text():
    frame = pd.DataFrame(
        {
            "mixed": [1.5, "?", None],
            "bytes": [b"a", b"\xff", None],
            "when": pd.period_range("2020", periods=3),
        }
    )
    table = as_table(frame)
    assert table.arrow.to_pydict() == {
        "mixed": ["1.5", "?", None],
        "bytes": ["a", "\ufffd", None],
        "when": [str(each) for each in frame["when"]],
    }
    pd.testing.assert_frame_equal(as_given(table, table, frame), frame)


def test_a_large_file_is_learned_from_as_the_shell_does(by_shell, tmp_path):
    folder, *_ = by_shell
    table = read_table(folder / "stars.csv")
    write_table(table, tmp_path / "stars.parquet")
    typed = ["--features", "V,I,W1", *TYPED, "--out-of-core"]
    typed = [word for pair in zip(typed[::2], [*typed[1::2], ""], strict=True) for word in pair
             if pair[0] not in ("--method", "--trees") and word]  # fmt: skip
    words = ["train", str(tmp_path / "stars.parquet"), *typed, "-o", str(tmp_path / "m.skyfill")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    options = {"features": ["V", "I", "W1"], "out_of_core": True, **PLAIN}
    model, _ = quietly(skyfill.train, tmp_path / "stars.parquet", **options)
    assert model.identifier == skyfill.load_model(tmp_path / "m.skyfill").identifier
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.skyfill", "stars.parquet"]


def test_a_long_table_has_the_draws_of_one_piece(model, monkeypatch):
    frame = make_frame(seed=1).drop(columns="source_id")
    whole, _ = quietly(model.impute, frame, draws=3)
    monkeypatch.setattr("skyfill.scale.inputs.BATCH_ROWS", 50)
    parts, _ = quietly(model.impute, frame, draws=3)
    pd.testing.assert_frame_equal(whole, parts)


def test_all_associations_of_an_object_become_one_row(model):
    frame = make_frame(seed=1).iloc[[0, 0, 1]]
    frame = frame.assign(base_row=[0, 0, 1], prob_association=[0.9, 0.1, 1.0])
    for work in (model.classify, model.impute):
        found, _ = quietly(work, frame, prefix="sf_")
        assert found["source_id"].tolist() == frame["source_id"].unique().tolist()


def test_objects_of_astropy_are_cells():
    table = Astropy({"J": np.array([1.5, None, "?"], object), "K": [1.0, 2.0, 3.0]})
    assert as_table(table).arrow.to_pydict() == {"J": ["1.5", None, "?"], "K": [1.0, 2.0, 3.0]}


def test_a_model_says_what_it_is_and_errors_which_file(model, tmp_path):
    assert repr(model) == f"<skyfill model {model.identifier}: V, I, W1, classes QSO, RRL>"
    (tmp_path / "a.csv").write_text("V,V\n1,2\n")
    with pytest.raises(CatalogError, match=r"a.csv: .*'V' occurs twice"):
        model.classify(tmp_path / "a.csv")
    with pytest.raises(CatalogError, match=r"none.csv: no such file"):
        model.classify(tmp_path / "none.csv")
    with pytest.raises(CatalogError, match="a HATS catalogue is not read into memory"):
        model.classify("hats://stars")


def test_shares_of_a_field_are_those_of_the_shell(by_shell, tmp_path):
    folder, *_ = by_shell
    places = [str(folder / "stars.csv"), "--label", "type", *TYPED]
    words = ["train", *places, "--field", str(folder / "others.csv"), "-o", str(tmp_path / "m")]
    assert CliRunner().invoke(main, words).exit_code == 0
    model, _ = quietly(skyfill.train, make_frame(), "type", field=make_frame(seed=1), **SMALL)
    assert model.identifier == skyfill.load_model(tmp_path / "m").identifier
    words = ["classify", str(folder / "m.skyfill"), str(folder / "others.csv"), "--prefix", "sf_"]
    words += ["--prior", "estimate", "-o", str(tmp_path / "c.parquet")]
    assert CliRunner().invoke(main, words).exit_code == 0
    plain = skyfill.load_model(folder / "m.skyfill")
    mine, _ = quietly(plain.classify, make_frame(seed=1), prefix="sf_", prior="estimate")
    shares = read_table(tmp_path / "c.parquet").numbers("sf_p_QSO", "sf_p_RRL")
    np.testing.assert_array_equal(mine[["sf_p_QSO", "sf_p_RRL"]], shares)


CELLS = {
    "float64": st.floats(),
    "Int64": st.none() | st.integers(-(2**63), 2**63 - 1),
    "boolean": st.none() | st.booleans(),
    "object": st.none() | st.text(st.characters(codec="utf-8"), max_size=3) | st.integers(),
    "category": st.none() | st.sampled_from(["a", "b"]),
}


@given(st.data(), st.integers(0, 5))
@settings(max_examples=50)
def test_a_frame_comes_back_as_it_was(data, n):
    kinds = data.draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = [
        pd.Series(data.draw(st.lists(CELLS[kind], min_size=n, max_size=n)), dtype=kind)
        for kind in kinds
    ]
    frame = pd.concat(columns, axis=1)
    frame.index = pd.Index(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    table = as_table(frame)
    found = as_given(table.with_column("new", np.zeros(n)), table, frame)
    assert found.pop("new").tolist() == [0.0] * n
    found.columns = frame.columns
    pd.testing.assert_frame_equal(found, frame)
