"""How networks, tables and comparisons show themselves in a notebook."""

from skyfill.catalog.table import table_html
from skyfill.evaluate import compare_imputers
from skyfill.evaluate.notebook import tables_html
from skyfill.impute import MeanImputer, NeighborsImputer
from skyfill.network import GaussianNetwork
from skyfill.network.notebook import gaussian_html, mixture_html


def test_a_mixture_shows_its_features_and_size(model):
    text = mixture_html(model.network)
    assert all(f">{name}</text>" in text for name in model.names)
    assert "2 fits of 2, 2 components" in text


def test_an_arrow_is_as_wide_as_its_standardized_weight():
    network = GaussianNetwork(None, [[], [0], [0]], [0, 0, 0], [[], [2.0], [0.0]], [1, 1, 1])
    text = gaussian_html(network)
    assert 'stroke-width="5.0"' in text
    assert 'stroke-width="1.0"' in text


def test_a_table_shows_units_gaps_and_escaped_words(results):
    text = table_html(results)
    assert "mag" in text
    assert "% missing" in text
    assert "<script>" not in text
    assert "60 rows" in text


def test_the_best_method_is_bold(catalog):
    methods = {"mean": MeanImputer, "knn": NeighborsImputer}
    found = compare_imputers(catalog.select(["V", "I"]), methods, rates=[0.2], repeats=2)
    text = tables_html(found.table("nrmse"))
    assert "<td>knn</td><td><b>0." in text
    assert "<td>mean</td><td><b>" not in text
