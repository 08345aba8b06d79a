"""The README: it is short, and what it shows is what happens."""

import doctest
import re
import shlex
import warnings
from fnmatch import fnmatch
from pathlib import Path

import pytest
from astropy.table import Table
from click.testing import CliRunner

import skyfill
from skyfill.catalog import read_table, write_table
from skyfill.cli import main
from tests.first_hour.make_tables import make_table

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text()


def section(title):
    """One section, from its heading to the next."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def block(kind, text):
    return re.search(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def run(lines):
    """Run commands as they are typed; return what they print to the terminal."""
    said = ""
    for line in lines.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "skyfill"
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, f"{line}: {result.output}"
        said += result.output
    return said


def without_digits(line):
    """Other versions of the libraries may change a figure, and so its width."""
    return re.sub(r"[\d.]*\d[\d.]*", "#", re.sub(r" +", " ", line))


def test_it_is_short_and_begins_with_what_a_newcomer_needs():
    assert len(TEXT.splitlines()) <= 80
    assert TEXT.index("pip install .") < TEXT.index("skyfill train")
    assert "make demo" in TEXT
    assert "make test" in TEXT


def test_three_lines_print_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table("survey", tmp_path)
    table.train.rename("stars.csv")
    table.fresh.rename("field.csv")
    said = [without_digits(line) for line in run(block("sh", section("Three lines"))).splitlines()]
    for line in block("text", section("Three lines")).splitlines():
        pattern = without_digits(line.replace("...", "*").replace("[", "[[]"))
        assert any(fnmatch(each, pattern) for each in said), (line, said)


def test_python_does_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table("ecsv", tmp_path)
    for path, name in ((table.train, "sources.csv"), (table.fresh, "new_sources.csv")):
        Table.read(path).to_pandas().to_csv(name, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skyfill.SkyfillWarning)
        found = doctest.testfile(str(README), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 8
    assert found.failed == 0


@pytest.mark.usefixtures("quarter_labelled")
def test_four_lines_lead_from_catalogues_to_candidates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("skyfill data simulate . --training")
    truth = read_table("truth.parquet")
    names = [name for name in truth.names if name in ("ra", "dec", "class")]
    assert len(names) == 3
    half = truth.select(names).arrow.slice(0, len(truth) // 2)
    write_table(type(truth)(half), "known.csv")
    assert "-> quasars.fits" in run(block("sh", section("From catalogues to candidates")))
    assert len(read_table("quasars.fits")) > 0
