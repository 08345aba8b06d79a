"""Python's own door: what the commands train, classify and impute do, with tables in memory.

The options are those of the commands, with their names, defaults and checks.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from skyfill import model as models
from skyfill.catalog.frames import as_given, as_table
from skyfill.catalog.table import nearest
from skyfill.cli import classify as classifying
from skyfill.cli import impute as imputing
from skyfill.cli import train as training
from skyfill.cli.main import with_file
from skyfill.cli.options import CATALOG
from skyfill.cli.terminal import QUIET, set_level, tell_with, visible
from skyfill.device import chosen_device
from skyfill.errors import CatalogError, DataError, SkyfillWarning
from skyfill.scale import TableSource
from skyfill.scale.hats import is_hats

# Options that Python has no use for, and what takes their place.
_NOT_HERE = {
    "output": "the result is returned",
    "json": "the result is returned",
    "resume": "nothing is kept of an interrupted call",
}
# Options of files.
_OF_FILES = ("scheduler", "out_of_core", "delimiter", "names", "no_header", "text")


def train(table: Any, label: str | None = None, **options: Any) -> Model:
    """Learn a model of a table with gaps, as ``skyfill train`` does.

    Parameters
    ----------
    table : path or table
        A file or folder that ``skyfill train`` reads, a frame of pandas or polars, or a table of
        pyarrow, astropy or skyfill. It is not changed. Of frames the index is no column; their
        roles and units can be declared (`role`, `declare`, `schema`).
    label : str, optional
        Column of the classes: the model can then classify.
    **options
        Those of ``skyfill train`` by their long names, with ``_`` for ``-``: numbers, words, True
        for a flag, a list where several words have commas between them or an option may be
        repeated, and a dict for CLASS=SHARE and the like. None is the default. `field` may be a
        table as well.

    Returns
    -------
    Model
        The same, bit for bit, as from a file with the same cells.

    Warns
    -----
    SkyfillWarning
        For each line that the command would print as guessed, declared, converted or a warning.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 200)
    >>> stars = pd.DataFrame({"V": V, "I": V - np.where(V > 18, 0.4, 0.9)})
    >>> stars["type"] = np.where(V > 18, "RRL", "LPV")
    >>> stars.loc[::5, "I"] = np.nan
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = train(stars, label="type", features=["V", "I"], quick=True)
    ...     found = model.classify(stars.iloc[:3])
    >>> model.names, found.index.tolist()
    (('V', 'I'), [0, 1, 2])
    """
    if not _is_path(table):
        source = TableSource.of(as_table(table))
        with _call(training.command, {"catalog": source}, {"label": label, **options}) as call:
            return Model.of(training.learn(*call).model)
    # A large catalogue is learned from by way of files beside the model.
    with (
        TemporaryDirectory() as folder,
        _call(training.command, {"catalog": fspath(table)}, {"label": label, **options}) as call,
    ):
        call[1]["output"] = Path(folder) / "model.skyfill"
        return Model.of(training.learn(*call).model)


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model; ModelError where the file is not one, is damaged, or is of a later version."""
    return Model.of(models.load_model(Path(path)))


