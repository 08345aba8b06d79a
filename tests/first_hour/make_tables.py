"""Eight tables as people have them, written by the programs that people use, with known truth.

``python tests/first_hour/make_tables.py FOLDER`` writes them. The population is simple: each class
has its own colors, luminosities, distances and gaps. What a cell would have been if it had been
measured is kept, and so are the classes of the fresh rows.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from astropy.io import fits
from astropy.io.votable import from_table
from astropy.table import MaskedColumn, Table
from numpy.typing import NDArray

# Mean and scatter of absolute magnitude, B-V, log10 of the distance in pc, log10 of the period in
# days and amplitude; the share of the population; the probability to have no infrared magnitudes.
KINDS = {
    "RRAB": ((0.6, 0.20), (0.35, 0.06), (3.5, 0.25), (-0.25, 0.08), (0.90, 0.20), 0.40, 0.45),
    "DCEP": ((-3.5, 0.80), (0.70, 0.12), (3.9, 0.25), (0.80, 0.25), (0.60, 0.20), 0.25, 0.05),
    "EA": ((2.5, 1.50), (0.45, 0.25), (2.9, 0.30), (0.40, 0.35), (0.50, 0.25), 0.25, 0.25),
    "MIRA": ((-1.0, 0.90), (1.60, 0.25), (3.3, 0.30), (2.40, 0.15), (1.20, 0.30), 0.10, 0.02),
}
# How some tables name them.
NAMES = {
    "votable": {"RRAB": "RR Lyr", "DCEP": "Cepheid", "EA": "Ecl. bin.", "MIRA": "Mira"},
    "spreadsheet": {"RRAB": "RR Lyrae", "DCEP": "Cepheide", "EA": "Bedeckungsveränderlicher"},
}
Values = NDArray[np.float64]
Masks = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class FirstTable:
    """A table for training, fresh rows of the same population, and the truth.

    Parameters
    ----------
    train, fresh : Path
        The files.
    label : str
        Column of the classes.
    classes : array of str
        Classes of the fresh rows.
    true : dict of str to array
        Features of the fresh rows as they would have been measured, gaps included.
    missing : dict of str to array of bool
        For the features, which cells of the fresh rows are missing, however the file writes it.
    unlabelled : int
        Rows of the training file without a class, whatever stands there.
    identifier : str
        Column of the identifiers.
    """

    train: Path
    fresh: Path
    label: str
    classes: NDArray[np.str_]
    true: dict[str, Values]
    missing: Masks
    unlabelled: int
    identifier: str

    @property
    def features(self) -> list[str]:
        """Columns that a model is expected to learn from."""
        return list(self.true)


@dataclass
class Sky:
    """Objects drawn from the population; magnitudes without noise."""

    rng: np.random.Generator
    n: int
    classes: NDArray[np.str_] = field(init=False)
    magnitude: dict[str, Values] = field(init=False)

    def __post_init__(self) -> None:
        rng, n = self.rng, self.n
        names = list(KINDS)
        kinds = rng.choice(len(names), n, p=[kind[5] for kind in KINDS.values()])
        self.classes = np.array(names)[kinds]
        facts = np.array([[pair for pair in kind[:5]] for kind in KINDS.values()])[kinds]
        mean, sd = facts[:, :, 0], facts[:, :, 1]
        luminosity, color, self.log_distance, self.log_period, self.amplitude = (
            mean + sd * rng.normal(size=mean.shape)
        ).T
        self.amplitude = np.abs(self.amplitude)
        V = luminosity + 5 * self.log_distance - 5
        self.color = color
        steps = {"B": 1.0, "V": 0.0, "R": -0.55, "I": -1.05, "J": -1.7, "H": -2.3, "K": -2.45,
                 "W1": -2.5, "W2": -2.52, "W3": -2.7}  # fmt: skip
        dust = {"W2": 0.15, "W3": 0.9}  # of long-period variables
        self.magnitude = {
            band: V + step * color - dust.get(band, 0) * (self.classes == "MIRA")
            for band, step in steps.items()
        }
        self.without_infrared = (
            rng.random(n) < np.array([kind[6] for kind in KINDS.values()])[kinds]
        )
        self.ra = rng.uniform(70, 90, n)
        self.dec = rng.uniform(-72, -66, n)

    def measured(self, band: str, floor: float = 0.01) -> tuple[Values, Values]:
        """Observe a band: magnitudes and their errors."""
        error = np.hypot(floor, 0.03 * 10 ** (0.3 * (self.magnitude[band] - 16)))
        error = np.minimum(error, 0.3)
        return self.magnitude[band] + error * self.rng.normal(size=self.n), error

    def some(self, share: float) -> NDArray[np.bool_]:
        """Choose rows at random."""
        return self.rng.random(self.n) < share

    def words(self, names: dict[str, str] | None = None) -> NDArray[np.object_]:
        """Name the classes as the table names them."""
        return np.array([(names or {}).get(name, name) for name in self.classes], dtype=object)

    def identifiers(self) -> NDArray[np.int64]:
        """Return identifiers of 19 digits, as in Gaia."""
        return self.rng.integers(4_650_000_000_000_000_000, 4_690_000_000_000_000_000, self.n)


def _survey_columns(sky: Sky) -> tuple[dict[str, Values], Masks]:
    rng, n = sky.rng, sky.n
    distance = 10**sky.log_distance
    parallax_error = np.hypot(0.02, 0.01 * 10 ** (0.2 * (sky.magnitude["V"] - 15)))
    motion = rng.normal(0, 40_000 / distance[:, None], (n, 2))
    columns: dict[str, Values] = {"parallax": 1000 / distance + parallax_error * rng.normal(size=n)}
    columns["parallax_error"] = parallax_error
    for name, value in zip(("pmra", "pmdec"), motion.T, strict=True):
        columns[name] = value + parallax_error * rng.normal(size=n)
        columns[f"{name}_error"] = parallax_error * rng.uniform(0.9, 1.2, n)
    columns["phot_g_mean_mag"] = sky.measured("V", 0.003)[0]
    blue, red = sky.measured("B", 0.01)[0], sky.measured("I", 0.01)[0]
    columns["phot_bp_mean_mag"], columns["phot_rp_mean_mag"] = blue, red
    columns["bp_rp"] = blue - red
    for band, name, error in (
        ("J", "j_m", "j_msigcom"),
        ("H", "h_m", "h_msigcom"),
        ("K", "k_m", "k_msigcom"),
        ("W1", "w1mpro", "w1sigmpro"),
        ("W2", "w2mpro", "w2sigmpro"),
    ):
        columns[name], columns[error] = sky.measured(band, 0.02)
    missing = {name: np.zeros(n, bool) for name in columns}
    no_colors, no_motion, no_wise = sky.some(0.06), sky.some(0.1), sky.some(0.15)
    for names, rows in (
        (("phot_bp_mean_mag", "phot_rp_mean_mag", "bp_rp"), no_colors),
        (("parallax", "pmra", "pmdec"), no_motion),
        (("parallax_error", "pmra_error", "pmdec_error"), no_motion),
        (("j_m", "j_msigcom", "h_m", "h_msigcom", "k_m", "k_msigcom"), sky.without_infrared),
        (("w1mpro", "w1sigmpro", "w2mpro", "w2sigmpro"), no_wise),
    ):
        for name in names:
            missing[name] = rows
    return columns, missing


def _survey_csv(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write CSV in the words of Gaia, 2MASS and WISE: blanks of Gaia, -999 of the other two."""
    columns, missing = _survey_columns(sky)
    digits = {name: np.round(values, 4) for name, values in columns.items()}
    frame = pd.DataFrame({"source_id": sky.identifiers(), "ra": sky.ra, "dec": sky.dec, **digits})
    for name, rows in missing.items():
        of_gaia = name.startswith(("phot", "bp", "par", "pm"))
        frame.loc[rows, name] = np.nan if of_gaia else -999.0
    nobody, lost = sky.some(0.04), sky.some(0.04)
    frame["var_class"] = np.select([nobody, lost], ["unknown", ""], sky.words())
    frame.to_csv(path, index=False)
    features = [name for name in digits if not name.endswith(("_error", "sigcom", "sigmpro"))]
    true = {name: digits[name] for name in features}
    return true, {name: missing[name] for name in features}, int((nobody | lost).sum())


