"""Gaussian networks with known arcs, and tables drawn from networks."""

import json
from typing import TYPE_CHECKING

from skyfill.catalog import Table
from skyfill.datasets.published import features, make_table, read_csv
from skyfill.datasets.store import find_file
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.network import GaussianNetwork

NETWORK_FILES = {
    "ecoli70": "networks/ecoli70.json",
    "magic-niab": "networks/magic-niab.json",
}
_BNLEARN = "Scutari (2010), bnlearn, J. Stat. Softw. 35(3)"


def load_network(name: str) -> "GaussianNetwork":
    """Load a Gaussian network whose arcs and coefficients are known.

    Parameters
    ----------
    name : str
        ``ecoli70`` (46 nodes, 70 arcs; Schäfer & Strimmer 2005) or ``magic-niab`` (44 nodes,
        66 arcs; Scutari et al. 2014).

    Returns
    -------
    GaussianNetwork
        With the published intercepts, weights and noise variances.
    """
    from skyfill.network import GaussianNetwork

    if name not in NETWORK_FILES:
        raise CatalogError(f"no network {name!r}; there are {', '.join(NETWORK_FILES)}")
    facts = json.loads(find_file(NETWORK_FILES[name]).read_text())
    nodes = [facts["cpds"][node] for node in facts["nodes"]]
    weights = [[node["coefficients"][k][0] for k in node["parents"]] for node in nodes]
    intercepts = [node["coefficients"]["(Intercept)"][0] for node in nodes]
    variances = [node["variance"][0] for node in nodes]
    parents = [node["parents"] for node in nodes]
    return GaussianNetwork(facts["nodes"], parents, intercepts, weights, variances)


def load_gaussian_test() -> Table:
    """Load 5000 draws from the network [A][B][E][G][C|A:B][D|B][F|A:D:E:G]."""
    return _all_features("networks/gaussian.test.csv", "gaussian-test", _BNLEARN)


def load_marks() -> Table:
    """Load the marks of 88 students in five subjects."""
    return _all_features(
        "networks/marks.csv", "marks", "Mardia, Kent & Bibby (1979), Multivariate Analysis"
    )


def _all_features(path: str, name: str, citation: str) -> Table:
    arrow = read_csv(find_file(path))
    return make_table(arrow, features(arrow.column_names, {}), name=name, citation=citation)
