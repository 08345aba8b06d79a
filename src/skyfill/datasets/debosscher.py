"""Labelled light curves of Hipparcos, OGLE and other surveys."""

import pyarrow as pa

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.datasets.published import key_columns, make_table, read_csv
from skyfill.datasets.store import find_file

_CITATION = "Debosscher et al. (2007), A&A 475, 1159"


def load_debosscher() -> Table:
    """Load the labels of 1392 stars of 26 classes, with positions."""
    arrow = read_csv(find_file("debosscher/labels.csv"), id=pa.string())
    info = key_columns("id", "class", ("ra", "dec"))
    return make_table(arrow, info, name="debosscher", citation=_CITATION)


def load_debosscher_lightcurves() -> Table:
    """Load the light curves of these stars: a long table of 263,608 measurements."""
    arrow = read_csv(find_file("debosscher/lightcurves.csv.gz"), id=pa.string())
    info = key_columns("id") | {
        "t": ColumnInfo("d", "time.epoch", "Julian date, each survey with its own zero point"),
        "mag": ColumnInfo("mag", "phot.mag", "Magnitude"),
        "err": ColumnInfo("mag", "stat.error;phot.mag", "Error", Role.ERROR, "mag"),
    }
    return make_table(arrow, info, name="debosscher-lightcurves", citation=_CITATION)
