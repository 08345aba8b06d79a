"""Every format is written and read where pandas is not installed."""

import subprocess
import sys
from pathlib import Path

import skyfill

from .strategies import EXTENSIONS

SCRIPT = """
import sys


class WithoutPandas:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        is_lost = name.partition(".")[0] == "pandas"
        return None if is_lost else self.finder.find_spec(name, path, target)


sys.meta_path[:] = map(WithoutPandas, sys.meta_path)
import numpy as np
import pyarrow as pa
from skyfill.catalog import ColumnInfo, Schema, Table, read_batches, read_table, write_table

columns = {"name": ["a", None, "c"], "is_seen": [True, None, False], "J": [14.2, None, 15.1]}
for bits in (8, 16, 32, 64):
    for kind in (f"int{bits}", f"uint{bits}"):
        limits = np.iinfo(kind)
        # A gap, and both ends of the type: no number is left to stand for the gap.
        columns[kind] = pa.array([limits.min, None, limits.max], kind)
        columns[f"{kind}_whole"] = pa.array([limits.min, 0, limits.max], kind)
for kind in ("float32", "float64"):
    columns[kind] = pa.array([1.5, None, -2.5], kind)
table = Table.from_columns(columns, info={"J": ColumnInfo("mag", "phot.mag;em.IR.J")})
for path in sys.argv[1:]:
    write_table(table, path)
    found = read_table(path)
    assert found.names == table.names, (path, found.names)
    for name in table.names:
        assert found.column(name).to_pylist() == table.column(name).to_pylist(), (path, name)
        assert found.column(name).type == table.column(name).type, (path, name)
        assert found.info(name) == table.info(name), (path, name)
    assert sum(batch.num_rows for batch in read_batches(path, batch_rows=2)) == 3
gaps = Schema.from_toml("columns.int8.sentinels = [-128, 999]").apply(table)
assert gaps.column("int8").null_count == 2
assert Table.from_astropy(table.select(["name", "J"]).to_astropy()).names == ("name", "J")
assert "pandas" not in sys.modules
"""


def test_no_format_needs_pandas(tmp_path):
    paths = [str(tmp_path / f"t.{extension}") for extension in EXTENSIONS]
    words = [sys.executable, "-W", "error", "-c", SCRIPT, *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_types_are_not_asked_for_in_words_of_pandas():
    """Before version 26 pyarrow answers with the help of pandas, or not at all."""
    sources = Path(skyfill.__file__).parent.rglob("*.py")
    assert [path for path in sources if "to_pandas_dtype" in path.read_text()] == []
