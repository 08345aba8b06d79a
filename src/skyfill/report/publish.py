"""A table ready for publication: every column described, and a ReadMe next to it."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.file_io import checked_target, open_atomic, writing
from skyfill.catalog.provenance import PROVENANCE_KEY, Provenance, read_provenance
from skyfill.catalog.schema import Schema
from skyfill.catalog.table import Table, schema_meta
from skyfill.catalog.table_files import open_scan, open_writer
from skyfill.errors import CatalogError
from skyfill.model.results import CLASS, results_prefix
from skyfill.report.column_meanings import with_meanings

WIDTH = 80
SUMMARY = "File Summary"
# Cells of a text file that spreadsheets would run.
FORMULA = r"^([=@\t\r]|[+-][^0-9.])"


@dataclass(frozen=True)
class Notes:
    """What only the authors can say about a catalog."""

    title: str = "Catalogue of classified objects"
    authors: str = ""
    license: str = ""
    citation: str = ""


@dataclass
class Tally:
    """Counts of a table that is read in batches, and what is not known of its columns.

    `guessed` are descriptions by column, from the names of columns; `unknown` columns have none.
    `best` is the column of classes.
    """

    rows: int = 0
    gaps: Counter[str] = field(default_factory=Counter)
    formulas: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    guessed: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    best: str = CLASS

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch."""
        self.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self.gaps[name] += column.null_count
            if pa.types.is_string(column.type):
                found = pc.sum(pc.match_substring_regex(column, FORMULA)).as_py() or 0
                self.formulas.update({name: found} if found else {})
        if self.best in batch.schema.names:
            for pair in pc.value_counts(batch.column(self.best)).to_pylist():
                self.classes[str(pair["values"])] += pair["counts"]


def publish(
    source: str | Path,
    target: str | Path,
    *,
    notes: Notes | None = None,
    provenance: Provenance | None = None,
    rules: Schema | None = None,
) -> tuple[Path, Tally]:
    """Write a table with full metadata, and its ReadMe; bounded memory for any size.

    Parameters
    ----------
    source, target : paths
        Any format that `read_table` reads and `write_table` writes.
    notes : Notes, optional
        Title, authors, license, citation.
    provenance : Provenance, optional
        How the target is made; that of the source stays in the ReadMe and in the metadata.
    rules : Schema, optional
        What is declared about the columns.

    Returns
    -------
    Path, Tally
        The ReadMe (`<name>_ReadMe.txt` next to the target), and what was counted.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.catalog import write_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_table(Table.from_columns({"class": ["QSO"], "p_QSO": [0.9]}), folder / "in.csv")
    >>> readme, tally = publish(folder / "in.csv", folder / "quasars.fits")
    >>> readme.name, dict(tally.classes)
    ('quasars_ReadMe.txt', {'QSO': 1})
    """
    target, notes = Path(target), notes or Notes()
    rules = rules or Schema()
    scan = open_scan(source, rules=rules)
    empty = Table(scan.schema.empty_table())
    rules.check(empty.names)
    schema, guessed, unknown = with_meanings(rules.apply(empty).arrow.schema)
    tally = Tally(guessed=guessed, unknown=unknown, best=results_prefix(empty) + CLASS)
    meta = schema_meta(schema)
    facts = {"title": notes.title, "source_provenance": meta.get(PROVENANCE_KEY, "")}
    facts |= {key: value for key, value in vars(notes).items() if value}
    kept = {key: value for key, value in facts.items() if value}
    schema = Table(schema.empty_table()).with_meta(**kept).arrow.schema
    readme = _readme_path(target)
    with open_atomic(readme) as words:

        def write_readme() -> None:
            with writing(readme):
                words.write(readme_text(target.name, schema, tally, notes).encode())
                words.flush()
                os.fsync(words.fileno())

        # The table gets its name only when the ReadMe is on disk, and the ReadMe right after.
        how: dict[str, Any] = {"provenance": provenance, "once_complete": write_readme}
        with scan, open_writer(target, schema, **how) as writer:
            for batch in scan.batches:
                for part in rules.apply(Table(pa.Table.from_batches([batch]))).arrow.to_batches():
                    tally.add(part)
                    writer.write(pa.RecordBatch.from_arrays(part.columns, schema=schema))
    return readme, tally


def _readme_path(target: Path) -> Path:
    """Name the ReadMe of a table; refuse one that is there and describes something else."""
    readme = target.with_name(f"{Path(target.name.removesuffix('.gz')).stem}_ReadMe.txt")
    checked_target(readme)
    if readme.exists() and not _describes(readme, target.name):
        raise CatalogError(
            f"{readme}: exists and does not describe {target.name}; move it, or choose another "
            "name for the table"
        )
    return readme


def _describes(readme: Path, name: str) -> bool:
    """Whether a ReadMe is one that `publish` wrote for a table of this name."""
    start = f"{SUMMARY}:\n{'-' * WIDTH}\n{name}  ".encode()
    return start in readme.read_bytes()


def readme_text(name: str, schema: pa.Schema, tally: Tally, notes: Notes) -> str:
    """Describe a published table in plain text, in the manner of the CDS ReadMe files."""
    meta = schema_meta(schema)
    source = read_provenance(meta.get("source_provenance"))
    parts = [
        f"{notes.title}\n{'=' * WIDTH}",
        _paragraph("Authors", notes.authors),
        _section(SUMMARY, f"{name}  {tally.rows} rows, {len(schema)} columns"),
        _section("Objects per class", _classes(tally)) if tally.classes else "",
        _section("Description of the columns", _columns(schema, tally)),
        _section("How it was made", _made(source)),
        _paragraph("Sources", _citations(meta)),
        _paragraph("Citation", notes.citation),
        _paragraph("License", notes.license or "not stated: ask the authors before reuse"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _columns(schema: pa.Schema, tally: Tally) -> str:
    infos = [ColumnInfo.from_metadata(column.metadata) for column in schema]
    rows = [("Label", "Format", "Units", "Gaps", "UCD", "Explanations")]
    for column, info in zip(schema, infos, strict=True):
        gaps = str(tally.gaps[column.name])
        cells = (info.unit or "---", gaps, info.ucd or "---", info.description or "---")
        rows.append((column.name, str(column.type), *cells))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    lines = []
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*padded, row[5]]).rstrip())
    return "\n".join(lines)


def _classes(tally: Tally) -> str:
    wide = max(map(len, tally.classes))
    return "\n".join(
        f"{name.ljust(wide)}  {count:>9}  {100 * count / max(tally.rows, 1):6.2f} %"
        for name, count in sorted(tally.classes.items(), key=lambda item: -item[1])
    )


def _made(source: Mapping[str, Any]) -> str:
    if not source:
        return "The source file does not say how it was made."
    lines = [f"{key}: {source[key]}" for key in ("version", "command", "model", "seed", "time")
             if key in source]  # fmt: skip
    inputs = source.get("inputs", ())
    return "\n".join([*lines, *(f"input: {i['file']}  sha256 {i['sha256']}" for i in inputs)])


def _citations(meta: Mapping[str, str]) -> str:
    """Citations of the catalogs that were joined; that of the result is said elsewhere."""
    found = [text for key, text in meta.items() if key.startswith("citation_")]
    return "; ".join(dict.fromkeys(found))


def _section(title: str, body: str) -> str:
    return f"{title}:\n{'-' * WIDTH}\n{body}\n{'-' * WIDTH}"


def _paragraph(title: str, body: str) -> str:
    if not body:
        return ""
    return f"{title}:\n" + textwrap.indent(textwrap.fill(body, WIDTH - 4), "    ")
