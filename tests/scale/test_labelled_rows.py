"""The labelled rows of a catalogue of any size."""

import numpy as np
import pytest

from skyfill.catalog import Table, write_table
from skyfill.errors import CatalogError
from skyfill.scale import labelled_rows as module
from skyfill.scale import open_source
from skyfill.scale.labelled_rows import labelled_rows


@pytest.fixture
def folder(tmp_path):
    """Two files of 500 rows, every tenth with a label, some of them blank."""
    words = [None if i % 10 else " " if i % 50 == 0 else "QSO" for i in range(1000)]
    for k in range(2):
        rows = slice(500 * k, 500 * k + 500)
        columns = {"J": np.arange(1000.0)[rows], "K": np.ones(500), "class": words[rows]}
        write_table(Table.from_columns(columns), tmp_path / f"{k}.parquet")
    return tmp_path


def test_all_labelled_rows_come_in_their_order_with_a_sample_of_the_others(folder):
    table = labelled_rows(open_source(folder), ["J"], "class", others=200, rng=1)
    assert table.names == ("J", "class")
    J = table.numbers("J")[:, 0]
    assert (np.diff(J) > 0).all()
    known = [i for i in range(0, 1000, 10) if i % 50]
    assert set(known) <= set(J.astype(int))
    # A share of 0.2 of the 920 others, within four standard errors.
    assert len(J) - len(known) == pytest.approx(184, abs=50)


def test_more_labels_than_memory_should_hold_are_refused(folder, monkeypatch):
    monkeypatch.setattr(module, "MOST_LABELLED", 50)
    with pytest.raises(CatalogError, match="more than 50 rows have a label"):
        labelled_rows(open_source(folder), ["J"], "class")
