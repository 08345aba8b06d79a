"""Flat trees: a walk on paper, scikit-learn's own answers, and files that lie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    RandomForestClassifier,
)

from skyfill.classify.boosting import Steps, boost
from skyfill.classify.forest import FlatForest
from skyfill.classify.forest_layout import Strike, Walk, _pack_nodes
from skyfill.classify.sklearn_trees import flatten_forest
from skyfill.errors import DataError

STUMP = {
    "shape": np.array([1, 2, 0]),
    "starts": np.array([0, 3]),
    "feature": np.array([0, -1, -1], np.int32),
    "threshold": np.array([0.5, 0.0, 0.0]),
    "missing_left": np.array([1, 0, 0], np.uint8),
    "target": np.array([2, 0, 1], np.int32),
    "values": np.array([[0.75, 0.25], [0.0, 1.0]], np.float32),
    "baseline": np.zeros(0),
}
MODELS = {
    "forest": lambda: RandomForestClassifier(25, random_state=0),
    "forest grown best leaf first": lambda: RandomForestClassifier(
        10, max_leaf_nodes=20, random_state=0
    ),
    "forest with weights": lambda: RandomForestClassifier(
        10, class_weight="balanced", min_samples_leaf=3, random_state=0
    ),
    "extra trees": lambda: ExtraTreesClassifier(10, random_state=0),
}


def sky(n, rng, *, gaps, n_classes=3):
    X = rng.normal(size=(n, 5))
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(scale=0.3, size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def test_a_stump_answers_as_on_paper():
    forest = FlatForest.from_arrays(STUMP)
    given_x = np.array([[0.5], [np.nextafter(np.float32(0.5), np.float32(1))], [np.nan], [np.inf]])
    expected = [[0.75, 0.25], [0, 1], [0.75, 0.25], [0, 1]]
    np.testing.assert_array_equal(forest.predict_proba(given_x), expected)


def test_a_boosting_of_stumps_is_a_sigmoid_of_its_sum():
    arrays = STUMP | {
        "shape": np.array([1, 2, 1]),
        "values": np.array([[-1.0], [2.0]], np.float32),
        "baseline": np.array([0.5]),
    }
    p = FlatForest.from_arrays(arrays).predict_proba([[0.0], [1.0]])
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp([0.5, -2.5])), rtol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_scikit_learn(name, n_classes, gaps):
    rng = np.random.default_rng(7)
    X, y = sky(300, rng, gaps=gaps, n_classes=n_classes)
    new, _ = sky(1000, rng, gaps=gaps, n_classes=n_classes)
    model = MODELS[name]().fit(X, y)
    for table in (X, 3 * new):
        flat = flatten_forest(model).predict_proba(table)
        np.testing.assert_allclose(flat, model.predict_proba(table), rtol=0, atol=1e-7)


def test_values_at_a_threshold_go_where_scikit_learn_sends_them():
    rng = np.random.default_rng(1)
    # Few values, and thresholds that are not numbers of single precision.
    X = rng.integers(0, 4, size=(200, 3)) / 3
    model = RandomForestClassifier(20, random_state=0).fit(X, (X.sum(axis=1) > 1.5).astype(int))
    flat = flatten_forest(model)
    cuts = np.unique(flat.threshold[flat.feature == 0])
    near = np.concatenate([cuts, np.nextafter(cuts, 9), np.nextafter(cuts, -9)])
    table = np.column_stack([near, rng.choice(near, len(near)), rng.choice(near, len(near))])
    np.testing.assert_array_equal(flat.predict_proba(table), model.predict_proba(table))


def test_a_tree_that_is_one_leaf_gives_its_shares():
    model = RandomForestClassifier(3, max_depth=1, max_features=1, random_state=0)
    X = np.zeros((6, 2))
    model.fit(X, [0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(
        flatten_forest(model).predict_proba(X), model.predict_proba(X), atol=1e-7
    )


def test_the_arrays_give_the_same_forest_again():
    X, y = sky(200, np.random.default_rng(0), gaps=0.1)
    flat = flatten_forest(MODELS["forest with weights"]().fit(X, y))
    again = FlatForest.from_arrays(flat.arrays())
    assert (again.n_features, again.n_classes, again.kind) == (5, 3, "mean")
    np.testing.assert_array_equal(again.predict_proba(X), flat.predict_proba(X))


def test_threads_and_neighbors_do_not_change_a_row(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = sky(200, rng, gaps=0.1)
    flat = boost(X, y, np.ones(200), Steps(15), seed=0)
    table, _ = sky(20_001, rng, gaps=0.1)
    monkeypatch.setenv("SKYFILL_THREADS", "1")
    one = flat.predict_proba(table)
    monkeypatch.setenv("SKYFILL_THREADS", "2")
    np.testing.assert_array_equal(flat.predict_proba(table), one)
    np.testing.assert_array_equal(flat.predict_proba(table[777:790]), one[777:790])
    assert flat.predict_proba(table[:0]).shape == (0, 3)


def grow(rng, n_splits, n_features):
    """A random tree, with the plain walk that it means."""
    nodes = []

    def put(splits):
        place = len(nodes)
        nodes.append([-1, 0.0, 0, int(rng.integers(4))])
        if splits:
            left = int(rng.integers(splits))
            cut = float(rng.integers(-3, 4))
            nodes[place][:3] = int(rng.integers(n_features)), cut, int(rng.integers(2))
            put(left)
            nodes[place][3] = len(nodes)
            put(splits - 1 - left)

    put(n_splits)
    return nodes


def walk(nodes, row):
    place = 0
    while nodes[place][0] >= 0:
        feature, cut, missing_left, right = nodes[place]
        x = row[feature]
        left = bool(missing_left) if np.isnan(x) else x <= cut
        place = place + 1 if left else right
    return nodes[place][3]


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 3))
@settings(max_examples=60)
def test_the_compiled_walk_is_the_plain_walk(seed, n_splits, n_features):
    rng = np.random.default_rng(seed)
    trees = [grow(rng, n_splits, n_features) for _ in range(3)]
    starts = np.cumsum([0, *map(len, trees)])
    table = np.array([n for tree in trees for n in tree])
    shift = np.where(table[:, 0] >= 0, np.repeat(starts[:-1], [len(t) for t in trees]), 0)
    values = rng.dirichlet(np.ones(3), 4).astype(np.float32)
    values[0] = (0, 1, 0)
    forest = FlatForest.from_arrays(
        {
            "shape": np.array([n_features, 3, 0]),
            "starts": starts,
            "feature": table[:, 0].astype(np.int32),
            "threshold": table[:, 1],
            "missing_left": table[:, 2].astype(np.uint8),
            "target": (table[:, 3] + shift).astype(np.int32),
            "values": values,
            "baseline": np.zeros(0),
        }
    )
    X = rng.choice([-3.5, -1, 0, 0.5, 2, np.nan], size=(21, n_features))
    plain = [np.mean([values[walk(t, row)] for t in trees], axis=0) for row in X]
    np.testing.assert_allclose(forest.predict_proba(X), plain, atol=1e-6)


def with_cell(name, place, value):
    array = STUMP[name].copy()
    array[place] = value
    return STUMP | {name: array}


LIES = {
    "a loop": with_cell("target", 0, 0),
    "a child that is its parent's left child too": with_cell("target", 0, 1),
    "a child behind the end": with_cell("target", 0, 3),
    "a negative child": with_cell("target", 0, -5),
    "a leaf without values": with_cell("target", 1, 2),
    "a feature that does not exist": with_cell("feature", 0, 1),
    "a negative feature": with_cell("feature", 1, -2),
    "a split as the last node": with_cell("feature", 2, 0),
    "a threshold that is no number": with_cell("threshold", 0, np.nan),
    "an infinite threshold": with_cell("threshold", 0, np.inf),
    "gaps that go nowhere": with_cell("missing_left", 0, 2),
    "negative shares": with_cell("values", 0, (-0.5, 1.5)),
    "shares beyond one": with_cell("values", 0, (0.75, 0.75)),
    "no features": with_cell("shape", 0, 0),
    "countless classes": with_cell("shape", 1, 2**62),
    "an unknown kind": with_cell("shape", 2, 2),
    "a boosting without a baseline": with_cell("shape", 2, 1),
    "a tree that starts late": with_cell("starts", 0, 1),
    "a tree that ends late": with_cell("starts", 1, 4),
    "starts that wrap around": STUMP | {"starts": np.array([0, 2**63 - 1, -(2**63), 3])},
    "nodes of different number": STUMP | {"threshold": np.zeros(2)},
    "no nodes": STUMP | {"feature": np.zeros(0, np.int32)},
    "wrong type": STUMP | {"feature": STUMP["feature"].astype(np.float64)},
    "wrong number of axes": STUMP | {"values": STUMP["values"].ravel()},
    "nothing": {},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found_before_it_is_walked(lie):
    with pytest.raises(ValueError, match=r"\w"):
        FlatForest.from_arrays(LIES[lie])


def test_a_tree_that_is_a_chain_is_refused():
    n = 10_001
    is_split = (np.arange(n) % 2 == 0) & (np.arange(n) < n - 1)
    # Each split has a leaf on its left and the rest of the chain on its right.
    chain = STUMP | {
        "starts": np.array([0, n]),
        "feature": np.where(is_split, 0, -1).astype(np.int32),
        "threshold": np.zeros(n),
        "missing_left": np.zeros(n, np.uint8),
        "target": np.where(is_split, np.arange(n) + 2, 0).astype(np.int32),
    }
    with pytest.raises(ValueError, match="5000 levels, more than 4096"):
        FlatForest.from_arrays(chain)


def test_a_table_of_another_width_is_refused():
    with pytest.raises(DataError, match=r"have 1 features, the table has shape \(2, 2\)"):
        FlatForest.from_arrays(STUMP).predict_proba(np.zeros((2, 2)))


def test_what_cannot_be_flattened_is_refused():
    X, y = sky(60, np.random.default_rng(0), gaps=0)
    two = RandomForestClassifier(2).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="several outputs"):
        flatten_forest(two)


def small_boosting(n_trees, seed, n_cuts=40):
    """Random trees of one to eight leaves over three features, flat."""
    rng = np.random.default_rng(seed)
    cuts = rng.normal(size=(3, n_cuts))
    feature, threshold, target, starts = [], [], [], [0]

    def add(*node):
        for part, value in zip((feature, threshold, target), node, strict=True):
            part.append(value)

    def grow(leaves):
        at = len(feature)
        if leaves == 1:
            add(-1, 0.0, int(rng.integers(50)))
            return
        j = int(rng.integers(3))
        add(j, cuts[j, rng.integers(n_cuts)], 0)
        left = int(rng.integers(1, leaves))
        grow(left)
        target[at] = len(feature)
        grow(leaves - left)

    for _ in range(n_trees):
        grow(int(rng.integers(1, 9)))
        starts.append(len(feature))
    return {
        "shape": np.array([3, 3, 1]),
        "starts": np.array(starts),
        "feature": np.array(feature, np.int32),
        "threshold": np.array(threshold),
        "missing_left": rng.integers(2, size=len(feature)).astype(np.uint8),
        "target": np.array(target, np.int32),
        "values": rng.normal(size=(50, 1)).astype(np.float32),
        "baseline": rng.normal(size=3),
    }


@given(st.integers(1, 8), st.integers(0, 10_000), st.integers(1, 200))
@settings(max_examples=60)
def test_striking_out_leaves_and_walking_to_them_give_the_same_bits(steps, seed, n_rows):
    forest = FlatForest.from_arrays(small_boosting(3 * steps, seed))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).round(1)
    X[rng.random(X.shape) < 0.2] = np.nan
    struck, walked = np.zeros((n_rows, 3)), np.zeros((n_rows, 3))
    small = forest.packed
    assert isinstance(small, Strike)
    small.add(X, struck)
    split = forest.feature >= 0
    column = np.full(len(split), -1)
    column[split] = small.columns
    rank = np.zeros(len(split), np.uint32)
    rank[split] = small.cuts
    _pack_nodes(forest, small.ranking, column, rank).add(X, walked)
    assert np.array_equal(struck, walked)


def three_trees(rights):
    """The same tree for three classes: splits first, each followed by its left child."""
    n = 2 * len(rights) + 1
    split = np.arange(n) < len(rights)
    right = np.zeros(n, np.int32)
    right[: len(rights)] = rights
    return small_boosting(3, 1) | {
        "starts": np.arange(4) * n,
        "feature": np.tile(np.where(split, 0, -1), 3).astype(np.int32),
        "threshold": np.zeros(3 * n),
        "missing_left": np.zeros(3 * n, np.uint8),
        "target": np.concatenate([right + split * k * n for k in range(3)]).astype(np.int32),
    }


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param(three_trees([16 - k for k in range(8)]), id="nine leaves"),
        pytest.param(three_trees([3, 4]), id="nodes in another order"),
        pytest.param(small_boosting(600, 1, n_cuts=400), id="many cuts"),
    ],
)
def test_trees_that_do_not_fit_into_bytes_are_walked(arrays):
    assert isinstance(FlatForest.from_arrays(arrays).packed, Walk)


def test_a_tree_of_eight_leaves_is_not_walked():
    forest = FlatForest.from_arrays(three_trees([14 - k for k in range(7)]))
    assert isinstance(forest.packed, Strike)
