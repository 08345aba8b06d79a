"""Training sets and the fields that they are used on, which differ from them."""

from typing import NamedTuple

import numpy as np

from class_tables import chandra_gaps, macho_cells
from skyfill.datasets import (
    join_by_truth,
    load_eros,
    load_macho_variables,
    simulate_field,
    simulate_training_set,
)
from skyfill.lightcurve import choose_features, extract_features, from_table
from skyfill.model import cells_of
from skyfill.model.training import untrained
from skyfill.network import Cells
from skyfill.sky import MatchRules, join

BANDS = ("V_macho", "R_macho", "U", "B", "I", "J", "H", "K", "m36", "m45", "m58", "m80")
# Features of light curves that need no period: finding periods takes most of the time.
CURVES = ("sigma", "eta", "con", "stetson_l", "cusum", "car_sigma", "car_tau")
# The seeds of fields differ from those of training sets.
FIELD_SEED = 100
# Objects whose light curves are simulated at a time: a thousand measurements of each.
CURVES_AT_ONCE = 2000


class Case(NamedTuple):
    """Labelled cells that teach, others that judge, and the class whose list is judged."""

    training: Cells
    labels: np.ndarray
    field: Cells
    truth: np.ndarray
    rare: str


def simulated(seed, options):
    """The simulated training set and field, with their limits."""
    training = published(simulate_training_set(seed=seed, light_curves=options.features))
    field = field_tables(options.objects, seed=seed + FIELD_SEED, features=options.features)
    read = reader(training, options.features)
    return Case(*read([training]), *read(field), "QSO")


def field_tables(n, *, features=False, **how):
    """A simulated field as joined tables: one, or with features of light curves several parts."""
    if not features:
        return [published(simulate_field(n, **how))]
    parts = range(-(-n // CURVES_AT_ONCE))
    return [
        published(simulate_field(CURVES_AT_ONCE, part=k, light_curves=True, **how)) for k in parts
    ]


def published(field):
    """All that a user would have of a simulated field, joined; features where it has curves."""
    table = join_by_truth(field)
    if field.light_curves is None:
        return table
    wanted = choose_features(CURVES, every_band=False)
    found = extract_features(from_table(field.light_curves), wanted)
    place = {name: i for i, name in enumerate(found.column("id").to_pylist())}
    rows = [place.get(name) for name in table.column("id").to_pylist()]
    for name in CURVES:
        table = table.with_column(name, found.column(name).take(rows), found.info(name))
    return table


def reader(training, features=False):
    """A function that gives the cells and classes of tables, as a model of the training set."""
    bare = untrained(training, [*BANDS, *CURVES] if features else list(BANDS))

    def read(tables):
        cells = [cells_of(bare, table)[0] for table in tables]
        y = [np.array(table.column("class").to_pylist()) for table in tables]
        return joined(cells), np.concatenate(y)

    return read


def joined(parts):
    """Cells of several tables with the same columns."""
    names = ("values", "lower", "upper", "errors")
    columns = {name: [getattr(part, name) for part in parts] for name in names}
    return Cells(**{k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()})


def split(table, column, sign, rare):
    """The bright half of a table, and its faint half; objects without the column are faint."""
    brightness = sign * table.X[:, table.names.index(column)]
    bright = brightness > np.nanmedian(brightness)
    # A class that has no bright object cannot be learned.
    known = np.isin(table.y, np.unique(table.y[bright]))
    faint = ~bright & known
    return Case(
        Cells(table.X[bright]), table.y[bright], Cells(table.X[faint]), table.y[faint], rare
    )


def eros_to_macho(seed, options):
    """Magnitudes, period and relative amplitudes, as EROS-1 and as MACHO measured them."""
    eros, macho = load_eros(), load_macho_variables()
    both = join(eros, {"macho": macho}, 3.0, rules=MatchRules(remove_offset=True, n_controls=0))
    theirs = macho_stars(both, "_macho")
    offsets = np.nanmedian(eros_stars(both) - theirs, axis=0)
    matched = set(both.column("starid_macho").to_pylist())
    other = [name not in matched for name in macho.column("starid").to_pylist()]
    new = np.random.default_rng(seed).permutation(np.flatnonzero(other))[: options.objects]
    X, y = macho_stars(macho, "") + offsets, np.array(macho.column("class").to_pylist())
    ours = np.array(eros.column("class").to_pylist())
    return Case(Cells(eros_stars(eros)), ours, Cells(X[new]), y[new], "EB")


def eros_stars(table):
    """B and R, log period, and log of the relative scatter of the flux in B and R."""
    B, R, period, *scatter = table.numbers(
        "magnitude_b", "magnitude_r", "period_divided", "sigma_flux_b", "sigma_flux_r"
    ).T
    relative = [logs(flux) + 0.4 * m for flux, m in zip(scatter, (B, R), strict=True)]
    return np.column_stack([B, R, logs(period), *relative])


def macho_stars(table, suffix):
    """V and R, log period, and log amplitudes in V and R."""
    names = ("magave_kv", "magave_kr", "period_r", "amp_b", "amp_r")
    V, R, *others = table.numbers(*(name + suffix for name in names)).T
    return np.column_stack([V, R, *map(logs, others)])


def logs(values):
    """Logarithms; gaps where there is none."""
    return np.log10(np.where(values > 0, values, np.nan))


CASES = {
    "eros": eros_to_macho,
    "simulated": simulated,
    "macho": lambda seed, options: split(macho_cells(0.2, seed), "Mean", -1, "QSO"),
    "chandra": lambda seed, options: split(chandra_gaps(seed), "Fcsc_m", 1, "AGN"),
}