class Model(models.Model):
    """A fitted model that is used on tables of any kind; see `train` and `load_model`."""

    def __repr__(self) -> str:
        classes = f", classes {', '.join(self.scorer.classes)}" if self.scorer else ""
        return f"<skyfill model {self.identifier}: {', '.join(self.names)}{classes}>"

    @classmethod
    def of(cls, model: models.Model) -> Model:
        """Let a model be used on tables of any kind."""
        return cls(**{each.name: getattr(model, each.name) for each in fields(models.Model)})

    def classify(self, table: Any, **options: Any) -> Any:
        """Add classes, their probabilities and what they rest on, as ``skyfill classify`` does.

        Parameters
        ----------
        table : path or table
            As in `train`; a folder counts as one table, a HATS catalogue is refused.
        **options
            Those of ``skyfill classify``, as in `train`.

        Returns
        -------
        table
            Of the kind that was given, with its index, units and masks; of a path, a
            `skyfill.catalog.Table`.
        """
        return self._apply(classifying.command, classifying.classify, table, options)

    def impute(self, table: Any, **options: Any) -> Any:
        """Fill the gaps of a table, as ``skyfill impute`` does; see `classify`.

        Cells that hold values stay bit for bit as they are.
        """
        return self._apply(imputing.command, imputing.impute, table, options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model, for `load_model` and all commands."""
        models.save_model(self, Path(path))

    def _apply(self, command: click.Command, work: Any, table: Any, options: Any) -> Any:
        source = None if _is_path(table) else TableSource.of(as_table(table))
        if source is None and is_hats(fspath(table)):
            raise CatalogError(
                f"{table}: a HATS catalogue is not read into memory; skyfill {command.name} "
                "writes another"
            )
        if options.get("scheduler") is not None:
            raise TypeError(
                f"scheduler: has no effect in Python, since the table is read into memory; see "
                f"skyfill {command.name}"
            )
        places = {"model": self, "catalog": fspath(table) if source is None else source}
        with _call(command, places, options) as call:
            found = work(*call).table
        return found if source is None else as_given(found, source.rows, table)


def _is_path(table: Any) -> bool:
    return isinstance(table, str | PathLike)


Call = tuple[click.Context, dict[str, Any]]


@contextmanager
def _call(
    command: click.Command, places: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[Call]:
    """Give what a command gets that is typed with these options; `places` are its arguments.

    What it says becomes warnings, and what it complains of errors of this package.
    """
    known = {_keyword(each): each for each in command.params if isinstance(each, click.Option)}
    for name in options:
        if name not in known:
            raise TypeError(f"no option {name!r}; {nearest(name, known, 'options')}")
        if name in _NOT_HERE and options[name] is not None:
            raise TypeError(f"{name}: has no effect in Python, since {_NOT_HERE[name]}")
        if name in _OF_FILES and options[name] and isinstance(places["catalog"], TableSource):
            raise TypeError(f"{name}: is for files, not for tables in memory")
    chosen = {"device": chosen_device()} | {k: v for k, v in options.items() if v is not None}
    tables = {name: TableSource.of(as_table(value), name) for name, value in chosen.items()
              if known[name].type is CATALOG and not _is_path(value)}  # fmt: skip
    chosen |= {name: str(source) for name, source in tables.items()}
    words = [word for name, value in chosen.items() for word in _words(known[name], value)]
    typed = [str(place) if isinstance(place, str | TableSource) else name
             for name, place in places.items()]  # fmt: skip
    held = tables | {name: place for name, place in places.items() if not isinstance(place, str)}
    words = ["--output=-", *words, "--", *typed]
    try:
        with command.make_context(f"skyfill {command.name}", words) as context:
            set_level(context, QUIET)
            tell_with(context, _tell)
            context.params.pop("output")  # of which the record of how it was made says nothing
            yield context, context.params | held | {"output": None}
    except click.ClickException as error:
        raise CatalogError(error.format_message()) from None
    except (CatalogError, DataError) as error:
        message = str(error) if "catalog" in held else with_file(str(error), context.params)
        raise type(error)(message) from error


def _keyword(option: click.Option) -> str:
    return option.opts[-1].lstrip("-").replace("-", "_")


def _words(option: click.Option, value: Any) -> list[str]:
    """Write the value of an option as it would be typed."""
    name = option.opts[-1]
    if isinstance(value, Mapping):
        value = [f"{key}={each}" for key, each in value.items()]
    if option.is_flag:
        names = option.opts if value else option.secondary_opts
        return names[-1:]
    if isinstance(value, str | PathLike) or not hasattr(value, "__iter__"):
        value = [value]
    texts = [fspath(each) if isinstance(each, PathLike) else str(each) for each in value]
    return [f"{name}={text}" for text in (texts if option.multiple else [",".join(texts)])]


def _tell(line: str) -> None:
    """Warn at the place of the caller outside of this package."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(visible(line), SkyfillWarning, stacklevel=depth)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("skyfill", "click", "contextlib")
