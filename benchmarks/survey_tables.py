"""The tables of the imputation benchmark: numbers, names, and the columns of each survey."""

from typing import NamedTuple

import numpy as np

from skyfill.catalog import Role
from skyfill.datasets import (
    PAPER_FEATURES,
    load_chandra,
    load_debosscher_lightcurves,
    load_eros,
    load_macho,
    load_macho_variables,
    load_sage_spec,
)
from skyfill.lightcurve import extract_features, from_table
from skyfill.sky import MatchRules, join


class SurveyTable(NamedTuple):
    """Numbers of shape (n, p); columns of each survey, and those that grow as objects fade."""

    title: str
    X: np.ndarray
    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    magnitudes: tuple[int, ...]


def macho():
    """The paper's features: 12 of its 14; there is one survey, so families are its blocks."""
    groups = {
        "photometry": ("Mean", "Color"),
        "autoregression": ("CAR_sigma", "CAR_tau"),
        "period": ("PeriodLS", "Period_fit"),
        "variability": ("Std", "Eta_e", "Con", "StetsonL", "Rcs", "StetsonK_AC"),
    }
    return build(
        "MACHO, 12 features",
        load_macho(),
        PAPER_FEATURES,
        groups=groups.values(),
        logs=("CAR_tau", "Eta_e", "PeriodLS"),
        magnitudes=("Mean",),
    )


def macho_all():
    """All features of FATS as they are, long tails and near copies among them."""
    table = load_macho()
    names = tuple(table.names_with(Role.FEATURE))
    return build(f"MACHO, all {len(names)} features", table, names, groups=(), magnitudes=("Mean",))


def chandra():
    """The features that at least half of the sources have."""
    groups = {
        "chandra": ("Fcsc_s", "Fcsc_m", "Fcsc_h", "var_intra_prob"),
        "gaia": ("Gmag", "BPmag", "RPmag", "RPlx", "PM", "epsi", "sepsi", "ruwe", "rgeo"),
        "2mass": ("Jmag", "Hmag", "Kmag"),
        "wise": ("W1mag", "W2mag", "W3mag"),
    }
    names = tuple(name for group in groups.values() for name in group)
    return build(
        "Chandra × Gaia × 2MASS × WISE, 19 features",
        load_chandra(),
        names,
        groups=groups.values(),
        logs=("Fcsc_s", "Fcsc_m", "Fcsc_h", "ruwe", "rgeo"),
        softs=("RPlx", "PM", "epsi", "sepsi"),
        magnitudes=tuple(name for name in names if name.endswith("mag")),
    )


def sage():
    groups = (("J2mag", "H2mag", "Ks2mag"), ("[3.6]", "[4.5]", "[5.8]", "[8.0]"), ("[24]",))
    names = tuple(name for group in groups for name in group)
    return build(
        "SAGE-Spec, 8 magnitudes", load_sage_spec(), names, groups=groups, magnitudes=names
    )


def eros():
    """EROS-1 with its MACHO counterparts; columns that follow from others are left out."""
    rules = MatchRules(remove_offset=True, n_controls=0)
    table = join(load_eros(), {"macho": load_macho_variables()}, 3.0, rules=rules)
    ours = ("magnitude_b", "magnitude_r", "period", "asym_b", "asym_r", "log_p_not_variable")
    ours += ("sigma_flux_b", "sigma_flux_r")
    bands = ("period", "amp", "suprsa", "chi2r", "sig")
    theirs = tuple(f"{name}_{band}_macho" for name in bands for band in "rb")
    theirs += ("magave_kv_macho", "magave_kr_macho", "varindex_macho")
    skewed = ("period", "sigma_flux", "suprsa", "chi2r", "varindex", "sig_")
    return build(
        "EROS-1 × MACHO, 21 features",
        table,
        ours + theirs,
        groups=(ours, theirs),
        logs=tuple(name for name in ours + theirs if name.startswith(skewed)),
        magnitudes=("magnitude_b", "magnitude_r", "magave_kv_macho", "magave_kr_macho"),
    )


def debosscher():
    """Our own features of its light curves as they are; those that at least half of them have."""
    table = extract_features(from_table(load_debosscher_lightcurves()), "all")
    every = table.names_with(Role.FEATURE)
    seen = np.isfinite(table.numbers(*every)).mean(axis=0)
    names = tuple(name for name, share in zip(every, seen, strict=True) if share >= 0.5)
    return build(f"Debosscher, {len(names)} features", table, names, groups=())


def made_up():
    """Twelve clumps in 150 columns, each along four directions of its own; without families."""
    rng, (n, p, k, q) = np.random.default_rng(5), (3000, 150, 12, 4)
    kind, means = rng.integers(k, size=n), 0.7 * rng.normal(size=(k, p))
    loads = 0.5 * rng.normal(size=(k, p, q))
    X = means[kind] + np.einsum("npq,nq->np", loads[kind], rng.normal(size=(n, q)))
    X += 0.5 * rng.normal(size=(n, p))
    names = tuple(f"x{j}" for j in range(p))
    return SurveyTable("made up, 150 columns", X, names, (), ())


def build(title, table, names, *, groups, logs=(), softs=(), magnitudes=()):  # noqa: PLR0913
    """Take numbers, logarithms of the skewed; arcsinh where skewed values may be 0 or below."""
    X = table.numbers(*names)
    X[np.isinf(X)] = np.nan
    for name in logs:
        X[:, names.index(name)] = np.log10(X[:, names.index(name)])
    for name in softs:
        column = X[:, names.index(name)]
        X[:, names.index(name)] = np.arcsinh(column / np.nanmedian(np.abs(column)))
    places = tuple(tuple(names.index(name) for name in group) for group in groups)
    some = ~np.isnan(X).all(axis=1)
    return SurveyTable(title, X[some], names, places, tuple(map(names.index, magnitudes)))


TABLES = {
    "macho": macho,
    "macho35": macho_all,
    "chandra": chandra,
    "sage": sage,
    "eros": eros,
    "debosscher": debosscher,
    "wide": made_up,
}
