"""How Sphinx builds these pages: `make docs`; warnings are errors."""

import re
from importlib.resources import files
from typing import Any

from click.testing import CliRunner
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from skyfill import __version__
from skyfill.cli import main

project = "skyfill"
author = "The skyfill developers"
copyright = "The skyfill developers"  # noqa: A001 - the name that Sphinx looks for
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"skyfill {release}"

# Formulas need neither a script nor the network: browsers draw MathML, in a font that comes along.
html_math_renderer = "mathml"
html_static_path = ["static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["formulas.css"]

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
    "exclude-members": "set_fit_request, set_predict_proba_request, set_predict_request, "
    "set_score_request, set_transform_request",
}
# Types in docstrings are words for people: one that could mean several names is not linked.
suppress_warnings = ["ref.python"]


class CommandHelp(SphinxDirective):
    """Show the help of a command; on GitHub the line stays as it is."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run the line and show what it prints."""
        words = self.content[0].split()
        found = CliRunner().invoke(main, words[1:], prog_name=words[0], terminal_width=88)
        if found.exit_code:
            raise self.error(f"{' '.join(words)}: {found.output}")
        block = nodes.literal_block(found.stdout, found.stdout)
        block["language"] = "text"
        return [block]


def write_formula(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula of the text as MathML, which browsers draw without a script."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_displayed_formula(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands on a line of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def close_examples(app: Sphinx, page: str, source: list[str]) -> None:
    """Drop the empty line that doctest needs before the end of an example."""
    source[0] = re.sub(r"^(```python\n.*?)\n+```$", r"\1\n```", source[0], flags=re.M | re.S)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts of these pages that Sphinx does not have."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_displayed_formula, None))
    app.add_directive("command-help", CommandHelp)
    app.connect("source-read", close_examples)
    return {"parallel_read_safe": True}
