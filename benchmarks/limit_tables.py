"""The tables of the benchmark of non-detections: cells, limits, errors, and what is true."""

import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skyfill.datasets import join_by_truth, simulate_training_set

BANDS = ("V_macho", "R_macho", "U", "B", "I", "J", "H", "K", "m36", "m45", "m58", "m80")
# The chance of a detection falls over this width, in magnitudes (Sawicki 2012).
LIMIT_WIDTH = 0.2
REASONS = ("undetected", "unmatched", "uncovered")
UCI = {
    "banknote": "banknote_authentication.csv",
    "red": "winequality-red.csv",
    "white": "winequality-white.csv",
}
DC2_BANDS = "ugrizy"
DC2_HIDDEN = "ugy"
# An error of 0.2 mag is a detection of five sigma.
FIVE_SIGMA = 0.2
# Fainter than an error of one magnitude nothing is known.
LARGEST_ERROR = 1.0
DC2_ROWS = 4000
# Share of the fluxes of a band that is hidden; fluxes of Chandra below this (erg/s/cm2) are none.
FLUX_CUT, FLUX_FLOOR, CHANDRA_ROWS = 0.3, 1e-17, 400


class LimitedTable(NamedTuple):
    """Arrays of shape (n, p): NaN where there is no value, limit, error or truth.

    `doubt` is the standard deviation of what is taken as true; `groups` name the judged cells. What
    is `positive`, as a flux, is judged in dex.
    """

    X: np.ndarray
    lower: np.ndarray
    errors: np.ndarray | None
    true: np.ndarray
    doubt: np.ndarray | None
    groups: dict[str, np.ndarray]
    upper: np.ndarray | None = None
    positive: np.ndarray | None = None


def field(seed):
    """The simulated training set: 12 magnitudes, each gap with its reason."""
    made = simulate_training_set(seed=seed)
    table = join_by_truth(made)
    X, errors = (np.column_stack([table.numbers(p + b)[:, 0] for b in BANDS]) for p in ("", "e_"))
    true = [made.truth.numbers("true_" + b.removesuffix("_macho"))[:, 0] for b in BANDS]
    reasons = np.column_stack([reasons_of(table, band) for band in BANDS])
    lower = np.full(X.shape, np.nan)
    for j, band in enumerate(BANDS):
        undetected, unmatched = (reasons[:, j] == reason for reason in REASONS[:2])
        if undetected.any():
            stated = table.numbers(f"{band}_limit")[:, 0]
            lower[undetected, j] = stated[undetected]
            lower[unmatched, j] = np.nanmedian(stated)
    errors = np.where(np.isnan(lower), errors, LIMIT_WIDTH)
    groups = {reason: reasons == reason for reason in REASONS}
    return LimitedTable(X, lower, errors, np.column_stack(true), None, groups)


def reasons_of(table, band):
    return np.array([reason or "" for reason in table.reasons(band).to_pylist()])


