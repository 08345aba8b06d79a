"""Forests on light-curve features alone: EROS-1 and Debosscher classes; periods against catalogs.

    python benchmarks/lightcurve_classes.py [--feets] [--cache FOLDER]

light-curve and feets are used where they are installed; feets takes a quarter of an hour for the
1392 Debosscher stars and runs only when asked for. Features are kept in the cache folder.
"""

import argparse
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from report import header, print_table
from skyfill.catalog import Role
from skyfill.datasets import (
    load_debosscher,
    load_debosscher_lightcurves,
    load_eros,
    load_eros_lightcurves,
    load_macho_variables,
)
from skyfill.lightcurve import CurveColumns, Request, extract_features, from_table
from skyfill.sky import MatchRules, Survey, join_surveys

SEEDS = (0, 1, 2)
EROS = Request(
    CurveColumns(
        time="time_points_{band}", value="light_points_{band}", error="error_points_{band}"
    ),
    bands=("b", "r"),
)


def forest_predictions(X, y, seed):
    """Out-of-fold predictions of 5 folds; gaps and infinities become numbers far away."""
    X = np.clip(np.nan_to_num(X, nan=-1e6, posinf=1e30, neginf=-1e30), -1e30, 1e30)
    forest = RandomForestClassifier(500, n_jobs=-1, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # the rarest Debosscher class has four stars
        warnings.simplefilter("ignore", UserWarning)
        return cross_val_predict(forest, X.astype(np.float32), y, cv=folds)


def scores(X, y):
    predictions = [forest_predictions(X, y, seed) for seed in SEEDS]
    macro = [f1_score(y, p, average="macro") for p in predictions]
    accuracy = [accuracy_score(y, p) for p in predictions]
    return (np.mean(macro), np.std(macro), np.mean(accuracy)), predictions


def numbers(table):
    X = table.numbers(*table.names_with(Role.FEATURE))
    return X[:, ~np.isnan(X).all(axis=0)]


def row(label, X, found):
    macro, spread, accuracy = found
    return [label, X.shape[1], f"{macro:.3f} ± {spread:.3f}", f"{accuracy:.3f}"]


def eros(cache):
    table, stars = load_eros_lightcurves(), load_eros()
    y = np.array(stars.column("class").to_pylist())
    curves = from_table(table, EROS)
    ours = extract_features(curves, "all")
    rows, by_label = [], {}
    candidates = {"skyfill, all": numbers(ours), "skyfill, macho14": numbers(macho14(curves))}
    rival = light_curve_features(curves)
    if rival is not None:
        candidates["light-curve, both bands"] = rival
    for label, X in candidates.items():
        found, predictions = scores(X, y)
        by_label[label] = predictions
        rows.append(row(label, X, found))
    print_table(["EROS-1: features", "number", "macro F1", "accuracy"], rows)
    by_quality(y, stars.numbers("quality")[:, 0], by_label["skyfill, all"])
    macho = in_macho(stars)
    referee(y, by_label["skyfill, all"], np.array(macho.column("class_macho").to_pylist(), str))
    periods(ours, stars, y, np.where(macho.numbers("period_r_macho") > 0,
                                     macho.numbers("period_r_macho"), np.nan)[:, 0])  # fmt: skip


def macho14(curves):
    return extract_features(curves, "macho14")


def by_quality(y, quality, predictions):
    """Labels and periods of the catalog are a person's, who also judged their quality."""
    rows = []
    for least in (0, 1, 2):
        kept = quality >= least
        macro = [f1_score(y[kept], p[kept], average="macro") for p in predictions]
        classes = [f1_score(y[kept], p[kept], average=None) for p in predictions]
        each = np.mean(classes, axis=0)
        rows.append([least, kept.sum(), f"{np.mean(macro):.3f}", *(f"{f:.3f}" for f in each)])
    print_table(["quality at least", "stars", "macro F1", *np.unique(y)], rows)


def referee(y, predictions, macho):
    """Whom the independent MACHO catalog supports where forest and EROS catalog disagree."""
    rows = []
    for seed, found in zip(SEEDS, predictions, strict=True):
        differ = (found != y) & np.isin(macho, np.unique(y))
        sides = [np.mean(side[differ] == macho[differ]) for side in (found, y)]
        rows.append([seed, differ.sum(), *(f"{share:.2f}" for share in sides)])
    columns = ["stars in MACHO where both differ", "MACHO agrees with forest", "with EROS label"]
    print_table(["seed", *columns], rows)


def periods(ours, stars, y, macho):
    catalog = stars.numbers("period_divided")[:, 0]
    rows = []
    for name in ("period", "period_series"):
        found = ours.numbers(name)[:, 0]
        for kind in np.unique(y):
            is_kind = y == kind
            both = is_kind & np.isfinite(macho)
            rows.append(
                [
                    name,
                    kind,
                    is_kind.sum(),
                    *shares(found[is_kind], catalog[is_kind]),
                    both.sum(),
                    *shares(found[both], macho[both]),
                    shares(catalog[both], macho[both])[0],
                ]
            )
    print_table(
        ["feature", "class", "stars", "agrees with EROS catalogue", "half or double",
         "or daily alias", "in MACHO", "agrees with MACHO", "half or double", "or daily alias",
         "EROS catalogue agrees with MACHO"],
        rows,
    )  # fmt: skip


def shares(found, truth):
    """Shares within 1 % of the true period, then also half or double, then also daily aliases."""
    ratio = found / truth
    same = np.abs(ratio - 1) < 0.01
    simple = same | (np.abs(2 * ratio - 1) < 0.01) | (np.abs(ratio / 2 - 1) < 0.01)
    alias = simple.copy()
    for cycles in (-2, -1, 1, 2):
        alias |= np.abs(1 / found - np.abs(1 / truth + cycles)) < 0.01 / truth
    return [f"{part.mean():.3f}" for part in (same, simple, alias)]


def in_macho(stars):
    """Join MACHO's catalog of variables: counterparts within 3 arcsec, one to one."""
    survey = Survey("macho", load_macho_variables(), 3.0)
    return join_surveys(stars, [survey], MatchRules(remove_offset=True, n_controls=0))[0]


def debosscher(cache, *, with_feets):
    labels = load_debosscher()
    curves = from_table(load_debosscher_lightcurves())
    classes = dict(
        zip(labels.column("id").to_pylist(), labels.column("class").to_pylist(), strict=True)
    )
    y = np.array([classes[name] for name in curves.ids.to_pylist()])
    candidates = {"skyfill, all": numbers(extract_features(curves, "all"))}
    rival = light_curve_features(curves)
    if rival is not None:
        candidates["light-curve"] = rival
    if with_feets:
        names, X = feets_features(curves, cache)
        maps = np.array([name.startswith(("Signature", "DeltamDeltat")) for name in names])
        candidates |= {"feets": X, "feets without its two-dimensional maps": X[:, ~maps]}
    rows = [row(label, X, scores(X, y)[0]) for label, X in candidates.items()]
    print_table(["Debosscher, 26 classes: features", "number", "macro F1", "accuracy"], rows)


def light_curve_features(curves):
    """All one-band statistics of light-curve, and three peaks of its periodogram on our grid."""
    try:
        import light_curve as lc
    except ImportError:
        return None
    statistics = lc.Extractor(
        lc.Amplitude(), lc.AndersonDarlingNormal(), lc.BeyondNStd(1), lc.BeyondNStd(2),
        lc.Cusum(), lc.Eta(), lc.EtaE(), lc.ExcessVariance(), lc.InterPercentileRange(0.25),
        lc.InterPercentileRange(0.1), lc.Kurtosis(), lc.LinearFit(), lc.LinearTrend(),
        lc.MagnitudePercentageRatio(0.4, 0.05), lc.MagnitudePercentageRatio(0.2, 0.05),
        lc.MaximumSlope(), lc.Mean(), lc.MeanVariance(), lc.Median(),
        lc.MedianAbsoluteDeviation(), lc.MedianBufferRangePercentage(0.1), lc.PercentAmplitude(),
        lc.PercentDifferenceMagnitudePercentile(0.05), lc.ReducedChi2(), lc.Skew(),
        lc.StandardDeviation(), lc.StetsonK(), lc.WeightedMean(),
    )  # fmt: skip
    return np.array([_star_statistics(curves, i, statistics) for i in range(len(curves))])


def _star_statistics(curves, index, statistics):
    import light_curve as lc

    from skyfill.lightcurve.periodogram import choose_grid

    found = []
    for curve in curves.star(index)[0].curves:
        found.extend(statistics(curve.time, curve.value, curve.error, sorted=True))
        limit = choose_grid(curve.time, np.array([0, len(curve)])).frequency[-1]
        nyquist = 0.5 * (len(curve) - 1) / np.ptp(curve.time)
        search = lc.Periodogram(
            peaks=3, resolution=5, max_freq_factor=float(limit / nyquist), nyquist="average"
        )
        found.extend(search(curve.time, curve.value, curve.error, sorted=True))
    if len(curves.about.bands) == 2:
        means = [curve.value.mean() for curve in curves.star(index)[0].curves]
        found.append(means[0] - means[1])
    return found


def feets_features(curves, cache):
    path = cache / "feets.npz"
    if path.exists():
        stored = np.load(path)
        return stored["names"], stored["X"]
    stars = [curves.star(i)[0].curves[0] for i in range(len(curves))]
    inputs = [{"time": c.time, "magnitude": c.value, "error": c.error} for c in stars]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(_feets_row, inputs, chunksize=16))
    names = list(found[0])
    cache.mkdir(parents=True, exist_ok=True)
    X = np.array([[each.get(name, np.nan) for name in names] for each in found], float)
    np.savez(path, names=np.array(names), X=X)
    return feets_features(curves, cache)


def _feets_row(star):
    # feets' own way over many curves builds one graph of all and takes longer to plan than to run.
    import feets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = feets.FeatureSpace(data=list(star), dask_options={"scheduler": "synchronous"})
        return space.extract(**star).as_frame().iloc[0].to_dict()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feets", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "skyfill-bench")
    options = parser.parse_args()
    header("Classes and periods from light curves", ["scikit-learn", "light-curve", "feets"])
    eros(options.cache)
    debosscher(options.cache, with_feets=options.feets)
