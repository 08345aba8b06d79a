"""`skyfill train` on tables that do not fit into memory: from disk, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli.terminal import warn
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Schema, Table
    from skyfill.model import Model
    from skyfill.scale.steps import Steps

# From more rows than this a model is learned out of core, where the user says nothing.
MANY_ROWS = 2_000_000

out_of_core = click.option(
    "--out-of-core/--in-memory",
    default=None,
    help="Read the rows again for each step of the fit, or hold them all.  [default: out of core "
    f"for a Parquet or FITS file of more than {MANY_ROWS:,} rows without --label]",
)


resume = click.option(
    "--resume",
    is_flag=True,
    help="Out of core or on a cluster: go on where a run that was killed or interrupted stopped.",
)


class Place(Enum):
    """Where the rows are while a model is learned."""

    MEMORY = "memory"
    DISK = "disk"
    CLUSTER = "cluster"


def choose_place(options: Mapping[str, Any]) -> Place:
    """Decide where the rows shall be; say so where options contradict each other."""
    from skyfill.scale.dispatch import is_distributed

    asked, label = options["out_of_core"], options["label"]
    if is_distributed(options["catalog"], options["scheduler"]):
        place = Place.CLUSTER
        if asked is False:
            raise CatalogError(
                "--in-memory: folders, HATS catalogues and --scheduler are work for a cluster; "
                "leave it out, or give one file without --scheduler"
            )
    elif asked is None:
        place = Place.DISK if not label and _has_many_rows(options["catalog"]) else Place.MEMORY
    else:
        place = Place.DISK if asked else Place.MEMORY
    if options["resume"] and place is Place.MEMORY:
        raise CatalogError(
            "--resume: a table in memory is learned in one go; leave it out, or add --out-of-core"
        )
    if label and place is not Place.MEMORY:
        raise CatalogError(
            "--label: trees are grown in memory; write the labelled rows, and as many others as "
            "fit, to one file and train on that, without --out-of-core and --scheduler"
        )
    return place


def _has_many_rows(catalog: Path) -> bool:
    from skyfill.scale import count_rows

    # A pipe can be read once only.
    return catalog.is_file() and (count_rows(catalog) or 0) > MANY_ROWS


# Options that decide what is learned.
CHOICES = ("components", "arcs", "gaps", "limits", "errors", "fits")


@contextmanager
def kept_steps(
    place: Place, names: Sequence[str], options: Mapping[str, Any], made: dict[str, Any]
) -> Iterator[Steps | None]:
    """Keep what is learned until the model is written; of a table in memory nothing is kept."""
    if place is Place.MEMORY:
        yield None
        return
    from skyfill.scale.dispatch import table_files
    from skyfill.scale.partitions import plan_parts
    from skyfill.scale.steps import open_steps
    from skyfill.scale.stream import versions

    parts = plan_parts(table_files(options["catalog"]))
    stats = {part.path: Path(part.path).stat() for part in parts}
    job = {
        "features": list(names),
        "inputs": [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats.items()],
        "options": {name: str(options[name]) for name in CHOICES},
        "schema": repr(options["rules"]),
        "seed": options["seed"],
        "place": place.value,
        "made_with": versions(),
    }
    with open_steps(options["output"], job, provenance=made, resume=options["resume"]) as steps:
        yield steps


def learn_large(
    place: Place,
    table: Table,
    names: Sequence[str],
    *,
    rules: Schema,
    options: Mapping[str, Any],
    **how: Any,
) -> tuple[Model, dict[str, Any], str]:
    """Learn a model of all rows; give it with facts and words about it.

    Parameters
    ----------
    place : Place
        On disk or on a cluster.
    table : Table
        The columns of the catalogue, without rows.
    names : sequence of str
        The features.
    rules : Schema
        Roles, units and sentinels to apply first.
    options : mapping
        Those of the command.
    how
        `tell`, and what `skyfill.model.train` takes.
    """
    from skyfill.classify.training_set import check_features
    from skyfill.model.training import describe_features

    # Before anything is read: it may take long.
    check_features(table, names, how["force"])
    table.numbers(*names)
    found = _LEARN[place](names, rules, options, keep=options["steps"].keep, **how)
    # The files of a HATS catalogue do not know the units; the catalogue does.
    model = replace(found.model, features=describe_features(table, names))
    facts = {
        "plan": found.plan._asdict(),
        "rows": found.n_rows,
        "steps": found.n_iter,
        "converged": found.converged,
    }
    if not found.converged:
        warn(f"EM had not settled after {found.n_iter} steps")
    fits = len(model.network.fits)
    words = f"{fits} fits of about {found.plan.n_components} components to all rows"
    return model, facts, words


def _from_disk(names: Sequence[str], rules: Schema, options: Mapping[str, Any], **how: Any) -> Any:
    from skyfill.scale import train_file
    from skyfill.scale.journal import parts_folder

    # Beside the model: where temporary files go there is often little room, or it is memory. What
    # a kill leaves there goes when the work is taken up again.
    folder = parts_folder(options["output"])
    return train_file(options["catalog"], names, rules=rules, folder=folder, **how)


def _on_cluster(names: Sequence[str], rules: Schema, options: Mapping[str, Any], **how: Any) -> Any:
    from skyfill.scale.cluster_train import train_on_dask
    from skyfill.scale.dispatch import table_files

    files = table_files(options["catalog"])
    return train_on_dask(files, names, scheduler=options["scheduler"], schema=rules, **how)


_LEARN: dict[Place, Callable[..., Any]] = {Place.DISK: _from_disk, Place.CLUSTER: _on_cluster}
