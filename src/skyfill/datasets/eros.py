"""EROS-1: periodic variables of the LMC, a static table and two-band light curves."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.datasets.published import (
    ColumnFacts,
    features,
    key_columns,
    make_table,
    read_csv,
    recode,
)
from skyfill.datasets.store import find_file

EROS_CLASSES = {1: "EB", 2: "CEPH", 3: "RRL", 4: "LPV"}
_CITATION = (
    "EROS-1 collaboration; prepared by Kégl, Moniez, Gramfort, Benbouzid & Cherti for the RAMP "
    "challenge on variable stars"
)
_FEATURES: ColumnFacts = {
    "magnitude_b": ("mag", "Mean blue magnitude"),
    "magnitude_r": ("mag", "Mean red magnitude"),
    "period": ("d", "Period as found by the search, often a multiple of the true one"),
    "frequency": ("1 / d", "1 / period"),
    "asym_b": (None, "Blue band; meaning unknown to its publishers"),
    "asym_r": (None, "Red band; meaning unknown to its publishers"),
    "log_p_not_variable": (None, "Logarithm of the probability of no variation"),
    "sigma_flux_b": (None, "Standard deviation of the blue light"),
    "sigma_flux_r": (None, "Standard deviation of the red light"),
}
_BY_A_PERSON = {
    "div_period": "Divisor of period, set by a person",
    "quality": "Quality of the period, set by a person",
    "period_divided": "period / div_period: the true period, by a person's choice",
}


def load_eros() -> Table:
    """Load the EROS-1 variables: 3641 stars of four classes.

    Returns
    -------
    Table
        The published columns, positions in degrees (``ra``, ``dec``), ``class`` and ``split``
        (train or test). What a person has set (``div_period``, ``quality``) and what follows
        from it (``period_divided``) are not features.
    """
    arrow = _with_split("train", "test")
    arrow = arrow.append_column("ra", _degrees(arrow, "asc", 15.0))
    arrow = arrow.append_column("dec", _degrees(arrow, "dec", 1.0))
    divided = pc.divide(arrow["period"], arrow["div_period"])
    arrow = arrow.append_column("period_divided", divided)
    arrow = arrow.append_column("class", recode(arrow["type"].combine_chunks(), EROS_CLASSES))
    info = key_columns("id", "class", ("ra", "dec"), words="patch_star")
    info |= features(_FEATURES, _FEATURES)
    info |= {name: ColumnInfo(description=words) for name, words in _BY_A_PERSON.items()}
    return make_table(arrow, info, name="eros", citation=_CITATION)


def _with_split(*splits: str) -> pa.Table:
    tables = [read_csv(find_file(f"eros1/{split}.csv")) for split in splits]
    marked = [
        table.append_column("split", pa.array([split] * len(table)))
        for table, split in zip(tables, splits, strict=True)
    ]
    arrow = pa.concat_tables(marked)
    return arrow.rename_columns(["id", *arrow.column_names[1:]])


def _degrees(arrow: pa.Table, axis: str, factor: float) -> Any:
    """Convert degrees (or hours), minutes and seconds to degrees; the first has the sign."""
    whole, minutes, seconds = (arrow[f"{axis}_{part}"] for part in "dms")
    small = pc.add(pc.divide(minutes, 60.0), pc.divide(seconds, 3600.0))
    size = pc.multiply(pc.add(pc.abs(whole), small), factor)
    return pc.if_else(pc.less(whole, 0.0), pc.negate(size), size)


def load_eros_lightcurves() -> Table:
    """Load the light curves of the EROS-1 variables, one row per star.

    Returns
    -------
    Table
        ``id`` as in `load_eros` and ten list columns: time (days), light (a magnitude, in spite
        of its name), its error, background and pollution, for the bands b and r. Lists of one
        band have equal lengths.
    """
    arrow = pa.concat_tables([_read_lists(split) for split in ("train", "test")])
    info = key_columns("id", words="patch_star")
    for band in "br":
        light = f"light_points_{band}"
        info[f"time_points_{band}"] = ColumnInfo("d", "time.epoch", "Time")
        info[light] = ColumnInfo("mag", "phot.mag", "Magnitude")
        info[f"error_points_{band}"] = ColumnInfo("mag", None, "Error", Role.ERROR, light)
    return make_table(arrow, info, name="eros-lightcurves", citation=_CITATION)


def _read_lists(split: str) -> pa.Table:
    arrow = read_csv(find_file(f"eros1/{split}_varlength_features.csv.gz"))
    lists = {name: _as_lists(arrow[name].combine_chunks()) for name in arrow.column_names[1:]}
    return pa.table({"id": arrow.column(0), **lists})


def _as_lists(texts: Any) -> Any:
    cells = pc.split_pattern(pc.utf8_trim(texts, "[]"), ", ")
    return cells.cast(pa.list_(pa.float64()))
