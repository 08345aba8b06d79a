"""The laws of outputs: columns of the input come back bit for bit and under their names.

For every command that writes a table of objects, and every format, whatever the names, cases and
types of the other columns are; where that is impossible the command refuses before the work.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.model import load_model

MODEL = Path(__file__).parent / "model_files" / "version-2.skyfill"
FEATURES = ("V", "V_I", "n_obs")
CLASS = load_model(MODEL).scorer.classes[0]
N = 6
# A command, with {} for its input; its results have their own prefix.
COMMANDS = {
    "impute": "impute m.skyfill {} --quantiles 0.16 --draws 1 --prefix sf_",
    "classify": "classify m.skyfill {} --gap-draws 0 --prefix sf_",
    "next": "next m.skyfill {} --prefix sf_",
    "candidates": f"candidates {{}} --class {CLASS} --min-probability 1e-9 --prefix sf_",
    "publish": "publish {}",
    "match": "match {} near.parquet",
}
# What plain CSV keeps is in `test_plain_csv.py` and `test_plain_outputs.py`.
FORMATS = ("parquet", "fits", "vot", "ecsv")
# Names of results in every case, names that formats find hard, and any others.
RESULTS = ["V_sd", "V_gap", "V_was", "V_q16", "V_draw1", "class", "Class", "p_x", "P_X", "entropy"]
RESULTS += ["gap_share", "outlier", "rank", "probability", "new", "in_u", "next", "next_bits"]
RESULTS += ["evidence_for", "bits_V", "flag", "n", "sep", "v", "v_i", "N_OBS"]
NAMES = st.one_of(
    st.sampled_from(RESULTS),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8),
)
CELLS = {
    pa.int64(): st.integers(-(2**63) + 1, 2**63 - 2),
    pa.int16(): st.integers(-(2**15) + 1, 2**15 - 2),
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.string(): st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6),
    pa.bool_(): st.booleans(),
}


@st.composite
def extra_columns(draw):
    """One to four columns of the user, with gaps, whose names differ without regard to case."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    taken = {"id", "ra", "dec", *(name.lower() for name in FEATURES), ""}
    columns = {}
    for name in names:
        if name.strip() != name or name.lower() in taken:
            continue
        kind = draw(st.sampled_from(list(CELLS)))
        cells = draw(st.lists(st.none() | CELLS[kind], min_size=N, max_size=N))
        columns[name] = pa.array(cells, kind)
    return columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws")
    shutil.copy(MODEL, folder / "m.skyfill")
    near = {"ra": [80.0, 80.05], "dec": [-69.0, -69.0], "J": [1.0, 2.0]}
    write_table(Table.from_columns(near), folder / "near.parquet")
    return folder


def objects(columns):
    rng = np.random.default_rng(1)
    values = {name: rng.normal(size=N) for name in FEATURES}
    values["V_I"][::2] = np.nan
    places = {"ra": 80 + np.arange(N) / 100, "dec": np.full(N, -69.0)}
    known = {"id": [f"s{i}" for i in range(N)], **places, **values, **columns}
    return Table.from_columns(known)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", COMMANDS)
@given(columns=extra_columns())
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_columns_of_the_input_come_back_bit_for_bit_under_their_names(
    command, form, columns, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    table = objects(columns)
    if command == "candidates":
        table = table.with_column(f"sf_p_{CLASS}", np.linspace(0.9, 0.1, N))
    write_table(table, "in.parquet")
    Path(f"out.{form}").unlink(missing_ok=True)
    for readme in Path().glob("*_ReadMe.txt"):
        readme.unlink()
    words = COMMANDS[command].format("in.parquet").split()
    said = CliRunner().invoke(main, [*words, "-o", f"out.{form}"])
    if said.exit_code == 2:  # refused: named, and nothing written
        assert any(repr(name) in said.stderr for name in columns), said.stderr
        assert not Path(f"out.{form}").exists()
        return
    assert said.exit_code == 0, said.output
    found = read_table(f"out.{form}")
    given_table = read_table("in.parquet")
    assert [name for name in found.names if name in given_table.names] == list(given_table.names)
    for name in given_table.names:
        check_same(given_table.column(name), found.column(name), name)


def check_same(given_cells, found, name):
    """Equal to the bit; gaps of features may be filled, and a format may widen a type."""
    before, after = given_cells.to_pylist(), found.to_pylist()
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        if one is None and name in FEATURES:
            continue
        if isinstance(one, float) and isinstance(other, float):
            assert np.float64(one).tobytes() == np.float64(other).tobytes()
        else:
            assert one == other
            assert type(one) is type(other)


@pytest.mark.parametrize("command", ["impute", "classify", "next"])
@given(name=st.sampled_from(RESULTS), swap=st.booleans())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_without_a_prefix_a_collision_is_refused_and_anything_else_is_kept(
    command, name, swap, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    name = name.swapcase() if swap else name
    if name.lower() in ("v", "v_i", "n_obs"):
        return
    table = objects({name: pa.array(np.arange(N) + 0.5)})
    write_table(table, "in.parquet")
    Path("out.parquet").unlink(missing_ok=True)
    words = COMMANDS[command].replace(" --prefix sf_", " --prefix=").format("in.parquet").split()
    said = CliRunner().invoke(main, [*words, "-o", "out.parquet"])
    if said.exit_code == 2:
        assert repr(name) in said.stderr
        assert "--prefix" in said.stderr
        assert not Path("out.parquet").exists()
    else:
        assert read_table("out.parquet").column(name).equals(table.column(name))