def uci(name, seed):
    """The protocol of not-MIWAE: values above the mean hidden in the first half of the columns."""
    true = np.loadtxt(data_file("uci", UCI[name]), delimiter=",")[:, :-1]
    true = (true - true.mean(axis=0)) / true.std(axis=0)
    hidden = true > 0
    hidden[:, true.shape[1] // 2 :] = False
    X, lower = np.where(hidden, np.nan, true), np.where(hidden, 0.0, np.nan)
    return LimitedTable(X, lower, None, true, None, {"hidden": hidden})


def dc2(seed):
    """Magnitudes of DC2; in u, g and y all that is fainter than a brighter limit is hidden."""
    true, doubt = dc2_known(seed)
    hidden, lower = np.zeros(true.shape, bool), np.full(true.shape, np.nan)
    for j in map(DC2_BANDS.index, DC2_HIDDEN):
        near = np.abs(doubt[:, j] - FIVE_SIGMA) < FIVE_SIGMA / 10
        limit = np.median(true[near, j]) - 1
        hidden[:, j] = ~(true[:, j] < limit)
        lower[hidden[:, j], j] = limit
    X = np.where(hidden, np.nan, true)
    errors = np.where(hidden, FIVE_SIGMA / 10**0.4, doubt)
    known = hidden & ~np.isnan(true)
    groups = {DC2_BANDS[j]: known & (np.arange(6) == j) for j in map(DC2_BANDS.index, DC2_HIDDEN)}
    groups = {"all": known, **groups, "all, known to 5 sigma": known & (doubt <= FIVE_SIGMA)}
    return LimitedTable(X, lower, errors, true, doubt, groups)


def dc2_noisy(seed):
    """Values of DC2 taken as true, with noise of three times their errors; rows without gaps."""
    true, doubt = dc2_known(seed)
    complete = ~np.isnan(true).any(axis=1)
    true, errors = true[complete], 3 * doubt[complete]
    X = true + errors * np.random.default_rng(seed).standard_normal(true.shape)
    groups = {band: np.broadcast_to(np.arange(6) == j, X.shape) for j, band in enumerate(DC2_BANDS)}
    groups = {"all": np.ones(X.shape, bool), **groups}
    return LimitedTable(X, np.full(X.shape, np.nan), errors, true, None, groups)


def fluxes(seed):
    """Simulated log-normal fluxes of 313 galaxies in five bands, each with a limit."""
    rng = np.random.default_rng(seed)
    true = np.exp(rng.normal(size=(313, 1)) + 0.5 * rng.normal(size=(313, 5)))
    return hidden_fluxes(true, np.arange(5), FLUX_CUT)


def chandra(seed):
    """Fluxes in three bands of Chandra, the faintest of each hidden, and magnitudes beside them."""
    import pyarrow.csv as pc

    table = pc.read_csv(data_file("muwclass", "CSC_TD_11042023_MW.csv"))
    names = [f"Fcsc_{band}" for band in "smh"] + ["Gmag", "Jmag", "Kmag", "W1mag"]
    columns = np.column_stack([np.array(table[name].to_pylist(), float) for name in names])
    columns[:, :3][columns[:, :3] < FLUX_FLOOR] = np.nan
    columns[:, :3] *= 1e14
    rows = np.random.default_rng(seed).permutation(len(columns))[:CHANDRA_ROWS]
    return hidden_fluxes(columns[rows], np.arange(3), FLUX_CUT)


def hidden_fluxes(true, columns, share):
    """Hide the faintest share of some columns, with the limit that hides them."""
    limits = np.nanquantile(true[:, columns], share, axis=0)
    hidden, upper = np.zeros(true.shape, bool), np.full(true.shape, np.nan)
    hidden[:, columns] = true[:, columns] < limits
    upper[:, columns] = np.where(hidden[:, columns], limits, np.nan)
    X, lower = np.where(hidden, np.nan, true), np.full(true.shape, np.nan)
    positive = np.isin(np.arange(true.shape[1]), columns)
    return LimitedTable(X, lower, None, true, None, {"hidden": hidden}, upper, positive)


def dc2_known(seed):
    """Magnitudes and errors of some objects; NaN where the error is over a magnitude."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_file("dc2", "test_dc2_training_9816.pq"))
    mags, errors = (
        np.column_stack([table[f"mag_{kind}{band}_lsst"].to_numpy() for band in DC2_BANDS])
        for kind in ("", "err_")
    )
    unknown = (mags >= 90) | ~(errors <= LARGEST_ERROR)
    rows = np.random.default_rng(seed).permutation(len(mags))[:DC2_ROWS]
    return np.where(unknown, np.nan, mags)[rows], np.where(unknown, np.nan, errors)[rows]


def data_file(*parts):
    folder = os.environ.get("SKYFILL_DATA")
    if not folder:
        raise SystemExit("set SKYFILL_DATA to a folder with uci/ and dc2/ (see docs/benchmarks.md)")
    return Path(folder, *parts)


TABLES = {
    "field": field,
    **{name: partial(uci, name) for name in UCI},
    "dc2": dc2,
    "noisy": dc2_noisy,
    "fluxes": fluxes,
    "chandra": chandra,
}
