"""Match a survey to the base by identifier, where both tables use the same identifiers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Table
from skyfill.catalog.file_io import naming
from skyfill.errors import CatalogError
from skyfill.sky.matching import Matches
from skyfill.sky.survey import Flag, MatchReport, Survey, SurveyMatch, count_flags


def match_identifiers(base: Table, survey: Survey, key: str) -> SurveyMatch:
    """Match the rows of a survey to the rows of the base with the same identifier.

    Parameters
    ----------
    key : str
        Column in both tables, or ``OURS:THEIRS`` where its names differ; numbers are compared as
        text.

    Examples
    --------
    >>> base = Table.from_columns({"id": ["a", "b", "c"]})
    >>> curves = Table.from_columns({"id": ["c", "a"], "period": [0.5, 3.2]})
    >>> found = match_identifiers(base, Survey("lc", curves, 0.0, key="id"), "id")
    >>> found.flags.tolist(), found.matches.right.tolist()
    (['matched', 'unmatched', 'matched'], [1, 0])
    """
    with naming("the base"):
        ours = identifiers(base, key_columns(key)[0])
    with naming(survey.name):
        own = key_columns(key)[1]
        theirs = identifiers(survey.table, own)
        _refuse_repeats(theirs, own)
    rows = pc.fill_null(pc.index_in(ours, theirs, skip_nulls=True), -1).to_numpy()
    left = np.flatnonzero(rows >= 0)
    matches = Matches(left, rows[left].astype(np.intp), np.zeros(len(left)), (rows >= 0) * 1)
    flags = np.where(rows >= 0, Flag.MATCHED.value, Flag.UNMATCHED.value)
    report = MatchReport(survey.name, 0.0, **count_flags(flags), offset=None, chance=None, key=key)
    return SurveyMatch(matches, flags, report)


def key_columns(key: str) -> tuple[str, str]:
    """Name the columns of the base and of a survey that hold the same identifiers.

    Examples
    --------
    >>> key_columns("id"), key_columns("objID:source_id")
    (('id', 'id'), ('objID', 'source_id'))
    """
    ours, _, theirs = key.partition(":")
    return ours, theirs or ours


def identifiers(table: Table, name: str) -> pa.ChunkedArray:
    """Return identifiers as text, so that 7 in one file and "7" in another are the same."""
    return pc.utf8_trim_whitespace(table.column(name).cast(pa.string()))


def _refuse_repeats(names: pa.ChunkedArray, key: str) -> None:
    counts = pc.value_counts(names.drop_null())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        first = repeated[0].as_py()
        raise CatalogError(
            f"{first['values']!r} is in {first['counts']} rows of column {key!r}; "
            "give a table with one row per object"
        )
