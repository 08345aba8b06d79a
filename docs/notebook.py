"""Make a Jupyter notebook of a page: `python docs/notebook.py docs/macho.md`."""

import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook_of(page: str) -> str:
    """Turn prose into cells of prose, and examples into cells of code with their outputs."""
    cells = []
    for k, part in enumerate(BLOCK.split(page)):
        cells += _code(part) if k % 2 else [_cell("markdown", part.strip())] * bool(part.strip())
    for k, cell in enumerate(cells):
        cell["id"] = f"cell-{k}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _code(block: str) -> Iterator[dict[str, Any]]:
    """Cells of a block: each ends where something is printed."""
    source = ""
    for example in doctest.DocTestParser().get_examples(block):
        source += example.source
        if example.want:
            yield _cell("code", source.rstrip(), example.want)
            source = ""
    if source:
        yield _cell("code", source.rstrip())


def _cell(kind: str, source: str, printed: str = "") -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": _lines(source)}
    if kind == "code":
        stream = {"name": "stdout", "output_type": "stream", "text": _lines(printed)}
        cell |= {"execution_count": None, "outputs": [stream] if printed else []}
    return cell


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.with_suffix(".ipynb").write_text(notebook_of(path.read_text()))
