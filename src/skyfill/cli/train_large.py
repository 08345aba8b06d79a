"""`skyfill train` on tables that do not fit into memory: from disk, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli.terminal import warn
from skyfill.cli.train_network import words_of_network
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.model import Model, Refined
    from skyfill.scale import Source

# Above this number of rows, a model is learned out of core by default.
MANY_ROWS = 2_000_000
# Options that other facts of a job stand for: the features, and what is declared about columns.
RESOLVED = ("--features", "--schema", "--declare", "--role", "--text", "--delimiter", "--names",
            "--no-header")  # fmt: skip

out_of_core = click.option(
    "--out-of-core/--in-memory",
    default=None,
    help="Read the rows again for each step of the fit, or hold them all.  [default: out of core "
    f"for a Parquet or FITS file of more than {MANY_ROWS:,} rows]",
)


resume = click.option(
    "--resume",
    is_flag=True,
    help="Out of core or on a cluster: go on where a run that was killed or interrupted stopped.",
)


class Place(Enum):
    """Where the rows are while a model is being learned."""

    MEMORY = "memory"
    DISK = "disk"
    CLUSTER = "cluster"


def choose_place(options: Mapping[str, Any]) -> Place:
    """Choose where the rows are held; refuse options that contradict each other."""
    from skyfill.scale import TableSource
    from skyfill.scale.hats import is_hats

    catalog, asked = options["catalog"], options["out_of_core"]
    if isinstance(catalog, TableSource):
        place = Place.MEMORY
    elif options["scheduler"] is not None or is_hats(catalog) or Path(catalog).is_dir():
        place = Place.CLUSTER
        if asked is False:
            raise CatalogError(
                "--in-memory: folders, HATS catalogues and --scheduler are work for a cluster; "
                "leave it out, or give one file without --scheduler"
            )
    elif asked is None:
        place = Place.DISK if _has_many_rows(catalog) else Place.MEMORY
    else:
        place = Place.DISK if asked else Place.MEMORY
    if options["resume"] and place is Place.MEMORY:
        raise CatalogError(
            "--resume: a table in memory is learned in one go; leave it out, or add --out-of-core"
        )
    if options["field"] and place is not Place.MEMORY:
        raise CatalogError(
            "--field: works with a table in memory; classify with --prior estimate instead"
        )
    return place


def _has_many_rows(catalog: Path) -> bool:
    from skyfill.scale.inputs import count_rows

    # A pipe can be read only once.
    return catalog.is_file() and (count_rows(catalog) or 0) > MANY_ROWS


def learn_large(
    source: Source,
    table: Table,
    names: Sequence[str],
    options: Mapping[str, Any],
    *,
    grow: Callable[[Refined], tuple[Model, dict[str, Any], str]] | None = None,
    **how: Any,
) -> tuple[Model, dict[str, Any], str]:
    """Learn a model from all rows and write it; return it with facts and a summary.

    Parameters
    ----------
    source : Source
    table : Table
        Its columns, without rows.
    names : sequence of str
        The features.
    options : mapping
        Those of the command, with `place`, `rules`, `typed` (from `typed_options`) and `report`,
        which is called with a short description of each stage.
    grow : callable, optional
        Lets the model classify; returns it with facts and a summary.
    how
        Options of `skyfill.model.train`.
    """
    from skyfill.catalog.file_io import checked_target
    from skyfill.classify.training_set import check_features
    from skyfill.model import save_model
    from skyfill.model.training import describe_features
    from skyfill.scale import Steps
    from skyfill.scale.job_folder import open_job

    # Before anything is read, which may take long.
    check_features(table, names, how["force"])
    table.numbers(*names)
    output, facts = checked_target(options["output"]), _job_facts(source, names, options)
    made = how.pop("provenance")
    with open_job(output, facts, provenance=made, resume=options["resume"]) as folder:
        how |= {"provenance": folder.provenance, "rules": options["rules"]}
        how |= {"steps": Steps(options["report"], folder.parts)}
        found = _LEARN[options["place"]](source, names, options, folder.path, **how)
        # Units are in the metadata of a HATS catalogue, not in its files.
        model = replace(found.model, features=describe_features(table, names))
        more: dict[str, Any] = {}
        classes = ""
        if grow is not None:
            options["report"]("trees on the labelled rows")
            model, more, classes = grow(replace(found, model=model))
        save_model(model, output)
    if not found.converged:
        warn(
            f"the fit still moved after {found.n_iter} steps: the model can be used, but what it "
            "fills where little was measured depends on where it stopped; another seed shows how "
            "much"
        )
    learned = {"rows": found.n_rows, "steps": found.n_iter, "converged": found.converged}
    words = f"{words_of_network(model, found.plan)} to all rows"
    words = f"{classes}, {words}" if classes else words
    return model, {"plan": found.plan._asdict(), **learned, **more}, words


def _job_facts(source: Source, names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    from skyfill.scale.job_folder import identify

    return {
        "features": list(names),
        "inputs": identify(source.files),
        "schema": repr(options["rules"]),
        "place": options["place"].value,
        **{name: text for name, text in options["typed"].items() if name not in RESOLVED},
    }


def _from_disk(
    source: Source, names: Sequence[str], options: Mapping[str, Any], folder: Path, **how: Any
) -> Refined:
    from skyfill.scale import train_file

    # Next to the model: the folder for temporary files is often small, or in memory.
    return train_file(source.files[0], names, folder=folder, **how)


def _on_cluster(
    source: Source, names: Sequence[str], options: Mapping[str, Any], folder: Path, **how: Any
) -> Refined:
    from skyfill.scale.train_dask import train_on_dask

    return train_on_dask(source.files, names, scheduler=options["scheduler"], **how)


_LEARN = {Place.DISK: _from_disk, Place.CLUSTER: _on_cluster}
