"""The paper line by line: every place that docs/paper.md and docs/concepts.md name exists.

Also tests of the lines that go through several rooms.
"""

import ast
import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from skyfill.datasets import simulate_field, simulate_training_set
from skyfill.evaluate import compare_imputers
from skyfill.impute import MeanImputer, NetworkImputer
from skyfill.lightcurve import extract_features, from_table
from skyfill.network import learn_mixture
from skyfill.report import count_gaps
from skyfill.sky import join

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CODE = re.compile(r"`([^`\n]+)`")
N_LINES = 17


@cache
def words(page):
    """What stands between backticks on a page."""
    return CODE.findall((DOCS / page).read_text())


@cache
def mission_lines():
    """What stands between backticks under each numbered heading of docs/paper.md."""
    parts = re.split(r"^#+ ", (DOCS / "paper.md").read_text(), flags=re.MULTILINE)
    numbered = [part for part in parts if re.match(r"\d+\. ", part)]
    return {int(part.split(".")[0]): CODE.findall(part) for part in numbered}


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def find(name):
    """The object that a dotted name means: as much as possible is a module."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def named(pattern):
    return sorted({w for page in ("paper.md", "concepts.md") for w in words(page) if pattern(w)})


def test_every_line_of_the_mission_is_on_the_page():
    assert sorted(mission_lines()) == list(range(1, N_LINES + 1))


@pytest.mark.parametrize("number", range(1, N_LINES + 1))
def test_a_line_has_functions_and_a_test_that_names_it(number):
    found = mission_lines()[number]
    assert any(word.startswith("skyfill.") for word in found)
    assert any(f"::test_mission_{number}_" in word for word in found)


@pytest.mark.parametrize("name", named(lambda word: re.fullmatch(r"skyfill(\.\w+)+", word)))
def test_a_named_function_exists(name):
    assert callable(find(name))


@pytest.mark.parametrize("name", named(lambda word: "::" in word))
def test_a_named_test_exists(name):
    path, function = name.split("::")
    assert function in functions_of(path)


@pytest.mark.parametrize("call", named(lambda word: re.match(r"skyfill \w", word)))
def test_a_named_command_exists_with_its_options(call):
    _, name, *options = call.split()
    command = import_module(f"skyfill.cli.{name}").command
    known = {text for parameter in command.params for text in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known


def test_mission_9_the_error_at_four_rates_is_the_one_on_paper():
    """Two columns of correlation r: a hidden cell has its neighbor, so NRMSE is sqrt(1 - r^2)."""
    r, n = 0.8, 4000
    X = np.random.default_rng(0).multivariate_normal([18, 17], [[1, r], [r, 1]], n)
    gaussian = {"n_components": 1, "margins": False, "n_fits": 1, "refine": None}
    methods = {"mean": MeanImputer, "network": lambda: NetworkImputer(**gaussian)}
    rates = [0.05, 0.1, 0.15, 0.2]
    found = compare_imputers(X, methods, rates=rates, repeats=3)
    for rate in rates:
        assert found.mean("nrmse", "mean", rate).value == pytest.approx(1, abs=0.06)
        assert found.mean("nrmse", "network", rate).value == pytest.approx(0.6, abs=0.04)


@pytest.fixture(scope="module")
def pair():
    """A model of two features with correlation 0.8."""
    X = np.random.default_rng(0).multivariate_normal([18, 17], [[1, 0.8], [0.8, 1]], 3000)
    return learn_mixture(X, ["V", "I"], n_components=1, n_fits=1, margins=False).network


def test_mission_10_joint_marginal_and_conditional_of_two_features(pair):
    mpl.use("Agg")
    from skyfill.report.figures import draw_pair

    value = pair.condition({"V": 19.0}, of=["I"])
    assert value.mean == pytest.approx([17.8], abs=0.05)
    assert value.sd == pytest.approx([0.6], abs=0.03)
    figure = draw_pair(pair, ("V", "I"), at=19.0)
    marginal, conditional = figure.axes[3].get_lines()
    for line, mean, sd in ((marginal, 17.0, 1.0), (conditional, 17.8, 0.6)):
        density, x = line.get_data()
        assert np.trapezoid(density, x) == pytest.approx(1, abs=0.02)
        assert np.average(x, weights=density) == pytest.approx(mean, abs=0.06)
        assert np.sqrt(np.cov(x, aweights=density)) == pytest.approx(sd, abs=0.06)
    mpl.pyplot.close(figure)


def test_mission_11_features_of_one_group_have_one_color():
    mpl.use("Agg")
    from skyfill.report.figures import plot_network

    rng = np.random.default_rng(0)
    V = rng.normal(18, 1, 500)
    X = np.column_stack([V, V - rng.normal(1, 0.1, 500), rng.normal(0, 1, 500)])
    network = learn_mixture(X, ["V", "I", "J"], n_components=1, n_fits=1).network
    ax = plot_network(network, {"optical": ["V", "I"], "infrared": ["J"]})
    color = {t.get_text(): t.get_bbox_patch().get_facecolor() for t in ax.texts if t.get_text()}
    assert color["V"] == color["I"]
    assert color["V"] != color["J"]
    mpl.pyplot.close(ax.figure)


# Percentages and counts of the paper's tables of missing values and of classes.
MISSING = {"J_two_mass": 54, "H_two_mass": 54, "K_two_mass": 58, "m36_sage": 1, "m45_sage": 13,
           "m58_sage": 68, "m80_sage": 74, "U_ubvi": 49, "B_ubvi": 0, "V_ubvi": 0,
           "I_ubvi": 14}  # fmt: skip
CLASSES = {"NV": 1136, "QSO": 45, "BE": 76, "CEPH": 70, "RRL": 69, "EB": 100, "LPV": 337}


def test_mission_12_four_catalogs_joined_have_the_papers_gaps_and_classes():
    field = simulate_training_set(seed=0)
    surveys = {name: getattr(field, name) for name in ("sage", "two_mass", "ubvi", "truth")}
    joined = join(field.macho, surveys, 1.5)
    gaps = count_gaps(joined)
    missing = dict(zip(gaps.names, 100 * gaps.share, strict=True))
    assert {name: missing[name] for name in MISSING} == pytest.approx(MISSING, abs=6)
    assert Counter(joined.column("class_truth").to_pylist()) == CLASSES


def test_mission_15_fourteen_numbers_of_every_light_curve():
    curves = from_table(simulate_field(5, light_curves=True).light_curves)
    numbers = extract_features(curves, "macho14")
    features = numbers.names_with("feature")
    assert len(features) == 14
    assert np.isfinite(numbers.numbers(*features)).all()
