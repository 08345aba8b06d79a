"""Class probabilities of a forest grown on the MACHO set: skyfill's flat trees and the others.

    SKYFILL_DATA=/path/to/data python benchmarks/forest.py [--rows 100000] [--trees 300]

Needs nothing but skyfill for the first lines; treelite, onnxruntime with skl2onnx, and lleaves with
lightgbm are measured where they are installed. All run one after the other in each round, on one
and on two threads; read the median ratios of the rounds, and where other programs run beside,
those of processor time.
"""

import argparse
import os
import time

import numpy as np

from report import header, print_table


def macho(n_rows):
    """Features and classes of the training set, and `n_rows` rows like them."""
    from skyfill.datasets import load_macho
    from skyfill.datasets.macho import PAPER_FEATURES

    table = load_macho()
    X = table.numbers(*PAPER_FEATURES)
    label = next(name for name in table.names if str(table.info(name).role) == "label")
    y = np.array(table.column(label).to_pylist())
    rng = np.random.default_rng(0)
    # Between neighbors in the table of one class, so that paths are as long as for real rows.
    first, share = rng.integers(0, len(X), n_rows), rng.random((n_rows, 1))
    order = np.argsort(y, kind="stable")
    place = np.empty(len(X), int)
    place[order] = np.arange(len(X))
    second = order[np.minimum(place[first] + 1, len(X) - 1)]
    return X, y, share * X[first] + (1 - share) * X[second]


def skyfill_scorer(model, threads):
    from skyfill.classify.sklearn_trees import flatten_forest

    # A boosting is grown again by skyfill, in the same way but on its own bins.
    flat = model.ours if hasattr(model, "ours") else flatten_forest(model)

    def score(X):
        os.environ["SKYFILL_THREADS"] = str(threads)
        return flat.predict_proba(X)

    return score


def sklearn_scorer(model, threads):
    from threadpoolctl import threadpool_limits

    def score(X):
        model.n_jobs = threads
        with threadpool_limits(threads):
            return model.predict_proba(X)

    return score


def treelite_scorer(model, threads):
    import treelite

    trees = treelite.sklearn.import_model(model)

    def score(X):
        found = treelite.gtil.predict(trees, X.astype(np.float32), nthread=threads)
        return found.reshape(len(X), -1)

    return score


def onnx_scorer(model, threads):
    import onnxruntime
    import skl2onnx

    kind = skl2onnx.common.data_types.FloatTensorType([None, model.n_features_in_])
    data = skl2onnx.to_onnx(model, initial_types=[("X", kind)], options={"zipmap": False})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        data.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda X: session.run(None, {"X": X.astype(np.float32)})[1]


SCORERS = {
    "skyfill": skyfill_scorer,
    "scikit-learn": sklearn_scorer,
    "treelite (gtil)": treelite_scorer,
    "onnxruntime": onnx_scorer,
}


def make_scorers(model, threads):
    found = {}
    for name, make in SCORERS.items():
        try:
            found[name] = make(model, threads)
        except Exception as error:
            print(f"not measured: {name} ({type(error).__name__}: {str(error)[:80]})")
    return found


def race(scorers, X, rounds):
    """Wall and processor seconds of each scorer in each round; the first round only warms up."""
    seconds = {name: [] for name in scorers}
    for number in range(rounds + 1):
        for name, score in scorers.items():
            start, used = time.perf_counter(), time.process_time()
            score(X)
            if number:
                seconds[name].append([time.perf_counter() - start, time.process_time() - used])
    return {name: np.array(times).T for name, times in seconds.items()}


def compare(title, model, X, rounds):
    rows, reference = [], model.predict_proba(X[:2000])
    for threads in (1, 2):
        scorers = make_scorers(model, threads)
        seconds = race(scorers, X, rounds)
        for name, (wall, used) in seconds.items():
            off = abs(scorers[name](X[:2000]) - reference).max()
            theirs = seconds["scikit-learn"]
            ratios = [f"{np.median(a / b):.2f}" for a, b in zip(theirs, (wall, used), strict=True)]
            rate, cost = f"{len(X) / wall.min():,.0f}", f"{1e6 * used.min() / len(X):.1f}"
            rows.append([name, threads, rate, ratios[0], cost, ratios[1], f"{off:.1e}"])
    print(f"{title}\n")
    columns = ["who", "threads", "rows per second", "times scikit-learn", "processor µs per row"]
    print_table([*columns, "times scikit-learn", "largest difference"], rows)


def against_trees(X, y, table, counts):
    """Rows per second times trees: flat where the time is linear in the number of trees."""
    from sklearn.ensemble import RandomForestClassifier

    rows = []
    for count in counts:
        model = RandomForestClassifier(count, n_jobs=2, random_state=0).fit(X, y)
        seconds = race({"skyfill": skyfill_scorer(model, 1)}, table, 3)["skyfill"][1].min()
        nodes = sum(tree.tree_.node_count for tree in model.estimators_)
        rows.append(
            [
                count,
                nodes,
                f"{len(table) / seconds:,.0f}",
                f"{1e9 * seconds / len(table) / count:.1f}",
            ]
        )
    print_table(["trees", "nodes", "rows per second and core", "ns per row and tree"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    from skyfill.classify.boosting import Steps, boost

    header("Forests", ["scikit-learn", "numba", "treelite", "onnxruntime"])
    X, y, table = macho(options.rows)
    grown = RandomForestClassifier(options.trees, n_jobs=2, random_state=0).fit(X, y)
    compare(
        f"{options.trees} trees grown on the MACHO set ({X.shape[1]} features), {len(table)} rows.",
        grown,
        table,
        options.rounds,
    )
    leafy = RandomForestClassifier(options.trees, min_samples_leaf=5, n_jobs=2, random_state=0)
    compare("Leaves of at least five rows.", leafy.fit(X, y), table, options.rounds)
    boosting = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(X, y)
    steps = Steps(100, 0.1, 31, 20, 0.0)
    boosting.ours = boost(X, np.unique(y, return_inverse=True)[1], np.ones(len(y)), steps, 0)
    compare("Boosting, 100 steps of eight trees.", boosting, table, options.rounds)
    against_trees(X, y, table, [30, 100, 300, 1000])


if __name__ == "__main__":
    main()
