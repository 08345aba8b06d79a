"""One network that stands for a mixture, and its drawing."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.network import learn_mixture, learn_one_network
from skyfill.network.summary import pooled_cov, summarize_network
from skyfill.report.network_drawing import (
    HEIGHT,
    NODE_HEIGHT,
    WIDTH,
    draw_svg,
    node_widths,
    place_nodes,
)


@pytest.fixture(scope="module")
def chain():
    """A makes B, B makes C; D stands alone."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    b = 0.8 * a + 0.6 * rng.normal(size=2000)
    c = 0.6 * b + 0.8 * rng.normal(size=2000)
    return np.column_stack([a, b, c, rng.normal(size=2000)])


def test_the_network_of_a_chain_has_its_two_links_with_their_coefficients(chain):
    summary = summarize_network(
        learn_mixture(chain, list("ABCD"), n_components=1, n_fits=1).network
    )
    links = {frozenset(arc): strength for arc, strength in summary.arcs.items()}
    assert set(links) == {frozenset("AB"), frozenset("BC")}
    assert links[frozenset("AB")] == pytest.approx(0.8, abs=0.05)
    assert not summary.is_learned


def test_arcs_of_a_model_with_graphs_are_its_own(chain):
    options = {"n_components": 2, "n_fits": 1, "arcs": "shared"}
    network = learn_mixture(chain, list("ABCD"), **options).network
    summary = summarize_network(network)
    assert summary.is_learned
    assert not summary.is_one
    assert summary.arcs == network.arcs()


def test_one_network_is_its_own_summary(chain):
    """A to B with 0.8 and B to C: strengths are coefficients in standard deviations."""
    network = learn_one_network(chain, list("ABCD"), score="bic").network
    summary = summarize_network(network)
    assert summary.is_one
    assert set(summary.arcs) == set(network.arcs())
    links = {frozenset(arc): strength for arc, strength in summary.arcs.items()}
    assert links[frozenset("AB")] == pytest.approx(0.8, abs=0.05)


def test_the_pooled_covariance_is_that_of_the_scores(chain):
    network = learn_mixture(chain, n_components=3, n_fits=2, shrinkage=0.0).network
    seen = np.cov(network.scores(chain).T)
    np.testing.assert_allclose(pooled_cov(network), seen, atol=0.06)


names = st.lists(
    st.text("abcdefgh_", min_size=1, max_size=12), min_size=1, max_size=14, unique=True
)


@settings(max_examples=30)
@given(names, st.randoms(use_true_random=False))
def test_boxes_lie_on_the_paper_and_apart(names, random):
    pairs = [(a, b) for a, b in itertools.combinations(names, 2) if random.random() < 0.3]
    at, widths = place_nodes(names, dict.fromkeys(pairs, 1.0)), node_widths(names)
    assert (at[:, 0] >= widths / 2).all()
    assert (at[:, 0] <= WIDTH - widths / 2).all()
    assert ((at[:, 1] >= NODE_HEIGHT / 2) & (at[:, 1] <= HEIGHT - NODE_HEIGHT / 2)).all()
    for i, j in itertools.combinations(range(len(names)), 2):
        dx, dy = np.abs(at[i] - at[j])
        assert dx >= (widths[i] + widths[j]) / 2 or dy >= NODE_HEIGHT


def test_the_drawing_is_xml_with_a_box_per_name_and_an_arrow_per_arc():
    text = draw_svg(["<V>", "I"], {("<V>", "I"): 0.5}, {"optical & more": ["<V>"]})
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert [node.text for node in root.iter(f"{space}text")] == ["<V>", "I"]
    assert len([*root.iter(f"{space}polygon")]) == 1
