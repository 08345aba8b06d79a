"""Published lists beside our own: which entries we find again, which not, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Role, Table, with_guessed_roles
from skyfill.classify.candidates import Target
from skyfill.errors import CatalogError
from skyfill.sky import PositionColumns, match_positions, read_positions
from skyfill.sky.identifiers import identifiers

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class Fate(StrEnum):
    """What became of an entry of a published list.

    ``candidate``: it is one of ours; ``below``: its class is most probable, not probable enough;
    ``other class``: another class is more probable; ``absent``: the results do not hold it.

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


class Found(NamedTuple):
    """Where each entry of a list is in the results, and what they say of it.

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

    Without a column asked for, one that both call an identifier (by role, else by name).

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
    target : Target
        The class of the candidates.
    radius_arcsec : float
        Largest separation, where entries are recognized by position.
    position : PositionColumns, optional
        Of the results; found where not given.

    Examples
    --------
    >>> target = Target("QSO", {"QSO": "p_QSO", "RRL": "p_RRL"})
    >>> search = Search(Published("old", Table.from_columns({"ID": ["b", "z"]}), "ID"), target)
    >>> search.add(Table.from_columns({"ID": ["a", "b"], "p_QSO": [0.9, 0.3], "p_RRL": [0.1, 0.7]}))
    >>> [str(fate) for fate in search.fates(0.8)]
    ['other class', 'absent']
    """

    def __init__(
        self,
        published: Published,
        target: Target,
        radius_arcsec: float = 1.5,
        *,
        position: PositionColumns | None = None,
    ) -> None:
        n = len(published.table)
        self._position = position
        self.published, self.target, self.radius_arcsec = published, target, radius_arcsec
        self.found = Found(
            np.full(n, -1, dtype=np.int64),
            np.full(n, np.nan),
            np.full(n, np.nan),
            np.full(n, "", dtype=object),
            np.full(n, np.nan),
        )
        self._start = 0
        if published.key is None:
            self._sky = read_positions(published.table, published.position)
        else:
            self._keys = identifiers(published.table, published.key)

    def add(self, batch: Table) -> None:
        """Look in a batch; an entry that has several objects keeps the nearest (the first)."""
        entries, rows, separation = self._pairs(batch)
        nearer = ~(self.found.separation[entries] <= separation)
        entries, rows, separation = entries[nearer], rows[nearer], separation[nearer]
        best, top = _most_probable(batch, rows, self.target.columns)
        found = self.found
        found.rows[entries] = rows + self._start
        found.separation[entries] = separation
        found.probability[entries] = self.target.probability(batch)[rows]
        found.best_class[entries], found.best_probability[entries] = best, top
        self._start += len(batch)

    def _pairs(self, batch: Table) -> tuple[Rows, Rows, Array]:
        if self.published.key is None:
            sky = read_positions(batch, self._position)
            pairs = match_positions(
                self._sky.ra_deg,
                self._sky.dec_deg,
                sky.ra_deg,
                sky.dec_deg,
                self.radius_arcsec,
                keep="best",
            )
            return pairs.left, pairs.right, pairs.separation_arcsec
        ours = identifiers(batch, self.published.key).combine_chunks()
        place = pc.index_in(self._keys, value_set=ours, skip_nulls=True).combine_chunks()
        entries = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
        rows = place.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
        return entries, rows, np.zeros(len(rows))

    def fates(self, least: float) -> list[Fate]:
        """Say what became of each entry."""
        found = self.found
        fates = np.where(found.best_class == self.target.name, Fate.BELOW, Fate.OTHER).astype(
            object
        )
        fates[found.probability >= least] = Fate.CANDIDATE
        fates[found.rows < 0] = Fate.ABSENT
        return [Fate(fate) for fate in fates]

    def holds(self, rows: Rows) -> NDArray[np.bool_]:
        """Tell which rows of the results are entries of the list."""
        return np.isin(rows, self.found.rows[self.found.rows >= 0])


def _most_probable(
    batch: Table, rows: Rows, columns: Mapping[str, str]
) -> tuple[NDArray[Any], Array]:
    P = batch.numbers(*columns.values())[rows]
    known = np.where(np.isnan(P), -1.0, P)
    place = known.argmax(axis=1) if len(rows) else np.zeros(0, dtype=np.int64)
    return np.array([*columns], dtype=object)[place], P[np.arange(len(rows)), place]


def check_names(lists: Sequence[Published]) -> None:
    """Refuse two lists of one name: their columns could not be told apart."""
    names = [published.name for published in lists]
    for name in names:
        if names.count(name) > 1:
            raise CatalogError(f"two lists are called {name!r}; give each another file name")
