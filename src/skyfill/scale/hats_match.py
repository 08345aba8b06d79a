"""Left cross-matches of HATS catalogues, one to one: any number of them joined to a base."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyfill.catalog import ColumnInfo, Table
from skyfill.catalog.column_info import described
from skyfill.errors import CatalogError
from skyfill.scale.driver import Run
from skyfill.scale.hats import HatsOutput, hats_folder, open_hats, stored_schema
from skyfill.scale.hats_around import tiles_of
from skyfill.scale.hats_counterparts import CounterpartMatch
from skyfill.scale.hats_rule import OneToOne
from skyfill.scale.job_folder import Done, identify
from skyfill.sky.matching import Asks
from skyfill.sky.sphere import Rows

# Row counts are compared in cells of this HEALPix order, about 14 arcmin wide.
COMMON_ORDER = 8


class Counterpart(NamedTuple):
    """A HATS catalogue to join to another.

    Parameters
    ----------
    catalog : path
        Its folder, with or without ``hats://``.
    name : str
        Suffix of its columns.
    radius_arcsec : float
        Largest separation of a pair.
    asks : {"left", "right"}, optional
        The catalogue whose rows choose their nearest neighbor first; by default the one with more
        rows in the area that both cover.
    """

    catalog: str | Path
    name: str
    radius_arcsec: float
    asks: Asks | None = None


def join_hats(
    base: str | Path,
    others: Sequence[Counterpart],
    output: str | Path,
    run: Run | None = None,
) -> Done:
    """Join any number of HATS catalogues to a base by position; its rows are kept exactly once.

    Columns of each catalogue get the suffix ``_NAME``; ``sep_NAME`` (arcsec), ``n_NAME``
    (candidates within the radius) and ``flag_NAME`` are added, as in `skyfill.sky.join`. At equal
    separation, the row that comes first in the catalogue is chosen.

    Parameters
    ----------
    base, output : paths
        Folders of HATS catalogues, with or without ``hats://``. The margin of the base must be at
        least two radii wide, that of every other catalogue three.
    others : sequence of Counterpart
    run : Run, optional
    """
    run, left = run or Run(), open_hats(base)
    columns, matched = stored_schema(left), left
    for other in others:
        right = open_hats(other.catalog)
        asks = other.asks or who_asks(left, right)
        rule = OneToOne.between(left, right, other.name, other.radius_arcsec, asks)
        columns = _joined_schema(columns, stored_schema(right), rule)
        matched = matched.crossmatch(
            right,
            algorithm=rule,
            how="left",
            suffixes=("", f"_{other.name}"),
            suffix_method="all_columns",
            output_catalog_name=hats_folder(output).name,
        )
    with run.open_workers() as workers:
        return HatsOutput(matched, output, columns).write(run, workers, _facts(base, others))


def join_hats_with_probability(
    rule: CounterpartMatch,
    output: str | Path,
    run: Run | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Done:
    """Join HATS catalogues to a base by the most probable associations; see `CounterpartMatch`.

    Parameters
    ----------
    rule : CounterpartMatch
        With what was learned from a sample.
    output : path
        Folder of a new HATS catalogue, with or without ``hats://``.
    run : Run, optional
    facts : mapping, optional
        Whatever the rule was made from, as JSON, so that only the same search is resumed.
    """
    run, left = run or Run(), open_hats(rule.base.folder)
    first = rule.surveys[0]
    # Of the survey LSDB needs to know only where it is: the rule reads its rows itself.
    right = open_hats(first.folder, columns=list(tiles_of(first.folder).position))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no margin
        matched = left.crossmatch(
            right,
            algorithm=rule,
            how="left",
            suffixes=("", f"_{first.name}"),
            suffix_method="all_columns",
            output_catalog_name=hats_folder(output).name,
        )
    inputs = [rule.base.folder, *(survey.folder for survey in rule.surveys)]
    known = {"inputs": identify(_properties(inputs)), "every": rule.every, **(facts or {})}
    with run.open_workers() as workers:
        return HatsOutput(matched, output, rule.schema).write(run, workers, known)


def _properties(folders: Sequence[str | Path]) -> list[Path]:
    """List the files that identify catalogues."""
    return [file for each in folders for file in sorted(hats_folder(each).glob("*.properties"))]


def _facts(base: str | Path, others: Sequence[Counterpart]) -> dict[str, Any]:
    """Return what a match depends on; catalogues are identified by their properties."""
    files = _properties([base, *(other.catalog for other in others)])
    return {"inputs": identify(files), "match": [list(map(str, other[1:])) for other in others]}


def who_asks(left: Any, right: Any) -> Asks:
    """Choose the catalogue with more rows where both have any; the left one if equal."""
    ours, theirs = _sky_map(left), _sky_map(right)
    both = (ours > 0) & (theirs > 0)
    return "left" if ours[both].sum() >= theirs[both].sum() else "right"


def _sky_map(catalog: Any) -> Rows:
    from hats.io.skymap import read_skymap

    structure = catalog.hc_structure
    order = structure.catalog_info.skymap_order
    return np.asarray(read_skymap(structure, min(order or COMMON_ORDER, COMMON_ORDER)))


def _joined_schema(left: pa.Schema, right: pa.Schema, rule: OneToOne) -> pa.Schema:
    """Describe the columns of the result."""
    name = rule.name
    facts = {
        f"sep_{name}": ColumnInfo("arcsec", "pos.angDistance", f"{name}: separation"),
        f"n_{name}": ColumnInfo(None, "meta.number", f"{name}: candidates within the radius"),
        f"flag_{name}": ColumnInfo(None, "meta.code", f"{name}: how it matched"),
    }
    theirs = Table(right.empty_table()).select(rule.columns)
    for column in theirs.names:
        if (of := theirs.info(column).of) is not None:
            theirs = theirs.with_info(column, of=f"{of}_{name}")
    renamed = [field.with_name(f"{field.name}_{name}") for field in theirs.arrow.schema]
    added = [described(pa.field(key, pa.null()), info) for key, info in facts.items()]
    for field in (*renamed, *added):
        if field.name in left.names:
            raise CatalogError(
                f"two columns would be called {field.name!r}; give {name} another name"
            )
    return pa.schema([*left, *renamed, *added])
