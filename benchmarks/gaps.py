"""Do gaps tell something? Held-out likelihood with informative and with ignorable gaps.

    python benchmarks/gaps.py [--repeats 5]

One half of a table is learned, rows and patterns of gaps of the other half are scored. Where gaps
are ignorable, each column has one probability of a gap for all rows, so that both are scored on
the same data. Both have the numbers of components and the shrinkage that the first half itself asks
for, the same for both. "auto" is what `gaps="auto"` chose from the first half alone.
"""

import argparse

import numpy as np

from report import header, print_table
from skyfill.evaluate import hide_cells, hide_faint
from skyfill.network import learn_mixture
from skyfill.network.mixture.plan_choice import held_out
from survey_tables import TABLES


def studies():
    """Name -> (table, columns that fade or None)."""
    macho, chandra, sage = (TABLES[key]() for key in ("macho", "chandra", "sage"))
    return {
        "MACHO, 20 % of the cells hidden at random": (macho, None),
        "MACHO, faintest fifth of 'Mean' and 'Color' hidden": (
            macho,
            tuple(map(macho.names.index, ("Mean", "Color"))),
        ),
        "SAGE-Spec, its own gaps": (sage, ()),
        "SAGE-Spec, own gaps and the faintest fifth of each band": (sage, sage.magnitudes),
        "Chandra × Gaia × 2MASS × WISE, its own gaps": (chandra, ()),
    }


def with_gaps(table, faint, rng):
    if faint is None:
        return hide_cells(table.X, 0.2, rng).X
    return hide_faint(table.X, 0.2, faint, rng).X if faint else table.X


def gains(table, faint, repeat):
    """Gain of informative over ignorable gaps per held-out row in nats, and what auto took."""
    rng = np.random.default_rng(repeat)
    X = with_gaps(table, faint, rng)
    X = X[~np.isnan(X).all(axis=1)]
    order = rng.permutation(len(X))
    train, held = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    plan = learn_mixture(train, gaps="auto", n_fits=1, rng=repeat).plan
    options = {"n_components": plan.n_components, "shrinkage": plan.shrinkage, "n_fits": 2}
    scores = {}
    for gaps in ("ignorable", "informative"):
        network = learn_mixture(train, gaps=gaps, rng=repeat, **options).network
        Z = [network.scores(part) for part in (held, train)]
        scores[gaps] = np.mean([held_out(fit, *Z) for fit in network.fits])
    return scores["informative"] - scores["ignorable"], plan.informative


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    header("Informative gaps", [])
    rows = []
    for title, (table, faint) in studies().items():
        found = [gains(table, faint, repeat) for repeat in range(repeats)]
        gain = [value for value, _ in found]
        error = np.std(gain, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.nan
        chosen = sum(informative for _, informative in found)
        rows.append([title, f"{np.mean(gain):+.3f} ± {error:.3f}", f"{chosen} of {repeats}"])
        print(f"<!-- {rows[-1]} -->", flush=True)
    print_table(["table", "gain of informative gaps, nats per row", 'chosen by "auto"'], rows)


if __name__ == "__main__":
    main()
