"""A model from the contents of its file; anything inconsistent is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Schema
from skyfill.classify.class_mixture import MIXTURE
from skyfill.classify.scorer import Scorer
from skyfill.errors import ModelError
from skyfill.impute.refinement import Refinement
from skyfill.limits import check_limit
from skyfill.model.pipeline import (
    EXACT,
    LEVELS,
    MARGINS,
    PLAIN_FORMAT,
    RANGES,
    REFINED_FORMAT,
    REFINEMENT,
    SCORER,
    SCORER_FORMAT,
    SEGMENTS_FORMAT,
    SIDES,
    SUPPORT,
    TRAINED_ON,
    CellCounts,
    Detection,
    Feature,
    Model,
)
from skyfill.model.quality import check_quality
from skyfill.model_archive import BEYOND, QUALITY
from skyfill.network import MixtureNetwork
from skyfill.network.mixture.checks import MAX_SCORE, check_mixture
from skyfill.network.mixture.margin import BY_CELLS, BY_SEGMENTS, BY_TABLE, Constant, Margin
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.network import BySpread
from skyfill.network.mixture.support import MOST_DOUBT, Support
from skyfill.network.single.graph import as_parents

# Bounds that no learned model comes near, so that nothing overflows when it is used.
MAX_VALUE, LEAST_WIDTH = 1e150, 1e-150
MAX_LEVELS = 4096


def rebuild(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Model:
    """Build a model from its facts and arrays."""
    json.dumps(facts, ensure_ascii=False).encode()  # raises where a text is not valid Unicode
    for name in ("features", "fits"):
        check_limit(name, len(facts[name]), f"{len(facts[name])} {name}", ModelError)
    features = tuple(_feature(feature) for feature in facts["features"])
    if not isinstance(facts["provenance"], dict):
        raise ValueError("the provenance must be an object")
    names = tuple(feature.name for feature in features)
    way = BY_SEGMENTS if facts["format"] >= SEGMENTS_FORMAT else BY_CELLS
    if facts["format"] < REFINED_FORMAT and facts.get("moments") != EXACT:
        way = BY_TABLE
    margins = tuple(
        _margin(MARGINS[kind], arrays[f"margins.{j}.x"], arrays[f"margins.{j}.z"], way)
        for j, kind in enumerate(facts["margins"])
    )
    fits = tuple(
        _fit(arrays, f, len(names), fit["parents"], names) for f, fit in enumerate(facts["fits"])
    )
    calibration, within = (arrays.get(name) for name in LEVELS)
    if len(margins) != len(names) or not fits or len(set(names)) != len(names):
        raise ValueError("features, margins and fits do not belong together")
    if len({fit.gap_rates is None for fit in fits}) > 1:
        raise ValueError("gaps must be informative in all fits or in none")
    for levels in (calibration, within):
        if levels is not None:
            _check_levels(levels, len(names))
    by_spread = _by_spread(arrays, calibration)
    strength = _strength(facts.get("strength"), len(names))
    support = _support(arrays, facts.get(BEYOND), len(names))
    network = MixtureNetwork(
        names, margins, fits, calibration, by_spread, within, strength, support
    )
    detections = tuple(_detection(each) for each in facts.get("detections", ()))
    if detections and len(detections) != len(names):
        raise ValueError("features and detections do not belong together")
    scorer = _scorer(facts, arrays, network)
    declared = Schema.from_dict(facts.get("declared", {}))
    hashes = _hashes(arrays.get(TRAINED_ON))
    corrected, found = _refinement(arrays, len(names), calibration), _found(facts.get("found", {}))
    quality = check_quality(facts.get(QUALITY, {}))
    more = (scorer, detections, declared, hashes, corrected, found, quality)
    return Model(features, network, facts["provenance"], *more)


def _found(facts: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    values = [value for each in facts.values() for value in each]
    if not all(type(x) in (int, float) and abs(x) <= MAX_VALUE for x in values):
        raise ValueError("values that mean gaps must be finite numbers")
    return {name: tuple(each) for name, each in facts.items()}


def _refinement(
    arrays: Mapping[str, NDArray[Any]], p: int, calibration: NDArray[np.float64] | None
) -> Refinement | None:
    mine = {k.removeprefix(REFINEMENT): a for k, a in arrays.items() if k.startswith(REFINEMENT)}
    if not mine:
        return None
    found = Refinement.from_arrays(mine, p)
    _check_levels(found.levels, len(found.columns))
    if calibration is not None and found.levels.shape[1:] != calibration.shape[1:]:
        raise ValueError("the levels of the refined columns do not belong to the calibration")
    if max(np.abs(found.center).max(), found.unit.max()) > MAX_VALUE:
        raise ValueError(f"values of refined columns beyond {MAX_VALUE:g}")
    return found


def _support(
    arrays: Mapping[str, NDArray[Any]], beyond: Mapping[str, Any] | None, p: int
) -> Support | None:
    if SUPPORT + "low" not in arrays:
        return None
    found = {name: arrays[SUPPORT + name] for name in RANGES}
    shapes = {"doubt": (1,), "ends": (2, p)}
    for name, array in found.items():
        if array.dtype != np.float64 or array.shape != shapes.get(name, (p, p)):
            raise ValueError(f"array {name!r} of the ranges has the wrong type or shape")
    low, high, related, ends, doubt = found.values()
    if not (low <= high).all() or not (ends[0] <= ends[1]).all():
        raise ValueError("ranges of what was learned from must not end before they begin")
    if np.abs(ends).max() > MAX_VALUE:
        raise ValueError(f"values beyond {MAX_VALUE:g}")
    if not ((related >= 0) & (related <= 1)).all() or not 0 <= doubt[0] <= MOST_DOUBT:
        raise ValueError("relations of columns must be shares, and doubts must be small")
    support = Support(low, high, related, ends, float(doubt[0]))
    return support if beyond is None else support._replace(**_beyond(beyond, p))


def _beyond(facts: Mapping[str, Any], p: int) -> dict[str, Any]:
    shares = np.array(facts["shares"], dtype=np.float64)
    if shares.shape != (p,) or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("gaps beyond what was measured must be shares, one for each feature")
    return {"beyond": shares, "is_shared": bool(facts["is_shared"])}


def _hashes(found: NDArray[Any] | None) -> NDArray[np.uint64] | None:
    if found is None:
        return None
    if found.dtype != np.uint64 or found.ndim != 1 or not (found[1:] > found[:-1]).all():
        raise ValueError("the hashes of the training set must be whole numbers that rise")
    return found


def _detection(facts: Mapping[str, Any]) -> Detection:
    counts = CellCounts(**facts["counts"])
    found = Detection(**{**facts, "counts": counts})
    depth = 0.0 if found.depth is None else found.depth
    numbers = (depth, found.width, *counts)
    if not all(isinstance(x, int | float) and abs(x) <= MAX_VALUE for x in numbers):
        raise ValueError("depths, widths and counts of cells must be finite numbers")
    if found.side not in (None, *SIDES) or not isinstance(found.errors, bool):
        raise ValueError(f"no side {found.side!r}; limits are {' or '.join(SIDES)}")
    if min(found.width, *counts) < 0:
        raise ValueError("widths and counts of cells must not be negative")
    return found


def _feature(facts: Mapping[str, Any]) -> Feature:
    feature = Feature(**facts)
    texts = (feature.unit, feature.ucd, feature.description)
    if not isinstance(feature.name, str) or not feature.name:
        raise ValueError("a feature must have a name")
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError(f"feature {feature.name!r}: unit, UCD and description must be texts")
    return feature


def _check_levels(levels: NDArray[np.float64], p: int) -> None:
    if levels.ndim != 2 or len(levels) != p or not 2 <= levels.shape[1] <= MAX_LEVELS:
        raise ValueError("the calibration has the wrong shape")
    if not ((levels >= 0) & (levels <= 1)).all() or not (np.diff(levels, axis=1) >= 0).all():
        raise ValueError("the levels of the calibration must rise from 0 to 1")


def _strength(shares: Any, p: int) -> NDArray[np.float64] | None:
    if shares is None:
        return None
    strength = np.array(shares, dtype=np.float64)
    if strength.shape != (p, p) or not ((strength >= 0) & (strength <= 1)).all():
        raise ValueError("the strengths of arcs must be shares, one for each pair of features")
    return strength


def _by_spread(
    arrays: Mapping[str, NDArray[np.float64]], calibration: NDArray[np.float64] | None
) -> BySpread | None:
    if "by_spread.knots" not in arrays:
        return None
    found = BySpread(arrays["by_spread.knots"], arrays["by_spread.levels"])
    knots = found.knots
    if calibration is None or found.levels.shape[1:] != calibration.shape[1:]:
        raise ValueError("the levels by spread do not belong to the calibration")
    if knots.ndim != 1 or len(knots) < 2 or not (np.diff(knots) > 0).all():
        raise ValueError("the levels by spread need two spreads or more, which rise")
    if np.abs(knots).max() > MAX_SCORE:
        raise ValueError(f"spreads beyond {MAX_SCORE:g}")
    _check_levels(found.levels, len(knots))
    return found


def _scorer(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: MixtureNetwork
) -> Scorer | None:
    is_optional = facts["format"] > SCORER_FORMAT and "scorer" not in facts
    if facts["format"] == PLAIN_FORMAT or is_optional:
        return None
    mine = {k.removeprefix(SCORER): a for k, a in arrays.items() if k.startswith(SCORER)}
    k = len(mine.get(f"{MIXTURE}weights", ()))
    check_limit("components", k, f"the mixture of the classes has {k} components", ModelError)
    return Scorer.from_arrays(facts["scorer"], mine, network)


def _margin(
    kind: type[Margin], x: NDArray[np.float64], z: NDArray[np.float64], moments: str
) -> Margin:
    rising = x.ndim == 1 and x.shape == z.shape and (np.diff(x) >= 0).all()
    if not (rising and x.size >= (1 if kind is Constant else 2) and (np.diff(z) >= 0).all()):
        raise ValueError("a margin must have knots that never fall")
    if kind is not Constant and not (np.ptp(x) > LEAST_WIDTH and np.ptp(z) > LEAST_WIDTH):
        raise ValueError("a margin must rise")
    if np.abs(x).max() > MAX_VALUE or np.abs(z).max() > MAX_SCORE:
        raise ValueError(f"knots of a margin beyond {MAX_VALUE:g} or scores beyond {MAX_SCORE:g}")
    return kind(x, z, moments)


def _fit(
    arrays: Mapping[str, NDArray[np.float64]],
    f: int,
    p: int,
    parents: Sequence[Any] | None,
    names: tuple[str, ...],
) -> Mixture:
    weights, means, covs = (arrays[f"fits.{f}.{name}"] for name in ("weights", "means", "covs"))
    rates = arrays.get(f"fits.{f}.gap_rates")
    k = len(weights)
    check_limit("components", k, f"fit {f} has {k} components", ModelError)
    check_mixture(Mixture(weights, means, covs, rates, None), p, f"fit {f}")
    graphs = None if parents is None else tuple(as_parents(graph, names) for graph in parents)
    if graphs is not None and len(graphs) != k:
        raise ValueError(f"fit {f}: one graph per component is needed")
    return Mixture(weights, means, covs, rates, graphs)
