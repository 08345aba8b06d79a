"""Files to files through a GPU, or an imitation of one: the same table."""

import numpy as np
import pytest

from skyfill.catalog import Table, read_table, write_table
from skyfill.device import VARIABLE, using
from skyfill.model import Filling, train
from skyfill.scale import apply_model
from tests.devices import DEVICES


@pytest.fixture(scope="module")
def filling(tmp_path_factory):
    """A model, a catalogue with gaps, and what the processor makes of it."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("device")
    J = rng.normal(15, 1, 80)
    columns = {"J": J, "K": J - 0.5 + rng.normal(0, 0.1, 80)}
    table = Table.from_columns(columns)
    model, _ = train(table, ["J", "K"], n_components=1, n_fits=1)
    gaps = {name: np.where(rng.random(80) < 0.3, np.nan, x) for name, x in columns.items()}
    write_table(Table.from_columns(gaps), folder / "gaps.parquet")
    with using("cpu"):
        apply_model(Filling(), model, folder / "gaps.parquet", folder / "cpu.parquet")
    return model, folder


@pytest.mark.parametrize("name", DEVICES)
def test_a_file_is_filled_with_the_same_numbers(filling, name, monkeypatch):
    model, folder = filling
    monkeypatch.setenv(VARIABLE, name)  # as for a worker of a cluster
    apply_model(Filling(), model, folder / "gaps.parquet", folder / "device.parquet")
    found, expected = (read_table(folder / f"{k}.parquet") for k in ("device", "cpu"))
    assert found.names == expected.names
    numbers = [n for n in expected.names if expected.column(n).type == "double"]
    assert {"J", "K"} <= {*numbers}
    a, b = found.numbers(*numbers), expected.numbers(*numbers)
    assert np.allclose(a, b, rtol=1e-9, equal_nan=True)
