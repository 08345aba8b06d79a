"""A fitted pipeline, and what of it goes into a file: facts and arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.scorer import Scorer
from skyfill.network import MixtureNetwork
from skyfill.network.mixture.margin import Constant, Identity, Margin

# Files of format 2 hold a scorer; without one the format stays 1, which older versions read.
FORMAT, PLAIN_FORMAT = 2, 1
# Names of a scorer's arrays, and of its trees, start with these.
SCORER, TREES = "scorer.", "scorer.forests."
MARGINS: dict[str, type[Margin]] = {"ranks": Margin, "constant": Constant, "linear": Identity}
_KINDS = {kind: name for name, kind in MARGINS.items()}


@dataclass(frozen=True)
class Feature:
    """A column that the model knows, as its training table described it."""

    name: str
    unit: str | None = None
    ucd: str | None = None
    description: str | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted imputer with the schema of its features and where it comes from.

    Parameters
    ----------
    features : tuple of Feature
        The columns, in the order of the network.
    network : MixtureNetwork
        The fitted mixtures.
    provenance : mapping
        How it was made (`Provenance.to_json`, as an object).
    scorer : Scorer, optional
        What classifies rows, where the model was trained with labels.
    """

    features: tuple[Feature, ...]
    network: MixtureNetwork
    provenance: Mapping[str, Any]
    scorer: Scorer | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def identifier(self) -> str:
        """Hash of what the model computes with; it travels into every output."""
        facts, arrays = facts_of(self), arrays_of(self)
        digest = hashlib.sha256(json.dumps(facts["features"], sort_keys=True).encode())
        digest.update(json.dumps(facts["fits"], sort_keys=True).encode())
        if self.scorer is not None:
            digest.update(json.dumps(facts["scorer"], sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].tobytes())
        return digest.hexdigest()[:16]


def facts_of(model: Model) -> dict[str, Any]:
    """Give what of a model is no array."""
    network = model.network
    return {
        "format": PLAIN_FORMAT if model.scorer is None else FORMAT,
        "features": [asdict(feature) for feature in model.features],
        "margins": [_KINDS[type(margin)] for margin in network.margins],
        "fits": [{"parents": fit.parents} for fit in network.fits],
        "provenance": dict(model.provenance),
    } | ({} if model.scorer is None else {"scorer": model.scorer.facts()})


def arrays_of(model: Model) -> dict[str, NDArray[Any]]:
    """Give the arrays of a model by name."""
    arrays: dict[str, Any] = {"calibration": model.network.calibration}
    if model.network.by_spread is not None:
        arrays |= {f"by_spread.{k}": a for k, a in model.network.by_spread._asdict().items()}
    for j, margin in enumerate(model.network.margins):
        arrays |= {f"margins.{j}.x": margin.x, f"margins.{j}.z": margin.z}
    for f, fit in enumerate(model.network.fits):
        for name in ("weights", "means", "covs", "gap_rates"):
            arrays[f"fits.{f}.{name}"] = getattr(fit, name)
    if model.scorer is not None:
        arrays |= {SCORER + name: array for name, array in model.scorer.arrays().items()}
    return {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
