"""Every command that the documentation shows is run, in the order shown."""

import itertools
import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from skyfill.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page):
    """Calls of skyfill in shell blocks, without comments; a backslash joins lines."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["skyfill"]:
                yield words[1:]


def shared(pages):
    """Put pages that begin with the same four commands together: those are run once."""
    groups = {}
    for page in pages:
        first = [*map(tuple, commands(page))][:4]
        groups.setdefault(tuple(first) if len(first) == 4 else page, []).append(page)
    return groups.values()


def in_one_folder(pages):
    """Give the commands of several pages, without what a page repeats from the one before."""
    before = []
    for page in pages:
        mine = [*commands(page)]
        same = [a == b for a, b in zip(before, mine, strict=False)]
        yield from mine[len([*itertools.takewhile(bool, same)]) :]
        before = mine


@pytest.mark.parametrize(
    "pages",
    shared(page for page in PAGES if [*commands(page)]),
    ids=lambda pages: ",".join(page.name for page in pages),
)
@pytest.mark.usefixtures("quarter_labelled")
def test_the_commands_of_a_page_run(pages, tmp_path, monkeypatch):
    if "SKYFILL_DATA" not in os.environ and any("data fetch" in p.read_text() for p in pages):
        pytest.skip(
            "the page fetches public tables: set SKYFILL_DATA to the folder that holds them"
        )
    monkeypatch.chdir(tmp_path)
    for words in in_one_folder(pages):
        said = CliRunner().invoke(main, words)
        assert said.exit_code == 0, f"{' '.join(words)}: {said.output}"
