"""Published lists compared with our candidates: which entries are among them, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Role, Table, with_guessed_roles
from skyfill.errors import CatalogError
from skyfill.model.results import IN_LIST, NEW, PREFIX, candidate_infos, class_columns
from skyfill.report.candidates import probability_of
from skyfill.sky import PositionColumns, match_positions, read_positions
from skyfill.sky.identifiers import identifiers

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Columns of the table of missing entries: type, UCD, description.
_MISSING = {
    "list": (pa.string(), "meta.bib", "Published list"),
    "entry": (pa.int64(), "meta.number", "Place of the entry in its list, from 1"),
    "identifier": (pa.string(), "meta.id", "Name of the entry in its list"),
    "reason": (pa.string(), "meta.code", "Why not a candidate: below, other class, absent"),
    "probability": (pa.float64(), "stat.probability;src.class", "Probability of the class"),
    "best_class": (pa.string(), "src.class", "Most probable class"),
    "best_probability": (pa.float64(), "stat.probability", "Probability of that class"),
}


class Fate(StrEnum):
    """What became of an entry of a published list.

    ``candidate``: it is one of ours; ``below``: its class is the most probable one, but not
    probable enough; ``other class``: another class is more probable; ``absent``: it is not among
    the results.

    Examples
    --------
    >>> [str(fate) for fate in Fate]
    ['candidate', 'below', 'other class', 'absent']
    """

    CANDIDATE = "candidate"
    BELOW = "below"
    OTHER = "other class"
    ABSENT = "absent"


@dataclass(frozen=True)
class Published:
    """A published list and how its entries are recognized.

    Attributes
    ----------
    name : str
    table : Table
    key : str, optional
        Column of identifiers, in the list and in the results; by position where it is None.
    position : PositionColumns, optional
        Of the list; found where not given.
    """

    name: str
    table: Table
    key: str | None = None
    position: PositionColumns | None = None

    def entry_names(self) -> list[str | None]:
        """Return the identifier of every entry; None where the list has none."""
        guessed = with_guessed_roles(self.table).names_with(Role.IDENTIFIER)
        key = self.key or next(iter(guessed), None)
        return [None] * len(self.table) if key is None else identifiers(self.table, key).to_pylist()


class FoundEntries(NamedTuple):
    """Where each entry of a list is in the results, and what they say about it.

    `rows` is -1 and the rest NaN or empty where an entry was not found; `separation` is in
    arcsec, 0 by identifier.
    """

    rows: Rows
    separation: Array
    probability: Array
    best_class: NDArray[Any]
    best_probability: Array


def choose_key(results: Table, published: Table, asked: str | None = None) -> str | None:
    """Name the column of identifiers that both tables share; None to go by position.

    If none is given, one that is an identifier in both (by role, else by name).

    Examples
    --------
    >>> ours = Table.from_columns({"ID": ["1.1"], "p_QSO": [0.9]})
    >>> choose_key(ours, Table.from_columns({"ID": ["1.1"]}))
    'ID'
    """
    if asked is not None:
        for table in (results, published):
            table.column(asked)
        return asked
    mine, theirs = (with_guessed_roles(t).names_with(Role.IDENTIFIER) for t in (results, published))
    return next((name for name in mine if name in theirs), None)


class Search:
    """Look for the entries of a list in a table of results, batch by batch.

    Parameters
    ----------
    published : Published
    name : str
        The class of the candidates.
    radius_arcsec : float
        Largest separation, where entries are recognized by position.
    position : PositionColumns, optional
        Of the results; found where not given.
    prefix : str
        Before the names of the columns that are added, and of the results, if they have it.

    Examples
    --------
    >>> search = Search(Published("old", Table.from_columns({"ID": ["b", "z"]}), "ID"), "QSO")
    >>> search.add(Table.from_columns({"ID": ["a", "b"], "p_QSO": [0.9, 0.3], "p_RRL": [0.1, 0.7]}))
    >>> [str(fate) for fate in search.fates(0.8)]
    ['other class', 'absent']
    """

    def __init__(
        self,
        published: Published,
        name: str,
        radius_arcsec: float = 1.5,
        *,
        position: PositionColumns | None = None,
        prefix: str = PREFIX,
    ) -> None:
        n = len(published.table)
        self._position, self.prefix = position, prefix
        self.published, self.name, self.radius_arcsec = published, name, radius_arcsec
        nan, no_class = np.full(n, np.nan), np.full(n, "", object)
        self.found = FoundEntries(np.full(n, -1), nan, nan.copy(), no_class, nan.copy())
        self._start = 0
        if published.key is None:
            self._sky = read_positions(published.table, published.position)
        else:
            self._keys = identifiers(published.table, published.key)

    def add(self, batch: Table) -> None:
        """Look in a batch; an entry that matches several objects keeps the nearest (or first)."""
        entries, rows, separation = self._pairs(batch)
        nearer = ~(self.found.separation[entries] <= separation)
        entries, rows, separation = entries[nearer], rows[nearer], separation[nearer]
        best, top = _most_probable(batch, rows, self.prefix)
        found = self.found
        found.rows[entries] = rows + self._start
        found.separation[entries] = separation
        found.probability[entries] = probability_of(batch, self.name, self.prefix)[rows]
        found.best_class[entries], found.best_probability[entries] = best, top
        self._start += len(batch)

    def _pairs(self, batch: Table) -> tuple[Rows, Rows, Array]:
        if self.published.key is None:
            sky = read_positions(batch, self._position)
            theirs, ours = ((each.ra_deg, each.dec_deg) for each in (self._sky, sky))
            pairs = match_positions(*theirs, *ours, self.radius_arcsec, keep="best")
            return pairs.left, pairs.right, pairs.separation_arcsec
        known = identifiers(batch, self.published.key).combine_chunks()
        place = pc.index_in(self._keys, value_set=known, skip_nulls=True).combine_chunks()
        entries = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
        rows = place.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
        return entries, rows, np.zeros(len(rows))

    def fates(self, least: float) -> list[Fate]:
        """Describe the fate of each entry."""
        found = self.found
        fates = np.where(found.best_class == self.name, Fate.BELOW, Fate.OTHER).astype(object)
        fates[found.probability >= least] = Fate.CANDIDATE
        fates[found.rows < 0] = Fate.ABSENT
        return [Fate(fate) for fate in fates]

    def holds(self, rows: Rows) -> NDArray[np.bool_]:
        """Mark the rows of the results that are entries of the list."""
        return np.isin(rows, self.found.rows[self.found.rows >= 0])


def _most_probable(batch: Table, rows: Rows, prefix: str) -> tuple[NDArray[Any], Array]:
    columns = class_columns(batch, prefix)
    P = batch.numbers(*columns.values())[rows]
    known = np.where(np.isnan(P), -1.0, P)
    place = known.argmax(axis=1) if len(rows) else np.zeros(0, dtype=np.int64)
    return np.array([*columns], dtype=object)[place], P[np.arange(len(rows)), place]


def check_list_names(lists: Sequence[Published]) -> None:
    """Refuse two lists of one name: their columns would have one name, too."""
    for name, count in Counter(published.name for published in lists).items():
        if count > 1:
            raise CatalogError(f"two lists are called {name!r}; give each another file name")


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
        Our candidates, and how many of them the list contains.
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
        """Candidates that the list does not contain."""
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
    matched, below, other, absent = (fates.count(fate) for fate in Fate)
    counts = (len(fates), matched, below, other, absent, len(rows), int(search.holds(rows).sum()))
    return ListReport(search.published.name, by, *counts)


def missing_entries(searches: Sequence[Search], least: float) -> Table:
    """List the entries of published lists that are not candidates, and why."""
    rows = []
    for search in searches:
        name, found, names = search.published.name, search.found, search.published.entry_names()
        for i, fate in enumerate(search.fates(least)):
            if fate is not Fate.CANDIDATE:
                best = (found.best_class[i] or None, found.best_probability[i])
                rows.append((name, i + 1, names[i], str(fate), found.probability[i], *best))
    arrays = {
        name: pa.array([row[k] for row in rows], kind, from_pandas=True)
        for k, (name, (kind, _, _)) in enumerate(_MISSING.items())
    }
    info = {name: ColumnInfo(None, ucd, text) for name, (_, ucd, text) in _MISSING.items()}
    return Table.from_columns(arrays, info=info)


def with_lists(table: Table, searches: Sequence[Search], rows: Rows) -> Table:
    """Add to candidates which lists contain them, and `new` where none does."""
    infos = candidate_infos(lists=[search.published.name for search in searches])
    new = np.ones(len(table), dtype=bool)
    for search in searches:
        held, name = search.holds(rows), IN_LIST + search.published.name
        table = table.with_column(search.prefix + name, held, infos[name])
        new &= ~held
    if not searches:
        return table
    return table.with_column(searches[0].prefix + NEW, new, infos[NEW])
