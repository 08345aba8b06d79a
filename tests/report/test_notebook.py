"""How networks, tables and comparisons show themselves in a notebook."""

import subprocess
import sys

from skyfill.catalog.table import table_html
from skyfill.evaluate import compare_imputers
from skyfill.evaluate.score_tables import tables_html
from skyfill.impute import MeanImputer, NeighborsImputer
from skyfill.network import GaussianNetwork
from skyfill.report.network_html import gaussian_html, mixture_html


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


def test_a_notebook_draws_networks_whatever_is_imported_first():
    code = (
        "import sys, types\n"
        "sys.modules['IPython'] = types.ModuleType('IPython')\n"
        "from skyfill.network import GaussianNetwork, MixtureNetwork\n"
        "network = GaussianNetwork(None, [[], [0]], [0, 0], [[], [1.0]], [1, 1])\n"
        "print(network._repr_html_()[:14], hasattr(MixtureNetwork, '_repr_html_'))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "<figure style= True\n"
