"""Chandra sources with counterparts in Gaia, 2MASS and WISE, with classes."""

from skyfill.catalog import Table
from skyfill.datasets.published import (
    ColumnFacts,
    errors,
    features,
    key_columns,
    make_table,
    read_csv,
)
from skyfill.datasets.store import find_file

# Results of the cross-match or of its review, not properties of the source.
_NOT_FEATURES = ("name", "ra", "dec", "Class", "significance", "p_any", "p_i", "MW_MW")
_FLUX = "erg / (cm2 s)"
_FEATURES: ColumnFacts = {
    "Fcsc_s": (_FLUX, "X-ray flux, 0.5 to 1.2 keV"),
    "Fcsc_m": (_FLUX, "X-ray flux, 1.2 to 2 keV"),
    "Fcsc_h": (_FLUX, "X-ray flux, 2 to 7 keV"),
    "var_intra_prob": (None, "Probability of variation within an observation"),
    "var_inter_prob": (None, "Probability of variation between observations"),
    "powlaw_gamma_mean": (None, "Photon index of a power law"),
    "Gmag": ("mag", "Gaia G"),
    "BPmag": ("mag", "Gaia BP"),
    "RPmag": ("mag", "Gaia RP"),
    "RPlx": (None, "Parallax over its error"),
    "PM": (None, "Proper motion"),
    "epsi": (None, "Excess noise of the astrometric fit"),
    "sepsi": (None, "Significance of that noise"),
    "ruwe": (None, "Renormalized unit weight error"),
    "rgeo": ("pc", "Distance"),
    "Jmag": ("mag", "2MASS J"),
    "Hmag": ("mag", "2MASS H"),
    "Kmag": ("mag", "2MASS K"),
    "W1mag": ("mag", "WISE W1"),
    "W2mag": ("mag", "WISE W2"),
    "W3mag": ("mag", "WISE W3"),
}


def load_chandra() -> Table:
    """Load the MUWCLASS training set: 3126 X-ray sources of eight classes, 42 columns.

    Returns
    -------
    Table
        X-ray fluxes, and measurements of Gaia, 2MASS and WISE with their errors. Most gaps are
        sources too faint for the survey: the gaps are not at random.
    """
    arrow = read_csv(find_file("muwclass/CSC_TD_11042023_MW.csv"))
    names = arrow.column_names
    of = {name: name[2:] for name in names if name.startswith("e_") and name[2:] in names}
    measured = [name for name in names if name not in (*_NOT_FEATURES, *of)]
    info = key_columns("name", "Class", ("ra", "dec"))
    info |= features(measured, _FEATURES) | errors(of, _FEATURES)
    return make_table(
        arrow,
        info,
        name="chandra",
        citation="Yang, Hare, Kargaltsev et al. (2022), MUWCLASS, ApJ 941, 104; Chandra Source "
        "Catalog: Evans et al. (2010), ApJS 189, 37",
    )
