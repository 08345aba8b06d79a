"""What a fitted model does to the gaps of a table: values, spreads and reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Reason, Role, Table, filled_names
from skyfill.catalog.column_info import gap_name
from skyfill.catalog.new_columns import check_new
from skyfill.errors import CatalogError, ModelError
from skyfill.model.cells import cells_of
from skyfill.model.declared import prepared, rejected_cells
from skyfill.model.pipeline import Feature, Model
from skyfill.network import Cells
from skyfill.network.mixture.random_keys import keys_of_cells, keys_of_texts, numbered

Array = NDArray[np.float64]
# Beyond this, doubles do not hold every whole number.
LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Filling:
    """How to fill, and what to write beside values and standard deviations.

    Attributes
    ----------
    quantiles : sequence of float
        Levels of the quantiles to write.
    n_draws : int
        Joint draws of the gaps to write.
    seed : int
        Of the draws.
    denoise : bool
        Also write what values seen with an error would be without it.
    prefix : str
        Before the names of all columns that are added beside the features.
    """

    quantiles: Sequence[float] = ()
    n_draws: int = 0
    seed: int = 0
    denoise: bool = False
    prefix: str = ""

    def apply(self, model: Model, table: Table, first_row: int = 0) -> Table:
        """Fill some rows of an input, in which the first of them has the number `first_row`."""
        return fill_table(model, table, self, first_row)


def fill_table(model: Model, table: Table, how: Filling | None = None, first_row: int = 0) -> Table:
    """Fill the gaps of a table's features; seen cells stay bit for bit.

    Parameters
    ----------
    model : Model
        What `load_model` gives.
    table : Table
        Any columns; features of the model that it lacks are added, all filled.
    how : Filling, optional
    first_row : int
        Number of the first row in the whole input. Draws of a row follow from the seed and the
        row's identifier or, without one, from its number and what is known of it.

    Returns
    -------
    Table
        Behind each feature ``<name>_sd`` (null where seen) and the reason ``filled`` in
        ``<name>_gap``; ``<name>_q16`` and the like, ``<name>_draw1`` and the like on request, and
        ``<name>_denoised`` with ``<name>_denoised_sd`` for features whose errors the model uses.
        A column of the table that has one of these names is refused, unless an earlier run wrote
        it: what that run filled are gaps, which are filled again from what was measured.
    """
    how = how or Filling()
    if how.denoise:
        _check_errors(model)
    given, table = table, prepared(model, table)
    filled = {given.info(n).of for n in given.names if filled_names.is_filled_part(given, n)}
    marks, infos = _find_marks(model, table, how.prefix, filled), _infos(model, table, how)
    _check_filled(model, table, marks, infos)
    cells, factors, absent = cells_of(model, table)
    rejected = rejected_cells(model, table)
    lost, noisy = np.isnan(cells.values), cells.is_noisy
    post = model.filler.posterior(cells, denoise=how.denoise)
    values = [post.sd]
    if how.quantiles:
        values += list(model.filler.quantiles(cells, how.quantiles))
    if how.n_draws:
        mine = cells.with_keys(_draw_keys(table, cells, how.seed, first_row))
        values += list(model.filler.draws(mine, how.n_draws))
    for j, feature in enumerate(model.features):
        name = feature.name
        table = _with_values(table, feature, post.mean[:, j] / factors[j], lost[:, j])
        beside = [(each, lost) for each in values] + [(each, noisy) for each in post[:2]]
        for (column, info), (each, shown) in zip(infos[name].items(), beside, strict=False):
            table = _with_part(table, column, each[:, j] / factors[j], shown[:, j], info)
        info = filled_names.gap_info(name, is_absent=name in absent)
        table = _with_filled(table, name, lost[:, j], marks[name], info, rejected.get(name))
    return table.select(_order(given.names, table, marks, infos))


def _order(
    given: Sequence[str],
    table: Table,
    marks: Mapping[str, Marks],
    infos: Mapping[str, Mapping[str, ColumnInfo]],
) -> list[str]:
    """Put what is new of a feature behind it; the columns of the input keep their order."""
    order = dict[str, None]()
    for name in dict.fromkeys([*given, *infos]):
        order[name] = None
        if name in infos:
            beside = (*infos[name], *marks[name])
            order |= dict.fromkeys(each for each in beside if each and each not in given)
    return [name for name in order if name in table.names]


def _draw_keys(table: Table, cells: Cells, seed: int, first_row: int) -> NDArray[np.uint64]:
    """Return what the random numbers of each row follow from."""
    rng = np.random.default_rng(seed)
    keys = numbered(keys_of_cells(cells, rng), first_row)
    names = table.names_with(Role.IDENTIFIER)
    if not names or not len(table):
        return keys
    texts = table.column(names[0]).combine_chunks().cast(pa.large_string())
    _, starts, text = texts.buffers()
    ends = np.frombuffer(starts, np.int64)[texts.offset :][: len(table) + 1]
    named = keys_of_texts(ends, np.frombuffer(text or b"", np.uint8), rng)
    is_named = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(texts), ""), False)
    return np.where(is_named.to_numpy(zero_copy_only=False), named, keys)


def _infos(model: Model, table: Table, how: Filling) -> dict[str, dict[str, ColumnInfo]]:
    """Describe the columns of numbers beside each feature, in the order of their values."""
    found = {}
    for feature, detection in zip_longest(model.features, model.detections):
        name = feature.name
        info = table.info(name) if name in table.names else _info(feature)
        new = {
            part: filled_names.filled_info(info, name, part)
            for part in filled_names.filled_parts(how.quantiles, how.n_draws)
        }
        if how.denoise and detection is not None and detection.errors:
            new |= {
                part: filled_names.denoised_info(info, name, part) for part in filled_names.DENOISED
            }
        found[name] = {how.prefix + filled_names.filled_name(name, p): new[p] for p in new}
    return found


class Marks(NamedTuple):
    """Columns that say which cells of a feature were filled, and why they had been missing."""

    gap: str
    before: str | None


def _find_marks(
    model: Model, table: Table, prefix: str, filled: Collection[str | None]
) -> dict[str, Marks]:
    """Name the marks of each feature; a column of reasons that filling made is not kept."""
    reasons = {str(table.info(name).of): name for name in table.names_with(Role.REASON)}
    marks = {}
    for name in model.names:
        gap, before = reasons.get(name), prefix + filled_names.before_name(name)
        has_reasons = gap is not None or name in table.names
        is_kept = before in table.names or (has_reasons and name not in filled)
        marks[name] = Marks(gap or prefix + gap_name(name), before if is_kept else None)
    return marks


def _check_filled(
    model: Model,
    table: Table,
    marks: Mapping[str, Marks],
    infos: Mapping[str, Mapping[str, ColumnInfo]],
) -> None:
    """Refuse a table with columns of the names of what filling adds."""
    new: dict[str, ColumnInfo] = {}
    reasons = table.names_with(Role.REASON)
    for feature in model.features:
        name = feature.name
        new |= infos[name]
        new |= {} if name in table.names else {name: _info(feature)}
        gap, before = marks[name]
        new |= {} if before is None else {before: filled_names.before_info(name)}
        if gap not in reasons:
            new[gap] = filled_names.gap_info(name)
    check_new(table, new)


def _info(feature: Feature) -> ColumnInfo:
    return ColumnInfo(feature.unit, feature.ucd, feature.description, Role.FEATURE)


def _check_errors(model: Model) -> None:
    if not any(detection.errors for detection in model.detections):
        raise ModelError(
            f"model {model.identifier} uses no errors: nothing can be denoised; train one with "
            "--errors on from a table whose columns of errors have the role error"
        )


def _with_part(
    table: Table, column: str, values: Array, shown: NDArray[np.bool_], info: ColumnInfo
) -> Table:
    cells = pa.array(np.where(shown, values, np.nan), from_pandas=True)
    return table.with_column(column, cells, info)


def _with_values(table: Table, feature: Feature, values: Array, lost: NDArray[np.bool_]) -> Table:
    if feature.name not in table.names:
        return table.with_column(feature.name, values, _info(feature))
    _refuse_long(table, feature.name)
    seen = table.numbers(feature.name)[:, 0]
    filled = pa.array(np.where(lost, values, seen))
    return table.with_column(feature.name, filled, table.info(feature.name))


def _refuse_long(table: Table, name: str) -> None:
    """Refuse integers that a filled column, which holds doubles, would change."""
    column = table.column(name)
    if not pa.types.is_integer(column.type) or column.type.bit_width < 64:
        return
    long = pc.or_(pc.greater(column, LARGEST_EXACT), pc.less(column, -LARGEST_EXACT))
    if pc.any(long).as_py():
        row = pc.index(long, True).as_py()
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {column[row]} has more digits than a filled column "
            "holds, 2^53 at most; it looks like an identifier: train a model without it"
        )


def _with_filled(
    table: Table,
    name: str,
    lost: NDArray[np.bool_],
    marks: Marks,
    info: ColumnInfo,
    rejected: NDArray[np.bool_] | None,
) -> Table:
    """Mark filled cells; the reasons that were there are kept in a column of their own."""
    before = pa.nulls(len(table), pa.string())
    if marks.gap in table.names:
        before = table.column(marks.gap).combine_chunks()
    if rejected is not None:
        before = pc.if_else(pa.array(rejected), str(Reason.REJECTED), before)
    if marks.before is not None:
        table = table.with_column(marks.before, before, filled_names.before_info(name))
    words = pc.if_else(pa.array(lost), str(Reason.FILLED), before)
    return table.with_column(marks.gap, words, info)
