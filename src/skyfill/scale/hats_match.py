"""Left cross-matches of HATS catalogues, one to one: any number of them joined to a base."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyfill import __version__
from skyfill.catalog import ColumnInfo, Provenance, Table
from skyfill.catalog.column_info import described
from skyfill.errors import CatalogError
from skyfill.scale.client import client_for
from skyfill.scale.hats_rule import Asks, OneToOne
from skyfill.scale.hats_store import (
    appearing,
    describe_columns,
    hats_folder,
    open_hats,
    stored_schema,
    write_catalog,
)
from skyfill.sky.sphere import Rows

# Counts of rows are compared in cells of this HEALPix order, some 14 arcmin wide.
COMMON_ORDER = 8


class Counterpart(NamedTuple):
    """A HATS catalogue to join to another.

    Parameters
    ----------
    catalog : path
        Its folder, with ``hats://`` before it or not.
    name : str
        Suffix of its columns.
    radius_arcsec : float
        Largest separation of a pair.
    asks : {"left", "right"}, optional
        Whose rows take their nearest neighbor first. Where not given, it is the catalogue with
        more rows in the part of the sky that both cover.
    """

    catalog: str | Path
    name: str
    radius_arcsec: float
    asks: Asks | None = None


def match_hats(
    left: str | Path,
    right: str | Path,
    output: str | Path,
    *,
    name: str,
    radius_arcsec: float,
    asks: Asks | None = None,
    scheduler: str | None = None,
    provenance: Provenance | None = None,
) -> None:
    """Join a HATS catalogue to another by position; every row of the left one stays, once.

    Columns of the right catalogue get the suffix ``_NAME``; ``sep_NAME`` (arcsec), ``n_NAME``
    (candidates within the radius) and ``flag_NAME`` come along, as from `skyfill.sky.join`. Rows
    at equal separation are decided for the one that comes first in the order of the catalogue.

    Parameters
    ----------
    left, right, output : paths
        Folders of HATS catalogues, with ``hats://`` before them or not. The margins must be at
        least two (left) and three (right) radii wide.
    name : str
        Suffix of the right catalogue's columns.
    radius_arcsec : float
        Largest separation of a pair.
    asks : {"left", "right"}, optional
        Whose rows take their nearest neighbor first. Where not given, it is the catalogue with
        more rows in the part of the sky that both cover.
    scheduler : str, optional
        Address of a Dask scheduler or ``"local"``; None for this process.
    provenance : Provenance, optional
        Written into the metadata of the output.
    """
    one = Counterpart(right, name, radius_arcsec, asks)
    join_hats(left, [one], output, scheduler=scheduler, provenance=provenance)


def join_hats(
    base: str | Path,
    others: Sequence[Counterpart],
    output: str | Path,
    *,
    scheduler: str | None = None,
    provenance: Provenance | None = None,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> None:
    """Join any number of HATS catalogues to a base, each as `match_hats` does.

    Parameters
    ----------
    base, output : paths
    others : sequence of Counterpart
    scheduler, provenance
        As in `match_hats`.
    resume : bool
        Go on with what an interrupted run of the same match left beside the output.
    tell : callable
        Called with the number of rows of each partition that is done.
    """
    left = matched = open_hats(base)
    columns, name = stored_schema(left), hats_folder(output).name
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
            output_catalog_name=name,
        )
    identifier = _identifier(base, others)
    with client_for(scheduler), appearing(output, identifier, resume=resume) as partial:
        write_catalog(matched, partial, name=name, facts={}, resume=resume, tell=tell)
        describe_columns(partial, columns, provenance)


def _identifier(base: str | Path, others: Sequence[Counterpart]) -> str:
    """Name what the partitions of a match depend on; those of another one are not taken."""
    folders = [hats_folder(catalog) for catalog in (base, *(other.catalog for other in others))]
    files = [file for folder in folders for file in sorted(folder.glob("*.properties"))]
    facts = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    text = repr((facts, [other[1:] for other in others], __version__))
    return "match-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def who_asks(left: Any, right: Any) -> Asks:
    """Name the catalogue with more rows where both have any; the left one of equals."""
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
