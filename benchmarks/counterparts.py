"""Counterparts with a probability: skyfill against nway and the nearest neighbor.

    python benchmarks/counterparts.py [--part fields|reliability|real] [--sources 1000] [--seeds 3]

nway runs as the program ``nway.py`` (extra `compare`), on FITS files; without it its lines are left
out. Completeness is the share of the objects with a counterpart for which the right one is
accepted, at the loosest cut where at most 5 % of the accepted are wrong, by the truth.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from counterparts_nway import has_nway, run_nway, write_for_nway
from report import header, print_table
from skyfill.classify import CatalogClassifier, MixturePhotometry
from skyfill.classify.survey_magnitudes import read_magnitudes
from skyfill.datasets import (
    load_chandra,
    load_eros,
    load_macho_variables,
    simulate_crowded_field,
    simulate_xray_field,
)
from skyfill.sky import (
    CounterpartRules,
    PositionError,
    Survey,
    find_counterparts,
    group_elsewhere,
    match_positions,
    read_surroundings,
)

FALSE_RATE = 0.05
# Fields of the part `reliability`: nothing was chosen on them.
FIRST_SEED = 9000
BANDS = {"optical": ("B", "V", "R", "I"), "infrared": ("K", "m36", "m45"), "sharp": ("V", "I", "K")}
BASE_BANDS = {"xray": ("log_flux", "hardness"), "crowded": ("V", "R")}


def completeness_at(score, right, has, rate=FALSE_RATE):
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(right[order])
    false = 1 - hits / np.arange(1, len(order) + 1)
    good = np.flatnonzero(false <= rate)
    return hits[good[-1]] / has.sum() if good.size else 0.0


def reliability(p, came_true, n_bins=10):
    """Largest gap between mean p and the share that came true over bins with equal numbers.

    With the scatter that the bin would have if its probabilities were right, and the mean gap.
    """
    parts = np.array_split(np.argsort(p), n_bins)
    apart = np.array([abs(p[part].mean() - came_true[part].mean()) for part in parts])
    worst = p[parts[apart.argmax()]]
    scatter = np.sqrt(np.sum(worst * (1 - worst))) / len(worst)
    return f"{apart.max():.3f} +- {scatter:.3f} ({apart.mean():.3f})"


def skyfill_run(field, names, beam=0.0, bands=None):
    """Search as the command does, by position or with these bands of the base and the surveys."""
    own = [BANDS[name] if bands is not None else () for name in names]
    surveys = [
        Survey(name, field.surveys[name], 0.0, bands=b) for name, b in zip(names, own, strict=True)
    ]
    base = Survey("base", field.base, 0.0, beam_arcsec=beam)
    there, photometry = read_surroundings(base, surveys), None
    if bands is not None:
        magnitudes = read_magnitudes(base, surveys, [bands, *own], there)
        photometry = MixturePhotometry(magnitudes, group_elsewhere(there))
    return find_counterparts(there, CounterpartRules(), photometry)


def true_rows(field, names):
    return np.stack([field.truth.numbers(f"row_{n}")[:, 0].astype(int) for n in names], axis=1)


def skyfill_runs(field, kind, names, beam=0.0, *, with_base=True):
    label = "+".join(names) + (f" (beam {beam:g} arcsec)" if beam else "")
    ways = {
        f"skyfill, {label}, position": None,
        f"skyfill, {label}, mixtures": (),
    }
    if with_base:
        ways[f"skyfill, {label}, mixtures with the base's columns"] = BASE_BANDS[kind]
    out = {}
    for name, bands in ways.items():
        found = skyfill_run(field, names, beam, bands)
        rows = found.associations.rows[found.best.chosen]
        score = np.where(rows[:, 0] >= 0, found.best.p_survey[:, 0], 0.0)
        out[name] = rows[:, 0], score, found.best.p_any
    return out, true_rows(field, names)


def nway_runs(field, folder, name, magnitude):
    """Nway on the first survey: position; and with one magnitude."""
    base = write_for_nway(field.base, "base", field.area_deg2, folder / "base.fits")
    other = write_for_nway(field.surveys[name], name, field.area_deg2, folder / f"{name}.fits")
    inputs = [(base, ":pos_err"), (other, ":pos_err")]
    radius = min(5 * field.base.numbers("pos_err").max(), 75)
    ways = {"position": (), f"with {magnitude}": ("--mag", f"{name.upper()}:{magnitude}", "auto")}
    out = {}
    for way, options in ways.items():
        told, _, _ = run_nway(inputs, radius, folder / "out.fits", *options)
        best = told[told["match_flag"] == 1]
        rows, score, p_any = (
            np.full(len(field.base), -1),
            np.zeros(len(field.base)),
            np.zeros(len(field.base)),
        )
        at = np.asarray(best["BASE_ID"], int) - 1
        rows[at] = np.where(best[f"{name.upper()}_ID"] > 0, best[f"{name.upper()}_ID"] - 1, -1)
        score[at], p_any[at] = best["p_any"] * best["p_i"], best["p_any"]
        out[f"nway, {name}, {way}"] = rows, np.where(rows >= 0, score, 0), p_any
    return out


def nearest_run(field, name):
    left, right = (t.numbers("ra", "dec").T for t in (field.base, field.surveys[name]))
    found = match_positions(*left, *right, 75.0)
    rows, score = np.full(len(field.base), -1), np.zeros(len(field.base))
    sigma = field.base.numbers("pos_err")[found.left, 0]
    rows[found.left], score[found.left] = (
        found.right,
        np.exp(-((found.separation_arcsec / sigma) ** 2)),
    )
    return {f"nearest, {name}": (rows, score, None)}


def measure_fields(folder, n_sources, seeds):
    for kind, sets in (
        ("xray", (("optical",), ("optical", "infrared"))),
        ("crowded", (("sharp",),)),
    ):
        scores = {}
        for seed in range(seeds):
            make = simulate_xray_field if kind == "xray" else simulate_crowded_field
            field = make(n_sources if kind == "xray" else 5 * n_sources, seed=100 + seed)
            first = sets[0][0]
            runs = nearest_run(field, first)
            if has_nway():
                runs |= nway_runs(field, folder, first, "R" if kind == "xray" else "V")
            truth = None
            for names in sets:
                more, truths = skyfill_runs(field, kind, names)
                truth = truths[:, 0]
                runs |= more
                has_any = (truths >= 0).any(axis=1)
            for name, (rows, score, p_any) in runs.items():
                right = (rows == truth) & (truth >= 0)
                there = has_any if "+" in name else truth >= 0
                scores.setdefault(name, []).append((right, score, p_any, truth >= 0, there))
        rows = []
        for name, found in scores.items():
            right, score, _, has, _ = (
                np.concatenate(part) if part[0] is not None else None
                for part in zip(*found, strict=True)
            )
            line = [
                name,
                f"{right.sum() / has.sum():.3f}",
                f"{completeness_at(score, right, has):.3f}",
            ]
            if found[0][2] is not None:
                p_any, there = (
                    np.concatenate(part) for part in list(zip(*found, strict=True))[2::2]
                )
                line += [
                    reliability(score, right),
                    reliability(p_any, there),
                ]
            rows.append(line + ["-"] * (5 - len(line)))
        print(f"\n{kind} field, {seeds} x {n_sources} sources\n")
        print_table(
            [
                "method",
                "right counterpart first",
                "completeness at 5 % false",
                "p_i p_any: largest (mean) gap",
                "p_any: largest (mean) gap",
            ],
            rows,
        )


def measure_reliability(n_sources, seeds):
    """Only skyfill, on more fields, none of which anything was chosen on."""
    rows = []
    for kind, names, beam in (
        ("xray", ("optical", "infrared"), 0.0),
        ("crowded", ("sharp",), 2.0),
        ("xray", ("optical",), 0.0),
    ):
        found = {}
        for seed in range(seeds):
            make = simulate_xray_field if kind == "xray" else simulate_crowded_field
            field = make(n_sources if kind == "xray" else 5 * n_sources, seed=FIRST_SEED + seed)
            runs, truth = skyfill_runs(field, kind, names, beam, with_base=False)
            for name, (chosen, score, p_any) in runs.items():
                right = (chosen == truth[:, 0]) & (truth[:, 0] >= 0)
                part = right, score, p_any, (truth >= 0).any(axis=1)
                found.setdefault(name, []).append(part)
        for name, parts in found.items():
            right, score, p_any, has = map(np.concatenate, zip(*parts, strict=True))
            rows.append([name, str(len(right)), reliability(score, right), reliability(p_any, has)])
            print(*rows[-1], sep=" | ", flush=True)
    columns = ["method", "objects", "p_any p_i: largest (mean) gap", "p_any: largest (mean) gap"]
    print_table(columns, rows)


def measure_chandra():
    """P(class) with the counterpart, and mixed with P(class | X-rays alone) by p_any p_i."""
    from sklearn.metrics import f1_score, log_loss
    from sklearn.model_selection import StratifiedKFold

    table = load_chandra()
    names = [n for n in table.names if str(table.info(n).role) == "feature"]
    X, y = table.numbers(*names), np.array(table.column("Class").to_pylist())
    p = np.prod(np.nan_to_num(table.numbers("p_any", "p_i"), nan=1.0), axis=1)
    alone = X.copy()
    xray = [n for n in names if n.startswith(("Fcsc", "var_", "powlaw"))]
    alone[:, [j for j, n in enumerate(names) if n not in xray]] = np.nan
    plain, mixed = (np.zeros((len(y), len(set(y)))) for _ in range(2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = CatalogClassifier(random_state=0).fit(X[train], y[train])
        plain[test] = model.predict_proba(X[test])
        without = model.predict_proba(alone[test])
        mixed[test] = p[test, None] * plain[test] + (1 - p[test, None]) * without
    kinds = np.unique(y)
    rows = []
    for part, chosen in (("all", np.ones(len(y), bool)), ("p_any p_i below 0.5", p < 0.5)):
        for name, P in (("as matched", plain), ("mixed by p_any p_i", mixed)):
            f1 = f1_score(y[chosen], kinds[P[chosen].argmax(axis=1)], average="macro")
            rows.append(
                [
                    f"{name}, {part} ({chosen.sum()})",
                    f"{f1:.3f}",
                    f"{log_loss(y[chosen], P[chosen], labels=kinds):.3f}",
                ]
            )
    print_table(["Chandra, 5 folds", "macro F1", "log loss"], rows)


def measure_eros():
    eros, macho = load_eros(), load_macho_variables()
    survey = Survey("macho", macho, 3.0, error=PositionError())
    base = Survey("base", eros, 0.0, error=PositionError())
    there = read_surroundings(base, [survey], remove_offset=True)
    found = find_counterparts(there, CounterpartRules())
    rows = found.associations.rows[found.best.chosen, 0]
    accepted = (rows >= 0) & (found.best.p_any >= 0.5)
    left, right = (
        (there.base.ra_deg, there.base.dec_deg),
        (there.surveys[0].ra_deg, there.surveys[0].dec_deg),
    )
    plain = match_positions(*left, *right, 3.0)
    same = np.count_nonzero(rows[plain.left] == plain.right)
    doubtful = np.flatnonzero(accepted & (found.best.p_any * found.best.p_i < 0.9))
    sigma = float(np.sqrt(there.base.variance[0] + there.surveys[0].variance[0]))
    print_table(
        ["EROS-1 x MACHO", "pairs"],
        [
            ["nearest, one to one, 3 arcsec", str(len(plain))],
            ["the same with probability", str(same)],
            [
                f"accepted (p_any at least 0.5; error of both together {sigma:.2f} arcsec)",
                str(accepted.sum()),
            ],
            ["doubtful among them (p_any p_i below 0.9)", str(len(doubtful))],
        ],
    )
    print("rows of the doubtful:", ", ".join(map(str, (doubtful + 1).tolist())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["fields", "reliability", "real"])
    parser.add_argument("--sources", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    told = parser.parse_args()
    header("Counterparts with a probability", ["nway", "astropy", "scikit-learn"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if told.part in (None, "fields"):
            measure_fields(folder, told.sources, told.seeds)
        if told.part == "reliability":
            measure_reliability(told.sources, told.seeds)
        if told.part in (None, "real"):
            measure_chandra()
            measure_eros()


if __name__ == "__main__":
    main()
