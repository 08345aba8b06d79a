"""What the user declared about the training table, and what was found there: what is a gap.

It holds for the tables that a model is used on, each cell of which is judged alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Reason, Role, Schema, Table, numbers_in
from skyfill.catalog.column_info import gap_name
from skyfill.catalog.column_summary import summarize_column
from skyfill.catalog.filled_names import is_filled_part
from skyfill.catalog.sentinels import find_unmistakable, select_values
from skyfill.catalog.usual_values import find_usual, is_numeric
from skyfill.errors import CatalogError
from skyfill.model.measured import before_filling
from skyfill.model.pipeline import Model
from skyfill.network.mixture.seen_ranges import are_whole, credible_range, reached_ranges

# A model converts by itself, and leaves the table in its own units.
_NOT_KEPT = ("convert", "description")


def declared_for(table: Table, names: Sequence[str], rules: Schema) -> Schema:
    """Return what rules state about features and the columns beside them.

    Parameters
    ----------
    table : Table
        The training table, to which the rules were applied.
    names : sequence of str
        The features.
    rules : Schema

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2], "n": [3]})
    >>> declared_for(table, ["J"], Schema.from_toml("sentinels = [-99]")).to_dict()
    {'J': {'sentinels': [-99]}}
    """
    beside = _beside(table, names, Role.ERROR, Role.LIMIT)
    return rules.only([*names, *beside], without=_NOT_KEPT)


def _beside(table: Table, names: Sequence[str], *roles: Role) -> list[str]:
    return [n for n in table.names if table.info(n).role in roles and table.info(n).of in names]


def prepared(model: Model, table: Table) -> Table:
    """Return a table as a model sees it: filled cells are gaps, and declared rules hold.

    What was declared in training holds as far as the table itself does not say otherwise. It makes
    no difference whether a table was prepared before.
    """
    table = before_filling(table, model.names)
    return model.declared.apply(table, keep=True) if model.declared.rules else table


def find_sentinels(
    table: Table, names: Iterable[str], rules: Schema | None = None
) -> dict[str, dict[float, int]]:
    """Find values of features and of their errors that surely mean gaps, and count their cells.

    Columns of which the rules say that they have none (``sentinels = []``) are left out.

    Examples
    --------
    >>> table = Table.from_columns({"J": [*np.linspace(14, 16, 20), -99.0, -99.0]})
    >>> find_sentinels(table, ["J"])
    {'J': {-99.0: 2}}
    >>> find_sentinels(table, ["J"], Schema.from_toml("columns.J.sentinels = []"))
    {}
    """
    found, names = {}, [name for name in names if name in table.names]
    for name in [*names, *_beside(table, names, Role.ERROR)]:
        kept = rules is not None and rules.facts(name).get("sentinels") == []
        column = table.column(name).combine_chunks()
        if not kept and find_usual(column, is_whole=False).any():
            sure = find_unmistakable(summarize_column(column))
            found[name] = {float(each.value): each.count for each in sure}
    return {name: counts for name, counts in found.items() if counts}


def rejected_cells(model: Model, table: Table) -> dict[str, NDArray[np.bool_]]:
    """Mark the cells of features and of their errors that are gaps, though they hold numbers.

    Each cell is judged alone. It is a gap if its value was found to mean a gap in training, or if
    it is of the usual kind (`find_usual`) and either lies outside the training range by more than
    the width of this range, or is negative while the training range is not. An error of the usual
    kind that is negative or larger than this width is a gap, too.

    Returns
    -------
    dict
        Of the columns with such cells.
    """
    found, beside = {}, dict[str | None, list[str]]()
    for name in _beside(table, model.names, Role.ERROR):
        if not is_filled_part(table, name):
            beside.setdefault(table.info(name).of, []).append(name)
    # A model that is being learned knows no ranges.
    ranges = reached_ranges(model.network)
    for feature, ends in zip_longest(model.features, ranges):
        for name in (feature.name, *beside.get(feature.name, ())):
            is_kept = model.declared.facts(name).get("sentinels") == []
            if name not in table.names or is_kept:
                continue
            column = table.column(name)
            cells = select_values(column, model.found.get(name, ()))
            if ends is not None and is_numeric(column.type):
                is_error, width = name != feature.name, ends[1] - ends[0]
                low, high = (0.0, width) if is_error else credible_range(ends)
                values = _in_unit(table, name, feature.unit)
                far = np.flatnonzero((values < low) | (values > high))
                cells[far] |= find_usual(column.take(pa.array(far)), is_whole=are_whole(ends))
            if cells.any():
                found[name] = cells
    return found


def _in_unit(table: Table, name: str, unit: str | None) -> NDArray[np.float64]:
    """Convert a column; of an error in another kind of unit, as percent, nothing is known."""
    info = table.info(name)
    if not (info.unit and unit and info.unit != unit):
        return table.numbers(name)[:, 0]
    try:
        return np.asarray(numbers_in(table, name, unit))
    except CatalogError:
        if info.role is not Role.ERROR:
            raise
        return np.full(len(table), np.nan)


def cleaned(model: Model, table: Table, *, every: bool = False) -> Table:
    """Return what `prepared` gives, with gaps where `rejected_cells` are, and their reason.

    With `every`, each feature gets a column of reasons, so that all batches have the same columns.
    """
    table = prepared(model, table)
    cells = rejected_cells(model, table)
    none = np.zeros(len(table), bool)
    more = {name: none for name in model.names if name in table.names} if every else {}
    return _with_gaps(table, more | cells)


def without_sentinels(table: Table, found: Mapping[str, Iterable[float]]) -> Table:
    """Put gaps where columns hold some values, such as those of `find_sentinels`."""
    chosen = {name: select_values(table.column(name), [*found[name]]) for name in found}
    return _with_gaps(table, chosen)


def _with_gaps(table: Table, cells: Mapping[str, NDArray[np.bool_]]) -> Table:
    for name, chosen in cells.items():
        lost, column = pa.array(chosen), table.column(name)
        reasons = pc.if_else(lost, str(Reason.REJECTED), pa.chunked_array([table.reasons(name)]))
        table = table.with_column(name, pc.if_else(lost, pa.scalar(None, column.type), column))
        # A column of the user that has the name of the reasons stays as it is.
        gap, is_error = gap_name(name), table.info(name).role is Role.ERROR
        if not is_error and (gap not in table.names or table.info(gap).of == name):
            table = table.with_reasons(name, reasons)
    return table


def count_rejected(model: Model, table: Table) -> dict[str, dict[float, int]]:
    """Count the cells of `rejected_cells` by their value."""
    found: dict[str, dict[float, int]] = {}
    for name, cells in rejected_cells(model, table).items():
        values, counts = np.unique(table.column(name).filter(pa.array(cells)), return_counts=True)
        pairs = zip(map(float, map(str, values)), counts.tolist(), strict=True)
        found[name] = dict(pairs)
    return found


def overridden(model: Model, rules: Schema) -> Model:
    """Let what rules state about a column take the place of what was declared in training."""
    if not rules.rules:
        return model
    left = {
        name: {key: value for key, value in facts.items() if key not in rules.facts(name)}
        for name, facts in model.declared.to_dict().items()
    }
    # Where the rules say so, what would be taken for a gap is a value.
    for name in dict.fromkeys([*model.names, *model.found, *rules.to_dict()]):
        if rules.facts(name).get("sentinels") == []:
            left.setdefault(name, {})["sentinels"] = []
    kept = Schema.from_dict({name: facts for name, facts in left.items() if facts})
    changed = replace(model, declared=kept)
    # Results name the file that they come from.
    changed.__dict__["identifier"] = model.identifier
    return changed


def changes(model: Model, rules: Schema) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield column, fact, and its values in training and by the rules, where the two differ."""
    for name, facts in model.declared.to_dict().items():
        given = rules.only([name]).to_dict().get(name, {})
        for key in facts.keys() & given.keys():
            if facts[key] != given[key]:
                yield name, key, facts[key], given[key]
