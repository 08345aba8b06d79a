"""What is done to a batch, and what every worker must know to do it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from skyfill.catalog import Provenance, Schema, Table
from skyfill.errors import ModelError
from skyfill.model import (
    Extras,
    Model,
    Scoring,
    classify_table,
    fill_table,
    load_model,
    scorer_of,
)


class Work(Protocol):
    """What is done to a batch: rows stay in their order. `place` numbers the batches of a file."""

    def __call__(self, model: Model, table: Table, place: int) -> Table:
        """Score the rows of a batch."""


@dataclass(frozen=True)
class Filling:
    """Fill the gaps of a batch; draws follow from the seed and the place of the batch.

    Examples
    --------
    >>> Filling(Extras(quantiles=(0.5,))).extras.n_draws
    0
    """

    extras: Extras = field(default_factory=Extras)

    def __call__(self, model: Model, table: Table, place: int) -> Table:
        """Fill a batch as `fill_table` does."""
        extras = self.extras
        return fill_table(model, table, replace(extras, seed=extras.seed + place))


@dataclass(frozen=True)
class Classifying:
    """Classify a batch; draws follow from the seed and the place of the batch.

    Parameters
    ----------
    scoring : Scoring, optional
        Of `classify_table`.
    prior : tuple of float, optional
        Shares of the classes in the catalogue, in the order of the model's classes.

    Examples
    --------
    >>> Classifying(prior=(0.9, 0.1)).prior
    (0.9, 0.1)
    """

    scoring: Scoring | None = None
    prior: tuple[float, ...] | None = None

    def __call__(self, model: Model, table: Table, place: int) -> Table:
        """Classify a batch as `classify_table` does."""
        scoring = self.scoring or Scoring()
        if self.prior is not None:
            scorer = replace(scorer_of(model), prior=np.array(self.prior))
            model = replace(model, scorer=scorer)
        return classify_table(model, table, replace(scoring, seed=scoring.seed + place))


@dataclass(frozen=True)
class Job:
    """What every worker must know.

    Parameters
    ----------
    model : str
        Path of the model file, by a name that every worker can open.
    work : Work
        What is done to each batch.
    rules : Schema
        Roles, units and sentinels to apply first.
    provenance : Provenance, optional
        Written into every file.
    identifier : str
        Of the model; a worker that finds another model under `model` refuses to work.
    """

    model: str
    work: Work
    rules: Schema = field(default_factory=Schema)
    provenance: Provenance | None = None
    identifier: str = ""

    @classmethod
    def of(cls, model: str | Path, work: Work, **options: Any) -> Job:
        """Describe a job; the model is loaded once, for its identifier."""
        path = str(Path(model).resolve())
        return cls(path, work, identifier=load_model(path).identifier, **options)

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Columns of the result for given columns of the input."""
        empty = self.rules.apply(Table(columns.empty_table()))
        return self.work(worker_model(self.model, self.identifier), empty, 0).arrow.schema


_LOADING = Lock()


def worker_model(path: str, identifier: str) -> Model:
    """Give a model that this process loads only once, however many parts it works on."""
    with _LOADING:
        return _load(path, identifier)


@lru_cache(maxsize=2)
def _load(path: str, identifier: str) -> Model:
    model = load_model(path)
    if identifier and model.identifier != identifier:
        raise ModelError(
            f"{path}: this worker finds model {model.identifier}, not {identifier}; give every "
            "worker the same file"
        )
    return model
