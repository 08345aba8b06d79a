"""Every command that the documentation shows is run, in the order shown."""

import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from skyfill.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page):
    """Calls of skyfill in shell blocks, without comments; a backslash joins lines."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["skyfill"]:
                yield words[1:]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if [*commands(page)]], ids=lambda p: p.name
)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    if "data fetch" in page.read_text() and "SKYFILL_DATA" not in os.environ:
        pytest.skip(
            "the page fetches public tables: set SKYFILL_DATA to the folder that holds them"
        )
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        said = CliRunner().invoke(main, words)
        assert said.exit_code == 0, f"{' '.join(words)}: {said.output}"


def test_the_readme_opens_with_the_two_commands():
    first = (ROOT / "README.md").read_text().split("##")[0]
    assert "make demo" in first
    assert "make test" in first
