"""The pages as a whole: links lead somewhere, the notebook is its page, names to cite agree."""

import ast
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from skyfill.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page):
    return FENCE.sub("", page.read_text())


def anchors(page):
    """Anchors that GitHub and Sphinx give to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_links_lead_to_files_and_headings(page):
    for link in LINK.findall(prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_page_is_in_the_index(page):
    index = (DOCS / "index.md").read_text()
    assert page.name == "index.md" or f"({page.name})" in index
    assert page.name == "index.md" or re.search(rf"^{page.stem}$", index, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_stand_in_fences(page):
    assert not re.search(r"^>>> ", prose(page), re.MULTILINE), "on GitHub this is a quotation"


def test_every_file_that_the_architecture_names_is_there():
    text = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+(?:\w[\w-]*\.\w+)?)`", text))
    assert len(named) > 40
    places = (ROOT / "src" / "skyfill", ROOT)
    assert [name for name in sorted(named) if not any((p / name).exists() for p in places)] == []


def test_the_architecture_shows_every_room():
    rooms = {path.parent.name for path in (ROOT / "src" / "skyfill").glob("*/__init__.py")}
    drawn = re.findall(r'class="name"[^>]*>(\w+)<', (DOCS / "images" / "rooms.svg").read_text())
    assert sorted(drawn) == sorted(rooms)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_recipe_and_its_help(name):
    assert f"\n## {name}\n" in (DOCS / "how-to.md").read_text()
    assert f"\nskyfill {name} --help\n" in (DOCS / "commands.md").read_text()


def test_the_notebook_is_its_page():
    make = runpy.run_path(str(DOCS / "notebook.py"))["notebook_of"]
    text = (DOCS / "macho.ipynb").read_text()
    assert text == make((DOCS / "macho.md").read_text()), (
        "run python docs/notebook.py docs/macho.md"
    )
    code = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    assert len(code) > 5
    for source in code:
        ast.parse(source)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages as `make docs` builds them."""
    pytest.importorskip("sphinx", reason="needs Sphinx: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("pages")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-d", folder / "trees", DOCS, folder]
    subprocess.run(command, check=True)
    return folder


def test_built_pages_load_nothing_from_elsewhere(built):
    loaded = re.compile(
        r"<(?:script|link|img|iframe|source|object)\b[^>]*?(?:src|href)=\"([^\"]*)\""
    )
    pages = sorted(built.glob("**/*.html"))
    assert {page.stem for page in PAGES} <= {page.stem for page in pages}
    for page in pages:
        for address in loaded.findall(page.read_text()):
            assert not re.match(r"(\w+:)?//", address), (page.name, address)
    for style in built.glob("_static/**/*.css"):
        for address in re.findall(r"url\(['\"]?([^'\")]+)", style.read_text()):
            here = (style.parent / address).is_file()
            assert here or address.startswith("data:"), (style.name, address)


@pytest.mark.parametrize("name", ["concepts", "lightcurves", "networks", "next"])
def test_formulas_are_drawn_by_the_browser_alone(built, name):
    text = re.sub(r"`[^`\n]*`", "", prose(DOCS / f"{name}.md"))
    written = len(re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", text, re.DOTALL))
    assert written > 0
    assert len(re.findall("<math[ >]", (built / f"{name}.html").read_text())) == written


def test_the_paper_is_cited_alike_everywhere():
    cff = (ROOT / "CITATION.cff").read_text()
    for words in (
        "family-names: Pichara",
        "family-names: Protopapas",
        "volume: 777",
        'start: "83"',
    ):
        assert words in cff
    for page in ("faq.md", "paper.md"):
        assert "ApJ 777, 83" in (DOCS / page).read_text()
    pyproject = (ROOT / "pyproject.toml").read_text()
    for key in ("license", "name"):
        shared = re.search(rf'^{key} = "(.*)"$', pyproject, re.MULTILINE).group(1)
        assert re.search(rf"^(title|license): {shared}$", cff, re.MULTILINE)
