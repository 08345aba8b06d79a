"""What became of published lists: counts, who is new, who is missing and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog import ColumnInfo, Role, Table, with_guessed_roles
from skyfill.classify.lists import Fate, Published, Rows, Search
from skyfill.sky.identifiers import identifiers


@dataclass(frozen=True)
class ListReport:
    """How our candidates compare with one published list.

    Attributes
    ----------
    name, by : str
        The list, and how entries were recognized.
    entries : int
        Entries of the list.
    matched, below, other_class, absent : int
        What became of them; see `Fate`.
    candidates, known : int
        Our candidates, and how many of them the list holds.
    """

    name: str
    by: str
    entries: int
    matched: int
    below: int
    other_class: int
    absent: int
    candidates: int
    known: int

    @property
    def percent(self) -> float:
        """Percent of the list's entries that are among the candidates."""
        return 100 * self.matched / max(self.entries, 1)

    @property
    def new(self) -> int:
        """Candidates that the list does not hold."""
        return self.candidates - self.known

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.entries} entries, by {self.by}: {self.matched} among the "
            f"candidates ({self.percent:.1f} %), {self.below} below the threshold, "
            f"{self.other_class} of another class, {self.absent} not in the results; "
            f"{self.new} of {self.candidates} candidates are new"
        )


def report_on(search: Search, least: float, rows: Rows) -> ListReport:
    """Count what became of a list.

    Parameters
    ----------
    rows : integer array
        Places of the candidates in the results.
    """
    fates = search.fates(least)
    by = search.published.key or f"position within {search.radius_arcsec:g} arcsec"
    return ListReport(
        search.published.name,
        by,
        len(fates),
        fates.count(Fate.CANDIDATE),
        fates.count(Fate.BELOW),
        fates.count(Fate.OTHER),
        fates.count(Fate.ABSENT),
        len(rows),
        int(search.holds(rows).sum()),
    )


def missing_entries(searches: Sequence[Search], least: float) -> Table:
    """List the entries of published lists that are no candidates, and why."""
    columns: dict[str, list[Any]] = {name: [] for name in _MISSING}
    for search in searches:
        names = _entry_names(search.published)
        for i, fate in enumerate(search.fates(least)):
            if fate is not Fate.CANDIDATE:
                p, top = search.found.probability[i], search.found.best_probability[i]
                best = search.found.best_class[i] or None
                row = (search.published.name, i + 1, names[i], str(fate), p, best, top)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    arrays = {
        name: pa.array(values, kind, from_pandas=True)
        for (name, values), kind in zip(columns.items(), _KINDS, strict=True)
    }
    info = {name: ColumnInfo(ucd=ucd, description=text) for name, (ucd, text) in _MISSING.items()}
    return Table.from_columns(arrays, info=info)


_MISSING = {
    "list": ("meta.bib", "Published list"),
    "entry": ("meta.number", "Place of the entry in its list, from 1"),
    "identifier": ("meta.id", "Name of the entry in its list"),
    "reason": ("meta.code", "Why it is no candidate: below, other class, absent"),
    "probability": ("stat.probability;src.class", "Probability of the class asked for"),
    "best_class": ("src.class", "Most probable class"),
    "best_probability": ("stat.probability", "Probability of the most probable class"),
}
_KINDS = (
    pa.string(),
    pa.int64(),
    pa.string(),
    pa.string(),
    pa.float64(),
    pa.string(),
    pa.float64(),
)


def with_lists(table: Table, searches: Sequence[Search], rows: Rows) -> Table:
    """Add to candidates which lists hold them, and `new` where none does."""
    new = np.ones(len(table), dtype=bool)
    for search in searches:
        held = search.holds(rows)
        text = f"Whether the list {search.published.name} holds it"
        info = ColumnInfo(ucd="meta.code", description=text)
        table = table.with_column(f"in_{search.published.name}", held, info)
        new &= ~held
    if not searches:
        return table
    info = ColumnInfo(ucd="meta.code", description="In none of the lists")
    return table.with_column("new", new, info)


def _entry_names(published: Published) -> list[str | None]:
    key = published.key or next(
        iter(with_guessed_roles(published.table).names_with(Role.IDENTIFIER)), None
    )
    return (
        [None] * len(published.table)
        if key is None
        else identifiers(published.table, key).to_pylist()
    )
