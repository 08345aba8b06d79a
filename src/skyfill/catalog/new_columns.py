"""Columns that skyfill adds to a table: a column of the user is never replaced."""

from collections.abc import Mapping

from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.table import Table
from skyfill.errors import CatalogError

USE_PREFIX = "rename your column, or give the results other names, as with --prefix my_"


def check_new(table: Table, new: Mapping[str, ColumnInfo], *, advice: str = USE_PREFIX) -> None:
    """Refuse to add columns whose names are taken; call it before the work starts.

    Names are compared without regard to case, as FITS and many programs do. A column that skyfill
    wrote earlier, which its description shows, is no collision: its values are computed anew.

    Parameters
    ----------
    table : Table
    new : mapping
        What is to be added: names and descriptions.
    advice : str
        What the user can do.

    Examples
    --------
    >>> table = Table.from_columns({"Class": ["QSO"]})
    >>> check_new(table, {"class": ColumnInfo(description="Most probable class")}, advice="rename")
    Traceback (most recent call last):
    skyfill.errors.CatalogError: column 'Class' has the name of a result ('class'); rename
    """
    named = {name.lower(): name for name in new}
    taken = [
        name for name in table.names if name.lower() in named and not _is_own(table, name, new)
    ]
    if taken:
        results = ", ".join(repr(named[name.lower()]) for name in taken)
        columns = ", ".join(map(repr, taken))
        have = "has the name of a result" if len(taken) == 1 else "have the names of results"
        noun = "column" if len(taken) == 1 else "columns"
        raise CatalogError(f"{noun} {columns} {have} ({results}); {advice}")


def _is_own(table: Table, name: str, new: Mapping[str, ColumnInfo]) -> bool:
    """Whether a column is described exactly as the result of its name."""
    info = new.get(name)
    return info is not None and bool(info.description or info.of) and table.info(name) == info
