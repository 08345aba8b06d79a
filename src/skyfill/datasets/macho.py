"""MACHO: the training set with variability features, and the catalogue of variables."""

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Table, declare
from skyfill.datasets.published import (
    ColumnFacts,
    drop_duplicates,
    features,
    key_columns,
    make_table,
    read_csv,
    recode,
)
from skyfill.datasets.store import find_file

MACHO_CLASSES = {
    2: "NV",
    3: "QSO",
    4: "BE",
    5: "CEPH",
    6: "RRL",
    7: "EB",
    8: "MICROLENSING",
    9: "LPV",
}
# RRab, RRc, RRe; Cepheids (fundamental, first overtone); four sequences of long-period
# variables; eclipsing binaries; blended RR Lyrae stars.
MACHO_VARIABLE_CLASSES = dict(
    zip(range(1, 12), ["RRL"] * 3 + ["CEPH"] * 2 + ["LPV"] * 4 + ["EB", "RRL"], strict=True)
)
# Twelve of the fourteen features of Pichara & Protopapas (2013); this table lacks the others.
PAPER_FEATURES = (
    "CAR_sigma",
    "Mean",
    "CAR_tau",
    "Std",
    "Eta_e",
    "Con",
    "StetsonL",
    "Rcs",
    "Color",
    "PeriodLS",
    "Period_fit",
    "StetsonK_AC",
)
_FEATURES: ColumnFacts = {
    "Amplitude": ("mag", "Half the distance between the highest and lowest five percent"),
    "Autocor_length": (None, "Visits until the autocorrelation falls below 1/e"),
    "Beyond1Std": (None, "Share of points farther than one standard deviation from the mean"),
    "CAR_sigma": (None, "Volatility of a continuous autoregressive process"),
    "CAR_tau": ("d", "Time scale of a continuous autoregressive process"),
    "Color": ("mag", "Mean blue minus mean red magnitude"),
    "Con": (None, "Share of three points in a row that lie far on one side"),
    "Eta_color": (None, "Eta_e of the color"),
    "Eta_e": (None, "Successive differences over variance, for uneven sampling"),
    "Mean": ("mag", "Mean instrumental magnitude"),
    "Meanvariance": (None, "Standard deviation over mean"),
    "MedianAbsDev": ("mag", "Median distance from the median"),
    "MedianBRP": (None, "Share of points near the median"),
    "PercentAmplitude": (None, "Largest distance from the median over the median"),
    "PeriodLS": ("d", "Period of the highest Lomb-Scargle peak"),
    "Period_fit": (None, "False-alarm probability of that peak"),
    "Psi_CS": (None, "Range of the cumulative sum of the folded light curve"),
    "Psi_eta": (None, "Eta of the folded light curve"),
    "Q31": ("mag", "Distance between the quartiles"),
    "Q31_color": ("mag", "Distance between the quartiles of the color"),
    "Rcs": (None, "Range of the cumulative sum"),
    "Skew": (None, "Skewness"),
    "SlottedA_length": ("d", "Length of the slotted autocorrelation"),
    "SmallKurtosis": (None, "Kurtosis for small samples"),
    "Std": ("mag", "Standard deviation"),
    "StetsonJ": (None, "Stetson's J of both bands"),
    "StetsonK": (None, "Stetson's K"),
    "StetsonK_AC": (None, "Stetson's K of the autocorrelation"),
    "StetsonL": (None, "Stetson's L of both bands"),
}
_VARIABLES: ColumnFacts = {
    "period_reqb": (
        None,
        "How well the red and blue periods agree; undefined where the source has 0",
    ),
    "period_r": ("d", "Period in the red band"),
    "period_b": ("d", "Period in the blue band"),
    "magave_r": ("mag", "Mean instrumental red magnitude"),
    "magave_b": ("mag", "Mean instrumental blue magnitude"),
    "magave_bminusr": ("mag", "Mean instrumental color"),
    "magave_kv": ("mag", "Mean V (Kron-Cousins)"),
    "magave_kr": ("mag", "Mean R (Kron-Cousins)"),
    "magave_kvminuskr": ("mag", "Mean V-R"),
    "amp_r": ("mag", "Amplitude in the red band"),
    "amp_b": ("mag", "Amplitude in the blue band"),
    "amp_bminusr": ("mmag", "Blue minus red amplitude"),
    "amp_reqb": (None, "How well the red and blue amplitudes agree"),
    "sig_r": ("mag", "Standard deviation in the red band"),
    "sig_b": ("mag", "Standard deviation in the blue band"),
    "chi2r_r": (None, "Reduced chi-squared of a constant, red band"),
    "chi2r_b": (None, "Reduced chi-squared of a constant, blue band"),
    "varindex": (None, "Variability index"),
}
_NOT_FEATURES = ("starid", "rarad", "decrad", "field", "tile", "seqn", "classification")


def load_macho() -> Table:
    """Load the MACHO training set: 6060 light curves, 35 variability features, eight classes.

    Returns
    -------
    Table
        ``ID`` (field.tile.sequence), the features of FATS and ``class``; no gaps. Many features
        nearly duplicate one another.
    """
    curves = drop_duplicates(read_csv(find_file("macho/MACHO_ts.csv~"), ID=pa.string()))
    known = read_csv(find_file("macho/New_training_psi.csv"), MACHO_Id=pa.string())
    rows = pc.index_in(curves["ID"].combine_chunks(), known["MACHO_Id"].combine_chunks())
    classes = recode(known["Class"].combine_chunks().take(rows), MACHO_CLASSES)
    info = key_columns("ID", "class", words="field.tile.sequence")
    info |= features(curves.column_names[1:], _FEATURES)
    return make_table(
        curves.append_column("class", classes),
        info,
        name="macho",
        citation="Alcock et al. (1997), ApJ 486, 697; features: Nun et al. (2015), FATS, "
        "arXiv:1506.00010; training set: Kim et al. (2011), ApJ 735, 68",
    )


def load_macho_variables() -> Table:
    """Load the MACHO catalogue of LMC variables: 21,474 stars with positions and periods.

    Returns
    -------
    Table
        The 31 published columns and ``class``. Positions are in radians; ``period_reqb`` is 0
        where it is undefined; this sentinel is declared, so that these cells are gaps with the
        reason `rejected`.
    """
    arrow = read_csv(find_file("macho/macho_vs_catalog.csv"))
    points = [name for name in arrow.column_names if name.startswith("points_")]
    measured = [n for n in arrow.column_names if n not in (*_NOT_FEATURES, *points)]
    info = key_columns("starid", "class", ("rarad", "decrad"), unit="rad")
    info |= features(measured, _VARIABLES)
    info["classification"] = ColumnInfo(description="Code of the published class, 1 to 11")
    classes = recode(arrow["classification"].combine_chunks(), MACHO_VARIABLE_CLASSES)
    table = make_table(
        arrow.append_column("class", classes),
        info,
        name="macho-variables",
        citation="Alcock et al. (2001), Variable stars in the LMC, VizieR II/247",
    )
    return declare(table, {"period_reqb": [0.0]})