def _fits(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write FITS: NaN, whole numbers with TNULL, flags, text padded with blanks."""
    n, rng = sky.n, sky.rng
    data = {f"{band}MAG": sky.measured(band)[0].astype(np.float32) for band in "BVIJK"}
    missing = {name: np.zeros(n, bool) for name in data}
    missing["BMAG"], missing["IMAG"] = sky.some(0.1), sky.some(0.1)
    missing["JMAG"] = missing["KMAG"] = sky.without_infrared
    # In thousandths of a magnitude, as surveys of the sky keep amplitudes.
    amplitude = np.round(1000 * sky.amplitude).astype(np.int32)
    missing["AMP"] = sky.some(0.2)
    written = {
        name: np.where(missing[name], np.nan, values).astype(np.float32)
        for name, values in data.items()
    }
    sure = [f"{name:<12s}" for name in sky.words()]
    lost = sky.some(0.05)
    words = np.where(lost, " " * 12, sure)
    columns = [
        fits.Column("OBJID", "K", array=sky.identifiers(), null=-1),
        fits.Column("RA", "D", unit="deg", array=sky.ra),
        fits.Column("DEC", "D", unit="deg", array=sky.dec),
        *(fits.Column(name, "E", unit="mag", array=values) for name, values in written.items()),
        fits.Column("AMP", "J", unit="mmag", null=-32768,
                    array=np.where(missing["AMP"], -32768, amplitude)),
        fits.Column("NOBS", "I", null=-1,
                    array=np.where(sky.some(0.1), -1, rng.poisson(60, n)).astype(np.int16)),
        fits.Column("SATURATED", "L", array=sky.some(0.05)),
        fits.Column("QFLAG", "3A", array=rng.choice(["A", "AAB", "AU", ""], n)),
        *([fits.Column("VARTYPE", "12A", array=words)] if train else ()),
    ]  # fmt: skip
    fits.BinTableHDU.from_columns(columns).writeto(path, overwrite=True)
    true = {name: values.astype(float) for name, values in data.items()}
    return {**true, "AMP": amplitude.astype(float)}, missing, int(lost.sum())


def _votable(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write a VOTable with UCDs, masked values and whole numbers, and names as in VizieR."""
    n = sky.n
    table = Table()
    table["Name"] = [f"LMC V{k:04d}" for k in range(1, n + 1)]
    table["RAJ2000"] = MaskedColumn(sky.ra, unit="deg")
    table["DEJ2000"] = MaskedColumn(sky.dec, unit="deg")
    true: dict[str, Values] = {}
    missing: Masks = {}
    for band in "BVRI":
        values, errors = (np.round(part, 3) for part in sky.measured(band))
        rows = sky.some(0.12) if band != "V" else np.zeros(n, bool)
        true[f"{band}mag"], missing[f"{band}mag"] = values, rows
        table[f"{band}mag"] = MaskedColumn(values, mask=rows, unit="mag")
        table[f"e_{band}mag"] = MaskedColumn(errors, mask=rows, unit="mag")
    period = np.round(10**sky.log_period, 5)
    true["Per"], missing["Per"] = period, sky.some(0.1)
    table["Per"] = MaskedColumn(period, mask=missing["Per"], unit="d")
    table["Nobs"] = MaskedColumn(
        sky.rng.poisson(80, n).astype(np.int32), mask=sky.some(0.15), fill_value=-1
    )
    lost = sky.some(0.05)
    if train:
        table["Type"] = MaskedColumn(
            np.where(lost, "", sky.words(NAMES["votable"])).astype(str), mask=lost
        )
    ucds = {"Name": "meta.id;meta.main", "RAJ2000": "pos.eq.ra;meta.main", "Per": "time.period",
            "DEJ2000": "pos.eq.dec;meta.main", "Vmag": "phot.mag;em.opt.V", "Type": "src.class",
            "Nobs": "meta.number"}  # fmt: skip
    file = from_table(table)
    for column in file.get_first_table().fields:
        column.ucd = ucds.get(column.ID)
    file.to_xml(str(path), tabledata_format="binary2" if train else "tabledata")
    return true, missing, int(lost.sum())


def _blanks(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write numbers in columns of fixed width below a commented header; 99.999 is no value."""
    n = sky.n
    true = {"logP": np.round(sky.log_period, 4)}
    missing = {"logP": np.zeros(n, bool)}
    lines = [[f"{k + 1:7d}", f"{sky.ra[k]:10.5f}", f"{sky.dec[k]:10.5f}"] for k in range(n)]
    names = ["star", "ra", "dec"]
    for band in "UBVI":
        mags, errors = sky.measured("B" if band == "U" else band)
        mags = np.round(mags + (0.3 * sky.color if band == "U" else 0), 3)
        rows = sky.some(0.15) if band != "V" else np.zeros(n, bool)
        true[band], missing[band] = mags, rows
        names += [band, f"err{band}"]
        for k in range(n):
            value, error = (99.999, 9.999) if rows[k] else (mags[k], max(errors[k], 0.001))
            lines[k] += [f"{value:8.3f}", f"{error:6.3f}"]
    lost = sky.some(0.08)
    for k in range(n):
        lines[k] += [f"{true['logP'][k]:8.4f}", f" {'?' if lost[k] else sky.classes[k]:<6s}"]
    names += ["logP", "type"]
    text = "\n".join(["# " + " ".join(names), *(" ".join(cells) for cells in lines)]) + "\n"
    path.write_text(text)
    return true, missing, int(lost.sum())


def _spreadsheet(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write what a spreadsheet with German settings saves: a mark of UTF-8, CRLF, ; and ,."""
    V, B, I, K = (sky.measured(band)[0] for band in "VBIK")  # noqa: E741 - the band
    true = {
        "V": np.round(V, 2),
        "B_V": np.round(B - V, 3),
        "V_I": np.round(V - I, 3),
        "K": np.round(K, 2),
        "Periode (d)": np.round(10**sky.log_period, 4),
        "Amplitude": np.round(sky.amplitude, 2),
    }
    missing = {name: np.zeros(sky.n, bool) for name in true}
    missing["B_V"], missing["V_I"], missing["K"] = (
        sky.some(0.1),
        sky.some(0.1),
        sky.without_infrared,
    )
    frame = pd.DataFrame({"Stern": [f"HV {k}" for k in range(1, sky.n + 1)]})
    for name, values in true.items():
        frame[name] = np.where(missing[name], np.nan, values)
    lost = sky.some(0.06)
    if train:
        frame["Klasse"] = np.where(lost, "", sky.words(NAMES["spreadsheet"]))
    frame.to_csv(
        path, index=False, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n"
    )
    return true, missing, int(lost.sum())


def _ecsv(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write ECSV with fluxes in mJy, their errors, and upper limits where nothing is detected."""
    n = sky.n
    zero = {"J": 1594e3, "K": 666.7e3, "W1": 309.5e3, "W2": 171.8e3, "W3": 31.67e3}  # mJy
    depth = {"J": 0.25, "K": 0.25, "W1": 0.02, "W2": 0.05, "W3": 0.6}
    table = Table()
    table["source"] = [f"J{k:06d}" for k in range(n)]
    table["ra"] = MaskedColumn(sky.ra, unit="deg")
    table["dec"] = MaskedColumn(sky.dec, unit="deg")
    true: dict[str, Values] = {}
    missing: Masks = {}
    for band, faintest in depth.items():
        flux = zero[band] * 10 ** (-0.4 * sky.magnitude[band])
        error = np.hypot(faintest / 5, 0.03 * flux)
        flux = flux + error * sky.rng.normal(size=n)
        rows = flux < faintest
        name = f"flux_{band}"
        true[name], missing[name] = flux, rows
        table[name] = MaskedColumn(flux, mask=rows, unit="mJy")
        table[f"{name}_err"] = MaskedColumn(error, mask=rows, unit="mJy")
        table[f"{name}_limit"] = MaskedColumn(np.full(n, faintest), mask=~rows, unit="mJy")
    true["period"], missing["period"] = 10**sky.log_period, np.zeros(n, bool)
    table["period"] = MaskedColumn(true["period"], unit="d", description="from the light curve")
    lost = sky.some(0.05)
    table["class"] = np.where(lost, "unclassified", sky.words()).astype(str)
    table.write(path, format="ascii.ecsv", overwrite=True)
    return true, missing, int(lost.sum())


def _parquet(path: Path, sky: Sky, *, train: bool) -> tuple[dict[str, Values], Masks, int]:
    """Write Parquet from pandas: a named index, nullable whole numbers, categories, booleans."""
    n = sky.n
    true = {f"mag_{band}": sky.measured(band)[0] for band in ("B", "V", "I", "K")}
    true["log_period"] = sky.log_period
    missing = {name: sky.some(0.08) for name in true}
    missing["mag_V"] = missing["log_period"] = np.zeros(n, bool)
    missing["mag_K"] = sky.without_infrared
    frame = pd.DataFrame(
        {name: np.where(missing[name], np.nan, values) for name, values in true.items()},
        index=pd.Index(sky.identifiers(), name="gaia_id"),
    )
    n_points = pd.array(sky.rng.poisson(60, n), dtype="Int64")
    n_points[sky.some(0.1)] = pd.NA
    frame["n_points"], frame["blended"] = n_points, sky.some(0.1)
    lost = sky.some(0.05)
    if train:
        frame["label"] = pd.Categorical(np.where(lost, None, sky.words()))
    frame.to_parquet(path)
    return true, missing, int(lost.sum())


# Objects of the eleven classes of the wide table: of the rarest there are three.
WIDE = dict(zip("ABCDEFGHIJK", (260, 200, 150, 120, 90, 70, 45, 30, 20, 12, 3), strict=True))


def _wide(path: Path, rng: np.random.Generator, *, train: bool) -> tuple:
    """Write 40 features of 11 classes, which differ in some of them each."""
    of_classes = np.random.default_rng(11)
    centers = of_classes.normal(0, 1.3, (len(WIDE), 40)) * (of_classes.random((11, 40)) < 0.25)
    mixing = of_classes.normal(0, 0.35, (6, 40))
    kinds = np.repeat(np.arange(len(WIDE)), list(WIDE.values()))
    if not train:
        kinds = rng.choice(kinds, 1200)
    rng.shuffle(kinds)
    n = len(kinds)
    X = centers[kinds] + rng.normal(size=(n, 6)) @ mixing + rng.normal(0, 0.8, (n, 40))
    names = [f"feat_{k:02d}" for k in range(40)]
    true = {name: np.round(10 + 2 * values, 4) for name, values in zip(names, X.T, strict=True)}
    # Whole blocks of features are missing together, more often of some classes.
    blocks = rng.random((n, 8)) < 0.04 + 0.02 * (kinds[:, None] % 3)
    missing = {name: blocks[:, k // 5] for k, name in enumerate(names)}
    classes = np.array(list(WIDE))[kinds]
    frame = pd.DataFrame({"object": [f"obj{k}" for k in range(n)]})
    cells = {name: np.where(missing[name], np.nan, values) for name, values in true.items()}
    frame = pd.concat([frame, pd.DataFrame(cells)], axis=1)
    frame["class"] = [f"class {name}" for name in classes]
    frame.to_csv(path, index=False, na_rep="NaN")
    return true, missing, 0, frame["class"].to_numpy(str)


Writer = Callable[..., tuple[dict[str, Values], Masks, int]]
# Writer, file ending, label, identifier, rows to train on.
TABLES: dict[str, tuple[Writer, str, str, str, int]] = {
    "survey": (_survey_csv, ".csv", "var_class", "source_id", 600),
    "fits": (_fits, ".fits", "VARTYPE", "OBJID", 500),
    "votable": (_votable, ".vot", "Type", "Name", 400),
    "blanks": (_blanks, ".dat", "type", "star", 400),
    "spreadsheet": (_spreadsheet, ".csv", "Klasse", "Stern", 300),
    "ecsv": (_ecsv, ".ecsv", "class", "source", 400),
    "parquet": (_parquet, ".parquet", "label", "gaia_id", 400),
    "wide": (_wide, ".csv", "class", "object", sum(WIDE.values())),
}
N_FRESH = 1200


def make_table(name: str, folder: Path) -> FirstTable:
    """Write one of the eight: the file to train on, and one of fresh rows."""
    write, ending, label, identifier, n_train = TABLES[name]
    paths = folder / f"{name}{ending}", folder / f"{name}_fresh{ending}"
    seed = list(TABLES).index(name)
    if name == "wide":
        *_, unlabelled, _ = write(paths[0], np.random.default_rng([seed, 0]), train=True)
        true, missing, _, classes = write(paths[1], np.random.default_rng([seed, 1]), train=False)
    else:
        *_, unlabelled = write(paths[0], Sky(np.random.default_rng([seed, 0]), n_train), train=True)
        sky = Sky(np.random.default_rng([seed, 1]), N_FRESH)
        true, missing, _ = write(paths[1], sky, train=False)
        classes = sky.words(NAMES.get(name)).astype(str)
    return FirstTable(*paths, label, classes, true, missing, unlabelled, identifier)


if __name__ == "__main__":
    for table_name in TABLES:
        print(make_table(table_name, Path(sys.argv[1])).train)
