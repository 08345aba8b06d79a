"""What astropy notes about columns, as YAML, in ECSV, Parquet and FITS alike."""

from collections.abc import Iterable
from typing import Any

from skyfill.catalog.column_info import ColumnInfo

_BEGIN = "--BEGIN-ASTROPY-SERIALIZED-COLUMNS--"
_END = "--END-ASTROPY-SERIALIZED-COLUMNS--"
_COMMENT_WIDTH = 70


def header_info(column: dict[str, Any]) -> ColumnInfo:
    """Read the entry of one column.

    Examples
    --------
    >>> header_info({"name": "J", "unit": "mag", "meta": {"ucd": "phot.mag"}}).ucd
    'phot.mag'
    """
    facts = {**dict(column.get("meta") or {}), **column}
    words = {key: str(facts[key]) for key in ColumnInfo.__dataclass_fields__ if facts.get(key)}
    return ColumnInfo.from_metadata({key.encode(): word.encode() for key, word in words.items()})


def header_infos(lines: Iterable[str]) -> dict[str, ColumnInfo]:
    """Read the entries of all columns, by name."""
    from astropy.table.meta import get_header_from_yaml

    columns = get_header_from_yaml(list(lines))["datatype"]
    return {str(column["name"]): header_info(column) for column in columns}


def comment_infos(comments: list[str]) -> dict[str, ColumnInfo]:
    """Read the entries that astropy hides in the COMMENT cards of a FITS table."""
    if _BEGIN not in comments or _END not in comments:
        return {}
    lines: list[str] = []
    goes_on = False
    for comment in comments[comments.index(_BEGIN) + 1 : comments.index(_END)]:
        part = comment[:_COMMENT_WIDTH]
        lines = [*lines[:-1], lines[-1] + part] if goes_on else [*lines, part]
        goes_on = len(comment) > _COMMENT_WIDTH
    return header_infos(lines)
