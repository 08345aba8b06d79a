"""The names of result columns stand in one file, and everyone reads them there."""

import ast
from pathlib import Path

import pytest

import skyfill
from skyfill.catalog import ColumnInfo, Role, Table, filled_names
from skyfill.model import results

SRC = Path(skyfill.__file__).parent
# What only `results.py` may spell out; "class" and "entropy" are words of the language as well.
SPELLED = {"p_", "gap_share", "outlier_score", "_was", "_sd", "next_bits", "evidence_for", "in_"}


def texts(path):
    """All texts of a file that are no docstrings, also those within formatted ones."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(node.body[0], ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in constants if id(node) not in docs}


def test_no_other_file_spells_out_the_names_of_results():
    found = {path.relative_to(SRC): texts(path) & SPELLED for path in SRC.rglob("*.py")}
    assert found.pop(Path("catalog/filled_names.py")) == {"_was"}
    assert found.pop(Path("model/results.py")) >= {"p_", "gap_share", "outlier_score"}
    assert {path: names for path, names in found.items() if names} == {}


def test_probabilities_are_found_by_the_name_of_their_class():
    names = ["p_", "p_QSO", "id", "p_a_b", "prob"]
    assert results.probability_columns(names) == {"QSO": "p_QSO", "a_b": "p_a_b"}
    assert all(results.probability_name(k) == n for k, n in {"QSO": "p_QSO"}.items())


def results_of(prefix, kind="QSO"):
    names = [results.CLASS, results.OUTLIER, *results.NUMBERS, results.probability_name(kind)]
    return {prefix + name: ["x"] for name in names}


def test_which_columns_are_results_is_remembered_or_seen_from_their_names():
    published = {"class": ["?"], "Class": ["?"], "p_star": [0.5]}
    ours = Table.from_columns(published | results_of("sf_")).drop(["sf_gap_share"])
    assert results.results_prefix(ours) == "sf_"
    assert results.class_columns(ours) == {"QSO": "sf_p_QSO"}
    plain = Table.from_columns(published | results_of("my_"))
    assert results.results_prefix(plain) == "my_"
    # Some of the names are nobody's results; what was asked for is, and what is remembered.
    some = plain.drop(["my_gap_share"])
    assert results.results_prefix(some) == ""
    assert results.results_prefix(some, "my_") == "my_"
    assert results.results_prefix(results.with_record(some, "my_", {})) == "my_"
    # A prefix for new columns, which the results do not have.
    assert results.results_prefix(plain, "x_") == "my_"


def test_of_several_results_our_own_count_then_those_without_a_prefix_then_the_last():
    both = Table.from_columns(results_of("a_") | results_of("b_"))
    assert results.results_prefix(both) == "b_"
    assert results.results_prefix(both, "a_") == "a_"
    assert results.results_prefix(Table.from_columns(results_of("") | results_of("a_"))) == ""
    assert results.results_prefix(Table.from_columns(results_of("") | results_of("sf_"))) == "sf_"


def test_published_probabilities_beside_results_are_no_classes():
    table = Table.from_columns(results_of("") | {"p_star": [0.5]})
    table = results.with_record(table, "", {"classes": ["QSO"]})
    assert results.class_columns(table) == {"QSO": "p_QSO"}
    both = Table.from_columns(results_of("sf_") | {"p_QSO": [0.5], "p_star": [0.5]})
    assert results.class_columns(results.without_prefix(both, "sf_")) == {"QSO": "p_QSO"}


@pytest.mark.parametrize("text", ["[", "5", '{"": 5}', '{"": {"classes": 5}}', '{"": null}'])
def test_what_other_programs_made_of_the_record_is_ignored(text):
    table = Table.from_columns(results_of("")).with_meta(**{results.CLASSIFIED: text})
    assert results.record_of(table) is None
    assert results.class_columns(table) == {"QSO": "p_QSO"}


@pytest.mark.parametrize(
    "name", [results.CLASS, *results.NUMBERS, results.OUTLIER, results.probability_name("QSO")]
)
def test_every_result_is_described_with_a_ucd(name):
    info = results.result_info(name)
    assert info.description
    assert info.ucd
    assert results.result_info(name + " ") is None or name.startswith("p_")


def test_columns_that_mark_filled_cells_are_those_beside_a_standard_deviation():
    info = {f"{of}_gap": ColumnInfo(role=Role.REASON, of=of) for of in ("J", "K")}
    info["J_sd"] = filled_names.filled_info(ColumnInfo(), "J", "sd")
    columns = {"J": [1.0], "J_sd": [0.1], "J_gap": ["filled"], "K": [None], "K_gap": ["rejected"]}
    table = Table.from_columns(columns, info=info)
    assert results.filled_columns(table) == {"J_gap"}


def test_names_beside_a_filled_value_follow_from_quantiles_and_draws():
    parts = filled_names.filled_parts((0.025, 0.5), 1)
    names = [filled_names.filled_name("J", part) for part in parts]
    assert names == ["J_sd", "J_q2.5", "J_q50", "J_draw1"]
    infos = [filled_names.filled_info(ColumnInfo(unit="mag"), "J", part) for part in parts]
    assert {(info.unit, info.role, info.of) for info in infos} == {("mag", Role.ERROR, "J")}
