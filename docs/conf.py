"""How Sphinx builds these pages: `make docs`; warnings are errors."""

import re
from typing import Any

from click.testing import CliRunner
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from skyfill import __version__
from skyfill.cli import main

project = "skyfill"
author = "The skyfill developers"
copyright = "The skyfill developers"  # noqa: A001 - the name that Sphinx looks for
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"skyfill {release}"

# Headings get the anchors that GitHub gives them, so that one link works in both places.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # What scikit-learn adds to every estimator.
    "exclude-members": "set_fit_request, set_score_request, set_transform_request",
}
# Types in docstrings are words for people: one that could mean several names is not linked.
suppress_warnings = ["ref.python"]


class CommandHelp(SphinxDirective):
    """Show what a command says of itself; on GitHub the line stays as it is."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run the line and show what it prints."""
        words = self.content[0].split()
        told = CliRunner().invoke(main, words[1:], prog_name=words[0], terminal_width=88)
        if told.exit_code:
            raise self.error(f"{' '.join(words)}: {told.output}")
        block = nodes.literal_block(told.stdout, told.stdout)
        block["language"] = "text"
        return [block]


def close_examples(app: Sphinx, page: str, source: list[str]) -> None:
    """Drop the empty line that doctest needs before the end of an example."""
    source[0] = re.sub(r"^(```python\n.*?)\n+```$", r"\1\n```", source[0], flags=re.M | re.S)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx what is our own here."""
    app.add_directive("command-help", CommandHelp)
    app.connect("source-read", close_examples)
    return {"parallel_read_safe": True}
