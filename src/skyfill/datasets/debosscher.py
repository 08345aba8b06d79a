"""Labelled light curves of Hipparcos, OGLE and others."""

import pyarrow as pa

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.datasets.columns import identifier, label, make_table, position, read_csv
from skyfill.datasets.store import find_file

DEBOSSCHER_FILES = ("debosscher/labels.csv",)
DEBOSSCHER_LIGHT_CURVE_FILES = ("debosscher/lightcurves.csv.gz",)
_CITATION = "Debosscher et al. (2007), A&A 475, 1159"


def load_debosscher() -> Table:
    """Load the labels of 1392 stars of 26 classes, with positions."""
    arrow = read_csv(find_file(DEBOSSCHER_FILES[0]), id=pa.string())
    info = {"id": identifier(), "class": label(), **position("ra", "dec")}
    return make_table(arrow, info, name="debosscher", citation=_CITATION)


def load_debosscher_lightcurves() -> Table:
    """Load the light curves of these stars: a long table of 263,608 measurements."""
    arrow = read_csv(find_file(DEBOSSCHER_LIGHT_CURVE_FILES[0]), id=pa.string())
    info = {
        "id": identifier(),
        "t": ColumnInfo("d", "time.epoch", "Julian date, each survey with its own zero point"),
        "mag": ColumnInfo("mag", "phot.mag", "Magnitude"),
        "err": ColumnInfo("mag", "stat.error;phot.mag", "Error", Role.ERROR, "mag"),
    }
    return make_table(arrow, info, name="debosscher-lightcurves", citation=_CITATION)
