"""SAGE-Spec: point sources of the LMC, classified by their Spitzer spectra."""

import re

import pyarrow as pa
import pyarrow.csv as pv

from skyfill.catalog import ColumnInfo, Table, declare
from skyfill.datasets.published import (
    ColumnFacts,
    drop_duplicates,
    features,
    key_columns,
    make_table,
)
from skyfill.datasets.store import find_file

SAGE_SPEC_SENTINEL = 999.9999
_FEATURES: ColumnFacts = {
    "J2mag": ("mag", "2MASS J"),
    "H2mag": ("mag", "2MASS H"),
    "Ks2mag": ("mag", "2MASS Ks"),
    "[3.6]": ("mag", "Spitzer IRAC 3.6 micron"),
    "[4.5]": ("mag", "Spitzer IRAC 4.5 micron"),
    "[5.8]": ("mag", "Spitzer IRAC 5.8 micron"),
    "[8.0]": ("mag", "Spitzer IRAC 8.0 micron"),
    "[24]": ("mag", "Spitzer MIPS 24 micron"),
}


def load_sage_spec(*, duplicates: bool = False) -> Table:
    """Load the SAGE-Spec sources: near- and mid-infrared magnitudes, 25 spectroscopic classes.

    Parameters
    ----------
    duplicates : bool
        Keep the 70 rows that are exact copies of another (862 rows instead of 792).

    Returns
    -------
    Table
        999.9999 is declared to mean "no measurement": these cells are gaps with the reason
        `rejected`.
    """
    arrow = _read_columns()
    info = key_columns("ObjId", "SpClass", ("RAJ2000", "DEJ2000"))
    info |= features(_FEATURES, _FEATURES)
    # Not a feature, because [5.8] follows from it.
    info["F5.8"] = ColumnInfo("Jy", None, "[5.8] as a flux")
    table = make_table(
        arrow if duplicates else drop_duplicates(arrow),
        info,
        name="sage-spec",
        citation="Jones et al. (2017), MNRAS 470, 3250",
    )
    return declare(table, {name: [SAGE_SPEC_SENTINEL] for name in (*_FEATURES, "F5.8")})


def _read_columns() -> pa.Table:
    """Read the file, whose columns are separated by any number of blanks."""
    text = find_file("sage_spec/jones_2017_ascii.txt").read_text()
    rows = (re.sub(r"\s+", ",", line.strip()) for line in text.splitlines() if line.strip())
    return pv.read_csv(pa.BufferReader("\n".join(rows).encode()))
