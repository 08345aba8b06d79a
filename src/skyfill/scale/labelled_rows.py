"""The labelled rows of a catalogue of any size, and a sample of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skyfill.catalog import Schema, Table
from skyfill.catalog.class_labels import class_texts
from skyfill.errors import CatalogError
from skyfill.scale.inputs import Source

# Labelled rows that trees are grown on at most, and others beside them.
MOST_LABELLED, OTHER_ROWS = 2_000_000, 50_000


def labelled_rows(
    source: Source,
    columns: Sequence[str],
    label: str,
    *,
    rules: Schema | None = None,
    others: int = OTHER_ROWS,
    rng: int = 0,
) -> Table:
    """Read all rows with a label, and some without, in the order of the catalogue.

    Parameters
    ----------
    source : Source
    columns : sequence of str
        To read besides the label.
    label : str
    rules : Schema, optional
        Roles, units and sentinels to apply; those of the label are words that mean no class.
    others : int
        Rows without a label to keep: a random sample.
    rng : int
    """
    rules, dice = rules or Schema(), np.random.default_rng(rng)
    names, unlabelled = list(dict.fromkeys([*columns, label])), rules.unlabelled(label)
    n_all, n_known, share = source.count_rows(), 0, 1.0
    if n_all:
        share = min(1.0, others / n_all)
    parts = [source.table().select(names).arrow]
    for table in source.tables(names):
        known = class_texts(table, label, unlabelled) != None  # noqa: E711 - of each row
        n_known += int(known.sum())
        if n_known > MOST_LABELLED:
            raise CatalogError(
                f"{source.path}: more than {MOST_LABELLED:,} rows have a label; trees are grown in "
                "memory: keep the labels of fewer rows"
            )
        keep = known | (dice.random(len(table)) < share)
        parts.append(table.arrow.filter(pa.array(keep)))
    return rules.apply(Table(pa.concat_tables(parts).combine_chunks()))
