"""A fitted pipeline, and what of it goes into a file: facts and arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Schema
from skyfill.classify.scorer import Scorer
from skyfill.errors import CatalogError
from skyfill.impute.refined_network import RefinedNetwork, refined
from skyfill.impute.refinement import Refinement
from skyfill.model_archive import BEYOND, QUALITY, identify
from skyfill.network import MixtureNetwork
from skyfill.network.mixture.margin import BY_SEGMENTS, Constant, Identity, Logarithm, Margin

# Files of format 2 hold a scorer, of format 3 limits or errors, of format 4 what was declared about
# the training table or hashes of its rows, of format 5 forests that correct the mixtures, of format
# 6 a mixture of the classes or the ranges of what was learned from; a model without these keeps the
# older format. Since format 7 maps can be logarithms, and moments are taken segment by segment.
# Files of format 8 hold values that were found to mean gaps.
PLAIN_FORMAT, SCORER_FORMAT, LIMIT_FORMAT, DECLARED_FORMAT, REFINED_FORMAT = range(1, 6)
RANGES_FORMAT, SEGMENTS_FORMAT, FORMAT = range(6, 9)
SIDES = ("lower", "upper")
# Names of a scorer's arrays, and of its trees, start with these.
SCORER, TREES = "scorer.", "scorer.forests."
# The same of what corrects the mixtures.
REFINEMENT = "refinement."
# The same of the ranges of what columns were learned from.
SUPPORT, RANGES = "support.", ("low", "high", "related", "ends", "doubt")
MARGINS: dict[str, type[Margin]] = {
    "ranks": Margin,
    "constant": Constant,
    "linear": Identity,
    "logarithmic": Logarithm,
}
# Name of the hashes of the labelled rows.
TRAINED_ON = "trained_on"
# Arrays of the network that hold levels of its posteriors.
LEVELS = ("calibration", "within_limits")
# What files of earlier versions do not say about moments; see `Margin`.
EXACT = "exact"
_KINDS = {kind: name for name, kind in MARGINS.items()}


@dataclass(frozen=True)
class Feature:
    """A column that the model knows, as its training table described it."""

    name: str
    unit: str | None = None
    ucd: str | None = None
    description: str | None = None


class CellCounts(NamedTuple):
    """How many cells of a column of the training table were what.

    `noisy` cells are those of the `seen` ones that came with an error.
    """

    seen: int = 0
    noisy: int = 0
    limited: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class Detection:
    """How a feature is detected: what its gaps and errors say.

    Parameters
    ----------
    side : {"lower", "upper"}, optional
        A value that was not detected is larger than its limit ("lower", as a magnitude), or
        smaller ("upper", as a flux). None: gaps say nothing.
    depth : float, optional
        Limit of undetected and unmatched sources that have none of their own.
    width : float
        Over which the chance of a detection falls at the limit; 0 is a sharp edge.
    errors : bool
        Whether errors of seen values are used.
    counts : CellCounts
        Of the training table.
    """

    side: str | None = None
    depth: float | None = None
    width: float = 0.0
    errors: bool = False
    counts: CellCounts = CellCounts()


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
    detections : tuple of Detection
        What gaps and errors of the features say; empty where limits and errors are not used.
    declared : Schema
        What the user declared about the features, their errors and limits in the training table. It
        holds for every table that the model is used on, as far as that does not say otherwise.
    trained_on : array of uint64, optional
        Hashes of the labelled rows (`known_rows`), in increasing order.
    refinement : Refinement, optional
        Forests that correct what the mixtures say of gaps.
    found : mapping
        Values of features and of their errors that were found to mean gaps (`find_sentinels`).
    quality : mapping
        How good it is, as its training showed; see `skyfill.model.quality`.
    """

    features: tuple[Feature, ...]
    network: MixtureNetwork
    provenance: Mapping[str, Any]
    scorer: Scorer | None = None
    detections: tuple[Detection, ...] = ()
    declared: Schema = Schema()
    trained_on: NDArray[np.uint64] | None = None
    refinement: Refinement | None = None
    found: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    quality: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def filler(self) -> MixtureNetwork | RefinedNetwork:
        """What fills gaps: the network, corrected by forests where the model has some."""
        return refined(self.network, self.refinement)

    @cached_property
    def identifier(self) -> str:
        """Hash of all that the model computes with; it travels into every output."""
        return identify(facts_of(self), arrays_of(self))

    @property
    def earlier_identifier(self) -> str:
        """What earlier versions wrote as identifier: without kinds of margins and shapes."""
        facts, arrays, digest = facts_of(self), arrays_of(self), hashlib.sha256()
        for key in ("features", "fits", "scorer", "detections", "declared"):
            if key in facts:
                digest.update(json.dumps(facts[key], sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].tobytes())
        return digest.hexdigest()[:16]


