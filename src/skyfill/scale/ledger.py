"""Work that survives a kill: finished parts beside the output, and a journal of them.

`OUT.skyfill-parts` holds `rows`, a Parquet file that grows by one row group per part, and
`journal`, one line of JSON per part, written when its bytes are on the disk. What a kill leaves
behind the last whole line is cut off when the work is taken up again.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from skyfill.catalog.file_io import writing
from skyfill.errors import CatalogError
from skyfill.scale.footer import MAGIC, RowGroup, join_footer
from skyfill.scale.journal import (
    FORMAT,
    JOURNAL,
    check_same,
    lock,
    parts_folder,
    sync,
    whole_lines,
    write_line,
)

ROWS, FINISHED = "rows", "finished"


@dataclass(frozen=True)
class Done:
    """What is finished: parts, rows and whatever else was counted."""

    parts: int = 0
    rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class Ledger:
    """The finished parts of one output, open for more; `open_ledger` makes it."""

    def __init__(
        self, path: Path, journal: IO[bytes], rows: IO[bytes] | None, lines: list[dict[str, Any]]
    ) -> None:
        self._path, self._journal, self._rows = path, journal, rows
        self._facts, self._lines = lines[0], lines[1:]

    @property
    def is_published(self) -> bool:
        """Whether the output was in place already when the run was killed."""
        return self._rows is None

    @property
    def provenance(self) -> str | None:
        """Provenance of the run that began the work."""
        made: str | None = self._facts["provenance"]
        return made

    @property
    def done(self) -> Done:
        """Sum up what is finished."""
        counts: Counter[str] = Counter()
        for line in self._lines:
            counts.update(line["counts"])
        return Done(len(self._lines), sum(line["rows"] for line in self._lines), counts)

    def append(self, group: RowGroup, rows: int, counts: Mapping[str, int]) -> None:
        """Add a part; it counts from the moment when its line in the journal is whole."""
        end = self._write(group.pages)
        record = b64encode(group.record).decode()
        line = {"end": end, "rows": rows, "counts": dict(counts), "record": record}
        self._note(line)
        self._lines.append(line)

    def finish(self, head: bytes) -> None:
        """Make `rows` a whole Parquet file."""
        ends = [line["end"] for line in self._lines]
        starts = [len(MAGIC), *ends[:-1]] if ends else []
        records = [b64decode(line["record"]) for line in self._lines]
        self._write(join_footer(head, records, starts))
        self._note({FINISHED: True})

    def _write(self, data: bytes | memoryview) -> int:
        assert self._rows is not None
        with writing(self._path):
            self._rows.write(data)
            sync(self._rows)
            return self._rows.tell()

    def _note(self, line: Mapping[str, Any]) -> None:
        with writing(self._path):
            write_line(self._journal, line)


@contextmanager
def open_ledger(
    output: str | Path, job: Mapping[str, Any], *, provenance: str | None, resume: bool
) -> Iterator[Ledger]:
    """Open the parts of an output: those of a run that was killed, or none.

    Parameters
    ----------
    output : path
    job : mapping
        Whatever the result depends on, as JSON; parts of another job are refused.
    provenance : str, optional
        Kept for the output, so that a run that was taken up again writes the same one.
    resume : bool
        Go on with the parts that are there. Otherwise they are removed, and after an error
        nothing is left behind; an interrupt or a kill always leaves what is finished.
    """
    folder = parts_folder(output)
    folder.mkdir(exist_ok=True)
    with open(folder / JOURNAL, "a+b") as journal:
        lock(journal, output)
        facts = {"format": FORMAT, "job": job, "provenance": provenance}
        lines = _take_up(journal, facts, folder) if resume else []
        if lines and FINISHED in lines[-1]:
            yield Ledger(Path(output), journal, None, lines[:-1])
            return
        with open(folder / ROWS, "r+b" if lines else "w+b") as rows:
            lines = lines or _begin(journal, rows, facts)
            end = lines[-1].get("end", len(MAGIC))
            rows.truncate(end)
            rows.seek(end)
            try:
                yield Ledger(Path(output), journal, rows, lines)
            except Exception:
                if not resume:
                    shutil.rmtree(folder)
                raise


def _begin(journal: IO[bytes], rows: IO[bytes], facts: dict[str, Any]) -> list[dict[str, Any]]:
    rows.write(MAGIC)
    rows.flush()
    journal.truncate(0)
    write_line(journal, facts)
    return [facts]


def _take_up(journal: IO[bytes], facts: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Read the whole lines of a journal, cut off the rest, check that it is of the same job."""
    texts = whole_lines(journal)
    lines = [json.loads(text) for text in texts]
    if not lines:
        return []
    check_same(json.loads(json.dumps(facts)), lines[0], folder)
    rows = folder / ROWS
    if FINISHED in lines[-1]:
        if not rows.exists():
            return lines
        # All rows are there, but not yet the output: the end of the file is written again.
        lines, texts = lines[:-1], texts[:-1]
    if not rows.exists() or lines[-1].get("end", len(MAGIC)) > rows.stat().st_size:
        raise CatalogError(
            f"{folder}: the parts are damaged (rows are lost); run without --resume to start anew"
        )
    journal.truncate(sum(map(len, texts)))
    return lines
