"""Tables filled by a model: values, their spread and what was filled, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Provenance, Reason, Role, Schema, Table, numbers_in
from skyfill.catalog.column_info import gap_name
from skyfill.model import Feature, Model
from skyfill.scale.stream import Target, stream_file

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Extras:
    """What to write beside values and standard deviations."""

    quantiles: Sequence[float] = ()
    n_draws: int = 0
    seed: int = 0


def features_of(model: Model, table: Table) -> tuple[Array, Array, list[str]]:
    """Numbers of the model's features in its units; factors to the table's; features not there."""
    columns, factors, absent = [], [], []
    for feature in model.features:
        if feature.name not in table.names:
            absent.append(feature.name)
            columns.append(np.full(len(table), np.nan))
            factors.append(1.0)
            continue
        factor = _factor(feature, table)
        columns.append(table.numbers(feature.name)[:, 0] * factor)
        factors.append(factor)
    return np.stack(columns, axis=1), np.array(factors), absent


def _factor(feature: Feature, table: Table) -> float:
    own = table.info(feature.name).unit
    if not own or not feature.unit or own == feature.unit:
        return 1.0
    one = Table.from_columns({feature.name: [1.0]}, info={feature.name: ColumnInfo(unit=own)})
    return float(numbers_in(one, feature.name, feature.unit)[0])


def fill_table(model: Model, table: Table, extras: Extras | None = None) -> Table:
    """Fill the gaps of a table's features; seen cells stay bit for bit.

    Parameters
    ----------
    model : Model
        What `load_model` gives.
    table : Table
        Any columns; features of the model that it lacks are added, all filled.
    extras : Extras, optional
        Quantiles and draws to write as well.

    Returns
    -------
    Table
        For each feature ``<name>_sd`` (null where seen) and the reason ``filled`` in
        ``<name>_gap``; ``<name>_q16`` and the like, ``<name>_draw1`` and the like on request.
    """
    extras = extras or Extras()
    X, factors, _ = features_of(model, table)
    lost = np.isnan(X)
    post = model.network.posterior(X)
    beside = {"sd": post.sd}
    if extras.quantiles:
        levels = model.network.quantiles(X, extras.quantiles)
        beside |= {f"q{100 * q:g}": v for q, v in zip(extras.quantiles, levels, strict=True)}
    if extras.n_draws:
        draws = model.network.draws(X, extras.n_draws, extras.seed)
        beside |= {f"draw{t}": draw for t, draw in enumerate(draws, 1)}
    companions = {str(table.info(name).of): name for name in table.names_with(Role.REASON)}
    for j, feature in enumerate(model.features):
        table = _with_values(table, feature, post.mean[:, j] / factors[j], lost[:, j])
        for name, values in beside.items():
            shown = np.where(lost[:, j], values[:, j] / factors[j], np.nan)
            info = _beside_info(table.info(feature.name), feature.name, name)
            table = table.with_column(
                f"{feature.name}_{name}", pa.array(shown, from_pandas=True), info
            )
        table = _with_filled(table, feature.name, lost[:, j], companions.get(feature.name))
    return table


def _with_values(table: Table, feature: Feature, values: Array, lost: NDArray[np.bool_]) -> Table:
    if feature.name not in table.names:
        info = ColumnInfo(feature.unit, feature.ucd, feature.description, Role.FEATURE)
        return table.with_column(feature.name, values, info)
    seen = table.numbers(feature.name)[:, 0]
    filled = pa.array(np.where(lost, values, seen))
    return table.with_column(feature.name, filled, table.info(feature.name))


def _beside_info(info: ColumnInfo, name: str, what: str) -> ColumnInfo:
    texts = {"sd": f"Standard deviation of {name} where it was filled"}
    text = texts.get(what, f"{what} of {name} where it was filled")
    # All of them tell of the spread: none may be taken for a feature of its own.
    return ColumnInfo(info.unit, None, text, Role.ERROR, name)


def _with_filled(table: Table, name: str, lost: NDArray[np.bool_], companion: str | None) -> Table:
    """Say `filled` where a value was filled; the reasons that were there go to `<name>_was`."""
    if companion is not None:
        info = ColumnInfo(description=f"Why {name} was missing before it was filled")
        table = table.with_column(f"{name}_was", table.column(companion), info)
    words = pc.if_else(pa.array(lost), str(Reason.FILLED), pa.scalar(None, pa.string()))
    info = ColumnInfo(role=Role.REASON, of=name)
    return table.with_column(companion or gap_name(name), words, info)


def fill_file(
    model: Model,
    catalog: str | Path,
    output: str | Path,
    *,
    extras: Extras | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> tuple[int, int]:
    """Fill the gaps of a file; the output appears whole or not at all.

    Parameters
    ----------
    model : Model
        What `load_model` gives.
    catalog, output : paths
        Any format that `read_table` reads and `write_table` writes.
    extras : Extras, optional
        Quantiles and draws to write as well; draws of a batch follow from the seed and its place.
    schema : Schema, optional
        Roles, units and sentinels to apply to the catalog first.
    provenance : Provenance, optional
        Written into the output.
    resume : bool
        Go on where a run that was killed or interrupted stopped; the result is the same.
    tell : callable
        Called with the number of rows of each batch that is done.

    Returns
    -------
    n_rows, n_filled : int
    """
    extras = extras or Extras()
    job = {"model": model.identifier, "extras": asdict(extras)}

    def score(table: Table, place: int) -> Table:
        mine = Extras(extras.quantiles, extras.n_draws, extras.seed + place)
        return fill_table(model, table, mine)

    def count(table: Table) -> dict[str, int]:
        gaps = (table.reasons(name) for name in model.names)
        return {"filled": sum(len(reason) - reason.null_count for reason in gaps)}

    def target(out_schema: pa.Schema) -> Target:
        return Target(output, out_schema, job, provenance, resume)

    done = stream_file(score, catalog, target, rules=schema, count=count, tell=tell)
    return done.rows, done.counts.get("filled", 0)
