"""Law: on damaged bytes a reader gives a table or a `CatalogError`, and soon.

`benchmarks/fuzz_readers.py` does the same for many more inputs.
"""

import gzip
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Provenance, Role, Table, read_table, write_table
from skyfill.errors import CatalogError

from .strategies import EXTENSIONS

TABLE = Table.from_columns(
    {"id": ["a", "", None, "é"], "n": [1, None, 3, -4], "J": [14.2, None, 1e300, 3.0]},
    info={"J": ColumnInfo("mag", "phot.mag", "J magnitude", Role.FEATURE)},
    meta={"citation": "Jones 2017"},
).with_reasons("J", [None, "undetected", None, None])


@cache
def originals():
    """Give the bytes of one table in every format; gzip is unpacked, to be damaged inside."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for extension in EXTENSIONS:
            path = Path(folder) / f"t.{extension}"
            write_table(TABLE, path, provenance=Provenance("fuzz", seed=1))
            data = path.read_bytes()
            found[extension] = gzip.decompress(data) if extension.endswith(".gz") else data
        text = b" id  J\n 1 14.2\n 2 15.1\n"
        return {**found, "txt": text, "plain.csv": b"id,J\n1,14.2\n2,\n"}


SPOTS = st.floats(0, 1, exclude_max=True)
EDITS = st.lists(
    st.tuples(SPOTS, st.integers(0, 40), st.binary(max_size=6) | st.sampled_from(
        [b"9" * 12, b"-1", b"\xff" * 8, b"\0" * 8, b'"', b"\n", b"<", b">", b"&", b",", b"nan"]
    )),
    min_size=1, max_size=4,
)  # fmt: skip


def damaged(data, edits):
    for spot, n_gone, added in edits:
        place = int(spot * len(data))
        data = data[:place] + added + data[place + n_gone :]
    return data


# A first line that looks like a row is read, with a warning.
@pytest.mark.filterwarnings("ignore::skyfill.catalog.ecsv_header.HeaderWarning")
@pytest.mark.parametrize("extension", [*EXTENSIONS, "txt", "plain.csv"])
@given(edits=EDITS)
@settings(max_examples=150)
def test_damaged_bytes_give_a_table_or_a_catalog_error(extension, edits):
    data = damaged(originals()[extension], edits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{extension}"
        path.write_bytes(gzip.compress(data, 1) if extension.endswith(".gz") else data)
        try:
            table, message = read_table(path), str(path)
        except CatalogError as error:
            table, message = Table.from_columns({}), str(error)
        table.arrow.validate(full=True)
        assert str(path) in message
