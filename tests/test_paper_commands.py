"""Every figure, table and algorithm of the paper is made by the command that docs/paper.md names.

The list in docs/paper_commands.py runs on a quarter of the simulated training set, and on one in
ten of the MACHO stars, or on random numbers of the same names where there is no such table.
"""

import doctest
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, write_table
from skyfill.cli import main
from skyfill.cli.demo import steps
from skyfill.datasets import PAPER_FEATURES, dataset_state, load_macho
from skyfill.datasets.field import simulate

DOCS = Path(__file__).parent.parent / "docs"
LISTED = runpy.run_path(str(DOCS / "paper_commands.py"))
ITEMS = LISTED["PAPER"]
PYTHON = [item for item in ITEMS if LISTED["is_python"](item)]
SHELL = [item for item in ITEMS if item not in PYTHON]
OF_THE_PAPER = [
    "Algorithm 1",
    *(f"Figure {k}" for k in range(1, 7)),
    *(f"Table {k}" for k in range(1, 7)),
    "Appendix A",
    "Appendix B",
]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def macho():
    """One in ten of the MACHO stars; where they are not, random numbers with the same names."""
    if dataset_state("macho") == "here":
        arrow = load_macho().arrow
        return Table(arrow.take(np.arange(0, len(arrow), 10)))
    rng = np.random.default_rng(0)
    common = rng.normal(size=(600, 1))
    X = np.exp(0.3 * common + 0.3 * rng.normal(size=(600, len(PAPER_FEATURES))))
    return Table.from_columns(dict(zip(PAPER_FEATURES, X.T, strict=True)))


@pytest.fixture
def folder(tmp_path, monkeypatch, quarter_labelled):
    """The tables as `skyfill demo` and `skyfill data fetch macho` leave them, but smaller."""
    monkeypatch.chdir(tmp_path)
    for step in steps(Path("skyfill-demo"), 100, 0):
        if step.words[0] in ("data", "features", "match") and "training" in step.typed:
            assert run(*step.words).exit_code == 0, step.typed
    write_table(macho(), "macho.parquet")
    return tmp_path


def test_each_command_makes_what_it_is_listed_for(folder, monkeypatch):
    """One test, since the figures are of the model that Algorithm 1 learns."""
    monkeypatch.setattr("skyfill.evaluate.methods.N_TREES", 30)
    printed = {}
    for item in SHELL:
        said = run(*shlex.split(f"{item.command} {item.quick}")[1:])
        assert said.exit_code == 0, f"{item.name}: {said.output}"
        printed[item.name] = said.stdout
        if item.shows.endswith(".png"):
            assert (folder / item.shows).read_bytes().startswith(b"\x89PNG"), item.name
            (folder / item.shows).unlink()
        else:
            assert item.shows in said.output, item.name
    rows = printed["Table 4"].split("class_truth  objects")[1].splitlines()[1:]
    found = {line.split()[0]: int(line.split()[1]) for line in rows}
    assert found == simulate.TRAINING_COUNTS


def test_the_lines_of_python_print_what_the_list_says():
    text = "\n".join(item.command for item in PYTHON)
    examples = doctest.DocTestParser().get_doctest(text, {}, "paper_commands", None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_all_of_the_paper_is_in_the_list():
    names = [item.name for item in ITEMS]
    assert sorted(names) == sorted([*OF_THE_PAPER, "The second claim"])
    assert all(item.shows and item.command.startswith("skyfill ") for item in SHELL)


def test_the_page_holds_what_the_list_says():
    page = (DOCS / "paper.md").read_text()
    (part,) = LISTED["PART"].findall(page)
    assert part == LISTED["section"](), "run python docs/paper_commands.py"
