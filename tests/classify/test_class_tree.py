"""Classes in a hierarchy: probabilities add up, decisions at the level that is sure enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.classify.class_tree import ClassTree, decide, sum_groups
from skyfill.errors import CatalogError, DataError

PARENTS = {"RRL": "pulsating", "CEPH": "pulsating", "pulsating": "periodic", "EB": "periodic"}
CLASSES = ("CEPH", "EB", "QSO", "RRL")


def test_probabilities_add_up_along_the_tree():
    tree = ClassTree(PARENTS)
    found = sum_groups(np.array([[0.1, 0.2, 0.3, 0.4]]), tree.groups(CLASSES))
    assert list(found) == ["periodic", "pulsating"]
    assert found["pulsating"] == pytest.approx([0.5])
    assert found["periodic"] == pytest.approx([0.7])


def test_a_row_has_the_same_sums_alone_as_among_others():
    P = np.random.default_rng(0).dirichlet(np.ones(12), size=200)
    groups = {"all but one": list(range(11))}
    alone = [sum_groups(row[None], groups)["all but one"][0] for row in P]
    assert np.array_equal(sum_groups(P, groups)["all but one"], alone)


def test_levels_go_from_the_top_to_above_the_classes():
    assert ClassTree(PARENTS).levels(CLASSES) == [
        ["periodic", "periodic", "QSO", "periodic"],
        ["pulsating", "EB", "QSO", "pulsating"],
    ]


@given(st.lists(st.floats(0.001, 1), min_size=4, max_size=4), st.floats(0.51, 1))
def test_what_is_decided_is_sure_and_nothing_below_it_is(weights, sure):
    tree, P = ClassTree(PARENTS), np.array([weights]) / sum(weights)
    name = decide(P, CLASSES, tree, sure)[0]
    nodes = sum_groups(P, tree.groups(CLASSES)) | {n: P[:, k] for k, n in enumerate(CLASSES)}
    if name is None:
        assert all(p[0] < sure for p in nodes.values())
        return
    assert nodes[name][0] >= sure
    below = [n for n in nodes if name in tree.path(n)[:-1]]
    assert all(nodes[n][0] < sure for n in below)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RRL = ", "not a TOML file"),
        ("", "write a line CLASS"),
        ("RRL = 3", "'RRL' needs the name of a group"),
        ('a = "b"\nb = "a"', "is a member of itself"),
    ],
)
def test_a_file_that_is_no_tree_is_refused_by_name(tmp_path, text, message):
    (tmp_path / "tree.toml").write_text(text)
    with pytest.raises(CatalogError, match=f"tree.toml: .*{message}"):
        ClassTree.read(tmp_path / "tree.toml")
    with pytest.raises(CatalogError, match=r"none\.toml: No such file"):
        ClassTree.read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("parents", "message"),
    [({"AGN": "nucleus"}, "no class AGN"), ({"EB": "QSO"}, "QSO in the tree: a class cannot")],
)
def test_a_tree_of_other_classes_is_refused(parents, message):
    with pytest.raises(DataError, match=message):
        ClassTree(parents).check(CLASSES)


def test_a_decision_must_be_above_a_half():
    with pytest.raises(DataError, match=r"above 0\.5"):
        decide(np.full((1, 4), 0.25), CLASSES, ClassTree(PARENTS), 0.5)