def absent_features(
    features: Sequence[Feature], columns: Collection[str], place: object
) -> list[str]:
    """List the features that a table lacks; CatalogError, which names its place, if it lacks all.

    Examples
    --------
    >>> absent_features([Feature("V"), Feature("J")], ["id", "V"], "field.fits")
    ['J']
    """
    absent = [feature.name for feature in features if feature.name not in columns]
    if len(absent) == len(features):
        raise CatalogError(
            f"{place}: has none of the model's features ({', '.join(absent)}); rename its columns "
            "or use another model"
        )
    return absent


def facts_of(model: Model) -> dict[str, Any]:
    """Return everything in a model that is not an array."""
    network = model.network
    facts = {
        "format": _format(model),
        "features": [asdict(feature) for feature in model.features],
        "margins": [_KINDS[type(margin)] for margin in network.margins],
        "fits": [{"parents": fit.parents} for fit in network.fits],
        "provenance": dict(model.provenance),
    }
    if model.scorer is not None:
        facts["scorer"] = model.scorer.facts()
    if model.detections:
        each = ({**asdict(d), "counts": d.counts._asdict()} for d in model.detections)
        facts["detections"] = list(each)
    if model.declared.rules:
        facts["declared"] = model.declared.to_dict()
    if model.found:
        facts["found"] = {name: list(values) for name, values in model.found.items()}
    if model.quality:
        facts[QUALITY] = dict(model.quality)
    if network.strength is not None:
        facts["strength"] = network.strength.tolist()
    if network.support is not None and network.support.beyond is not None:
        shares = network.support.beyond.tolist()
        facts[BEYOND] = {"shares": shares, "is_shared": network.support.is_shared}
    if not network.tabulated and _format(model) < REFINED_FORMAT:  # since then all moments are
        facts["moments"] = EXACT
    return facts


def _format(model: Model) -> int:
    has_mixture = model.scorer is not None and model.scorer.mixture is not None
    if all(margin.moments == BY_SEGMENTS for margin in model.network.margins):
        return FORMAT if model.found else SEGMENTS_FORMAT
    if has_mixture or model.network.support is not None:
        return RANGES_FORMAT
    if model.refinement is not None:
        return REFINED_FORMAT
    has_profiles = model.scorer is not None and model.scorer.profiles is not None
    if model.declared.rules or model.trained_on is not None or has_profiles:
        return DECLARED_FORMAT
    if model.detections or model.network.within_limits is not None:
        return LIMIT_FORMAT
    return PLAIN_FORMAT if model.scorer is None else SCORER_FORMAT


def arrays_of(model: Model) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model by name."""
    network = model.network
    arrays: dict[str, Any] = {name: getattr(network, name) for name in LEVELS}
    if network.by_spread is not None:
        arrays |= {f"by_spread.{k}": a for k, a in network.by_spread._asdict().items()}
    if network.support is not None:
        facts = network.support._asdict()
        arrays |= {SUPPORT + k: np.atleast_1d(np.asarray(facts[k])) for k in RANGES}
    for j, margin in enumerate(network.margins):
        arrays |= {f"margins.{j}.x": margin.x, f"margins.{j}.z": margin.z}
    for f, fit in enumerate(network.fits):
        for name in ("weights", "means", "covs", "gap_rates"):
            arrays[f"fits.{f}.{name}"] = getattr(fit, name)
    if model.scorer is not None:
        arrays |= {SCORER + name: array for name, array in model.scorer.arrays().items()}
    if model.refinement is not None:
        arrays |= {REFINEMENT + name: array for name, array in model.refinement.arrays().items()}
    arrays[TRAINED_ON] = model.trained_on
    return {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
