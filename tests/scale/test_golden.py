"""The same model file gives the same values on every route as when `golden/` was made.

`golden/` holds two models, a table, and what skyfill made of them before its routes through files
were rewritten: as a file, in several batches, as a folder of two files, on a Dask cluster, and as
a HATS catalogue.
Nothing there is ever made anew. What rests on draws is another today, since their random numbers
follow from the rows alone: it must be that of the whole table in memory, on every route. Names,
order and types of columns, units, UCDs, roles, texts, flags and nulls must be as they were; so must
every bit of every other number, wherever processor and versions are those on which they were made.
Elsewhere compiled code may round the last digits differently.
"""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table
from skyfill.classify.gap_draws import entropy_bits
from skyfill.cli import main
from skyfill.model import Filling, Scoring, load_model
from skyfill.model.results import without_prefix

GOLDEN = Path(__file__).parent / "golden"
WORDS = {
    "impute": ["plain.skyfill", "--quantiles", "0.16,0.84", "--draws", "2", "--seed", "5"],
    "classify": [
        "classes.skyfill",
        "--draws",
        "3",
        "--gap-draws",
        "4",
        "--seed",
        "5",
        "--prefix",
        "sf_",
    ],
}
# Results that had no UCD then.
WITHOUT_UCD = ("entropy", "gap_share", "outlier", "outlier_score")
ROUTES = ["file", "batches", "folder", "dask", "hats"]
BATCH_ROWS = "skyfill.scale.inputs.BATCH_ROWS"


def here():
    """What the last bit of a number depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else [f"flags : {platform.machine()}"]
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    vector = sorted(flag for flag in flags if flag.startswith(("avx", "fma", "sse")))
    return [*vector, *(f"{name} {version(name)}" for name in ("numba", "numpy", "scipy"))]


def run(*words):
    said = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
    assert said.exit_code == 0, said.output


def halves(folder):
    """Write the table as two files."""
    table = pq.read_table(GOLDEN / "in.parquet")
    folder.mkdir()
    pq.write_table(table.slice(0, 50), folder / "a.parquet")
    pq.write_table(table.slice(50), folder / "b.parquet")
    return folder


def sorted_rows(folder):
    """Rows of a folder of Parquet files, in their order."""
    return Table(pa.concat_tables(read_table(path).arrow for path in sorted(folder.iterdir())))


def result(route, command, here):
    """Run a command on a route; the rows of its result, by identifier."""
    model, *options = WORDS[command]
    words = [command, GOLDEN / model]
    if route in ("file", "batches"):
        run(*words, GOLDEN / "in.parquet", *options, "-o", here / "out.parquet")
        return read_table(here / "out.parquet")
    if route == "hats":
        return _hats(words, options, here)
    scheduler = ["--scheduler", "local"] if route == "dask" else []
    run(*words, halves(here / "in"), *options, *scheduler, "-o", here / "out")
    return sorted_rows(here / "out")


def _hats(words, options, here):
    from skyfill.scale.hats import write_hats
    from tests.stars import read_hats_table

    write_hats(read_table(GOLDEN / "in.parquet"), here / "in", partition_rows=30)
    run(*words, f"hats://{here}/in", *options, "-o", f"hats://{here}/out")
    found = read_hats_table(here / "out")
    return Table(found.arrow.sort_by("id"))


def in_memory(command):
    """What the model of a command makes of the whole table."""
    model, table = load_model(GOLDEN / WORDS[command][0]), read_table(GOLDEN / "in.parquet")
    works = {
        "impute": Filling((0.16, 0.84), n_draws=2, seed=5),
        "classify": Scoring(n_draws=4, marginalize=3, seed=5, prefix="sf_"),
    }
    return works[command].apply(model, table)


def meaning(schema):
    """All that is known of the columns but how they are described."""

    def own(field):
        facts = dict(field.metadata or {})
        facts.pop(b"description", None)
        if field.name in WITHOUT_UCD:
            facts.pop(b"ucd", None)
        return field.name, field.type, facts

    return [own(field) for field in schema]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("command", WORDS)
@pytest.mark.parametrize("route", ROUTES)
def test_values_are_those_of_before(route, command, tmp_path, monkeypatch):
    if route == "batches":
        monkeypatch.setattr(BATCH_ROWS, 40)
    if route in ("folder", "dask"):
        pytest.importorskip("distributed", reason="needs Dask")
    if route == "hats":
        pytest.importorskip("lsdb", reason="needs LSDB", exc_type=ImportError)
    # The table has a class, which is what results once kept as class_was.
    found = without_prefix(result(route, command, tmp_path), "sf_").arrow.combine_chunks()
    expected = pq.read_table(GOLDEN / f"{route}-{command}.parquet").combine_chunks()
    # Columns of numbers without reasons have them now: some cells may turn out to be sentinels.
    new = [f"{name}_was" for name in found.column_names if f"{name}_was" in found.column_names]
    new = [name for name in new if name not in expected.column_names]
    assert all(found.column(name).null_count == len(found) for name in new)
    # Results stand behind the identifier, and behind the values that are filled, since then.
    found = found.drop_columns(new).select(expected.column_names)
    assert meaning(found.schema) == meaning(expected.schema)
    is_exact = json.loads((GOLDEN / "made_on.json").read_text()) == here()
    if command == "classify":
        # It was that of the probabilities without draws; it is that of those beside it.
        P = np.stack([found.column(c) for c in found.column_names if c.startswith("p_")], 1)
        np.testing.assert_allclose(found.column("entropy"), entropy_bits(P), rtol=1e-9)
        expected = expected.drop_columns("entropy")
    today = without_prefix(in_memory(command), "sf_").arrow.combine_chunks()
    for name in expected.column_names:
        mine, theirs = found.column(name), expected.column(name)
        if "_draw" in name or name in ("class", "gap_share") or name.startswith("p_"):
            assert mine.equals(today.column(name)), name
            continue
        if is_exact or not pa.types.is_floating(theirs.type):
            assert mine.equals(theirs), name
        else:
            assert mine.is_null().equals(theirs.is_null()), name
            np.testing.assert_allclose(mine.drop_null(), theirs.drop_null(), rtol=1e-9)


@pytest.mark.parametrize("name", ["plain", "classes"])
def test_the_model_is_the_one_of_before(name):
    facts = json.loads((GOLDEN / "models.json").read_text())
    assert load_model(GOLDEN / f"{name}.skyfill").earlier_identifier == facts[name]
