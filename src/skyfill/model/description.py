"""What a model is, for people: features, gaps, arcs and classes as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyfill.model.cells import summarize_cells
from skyfill.model.pipeline import Detection, Model
from skyfill.network.mixture.margin import Margin
from skyfill.network.mixture.seen_ranges import seen_ranges
from skyfill.network.summary import summarize_network

# Kinds of `FlatForest` in the words of the field.
TREES = {"mean": "forest", "boost": "boosting"}


def describe_model(model: Model) -> dict[str, Any]:
    """Return the main facts about a model as plain values."""
    return {
        "identifier": model.identifier,
        **describe(model),
        "declared": model.declared.to_dict(),
        "found": {name: list(values) for name, values in model.found.items()},
        "quality": dict(model.quality),
        "provenance": dict(model.provenance),
    }


def describe(model: Model) -> dict[str, Any]:
    """Return the facts of `describe_model` that a file does not have elsewhere."""
    summary = summarize_network(model.network)
    arcs = sorted(summary.arcs.items(), key=lambda item: -item[1])
    return {
        "features": _features(model),
        "components": list(model.network.n_components),
        "gaps": "ignorable" if model.network.fits[0].gap_rates is None else "informative",
        "cells": summarize_cells(model),
        "beyond": describe_beyond(model),
        "logarithmic": describe_logarithms(model),
        "refined": describe_refined(model),
        "arcs": [{"parent": a, "child": b, "strength": round(s, 4)} for (a, b), s in arcs],
        "arcs_learned": summary.is_learned,
        "one_network": summary.is_one,
        "arcs_resampled": summary.is_stability,
        "classes": _classes(model),
    }


def _features(model: Model) -> list[dict[str, Any]]:
    """Describe each feature, with its range in training and its fraction of gaps if known."""
    fits = model.network.fits
    rates = [fit.weights @ fit.gap_rates for fit in fits if fit.gap_rates is not None]
    shares = np.mean(rates, axis=0) if rates else [None] * len(model.features)
    known = [_detection(each) for each in model.detections] or [{}] * len(model.features)
    ranges = seen_ranges(model.network)
    return [
        {
            **vars(feature),
            **_spread(margin, ends),
            "gaps": None if share is None else round(float(share), 4),
            **detection,
        }
        for feature, margin, ends, share, detection in zip(
            model.features, model.network.margins, ranges, shares, known, strict=True
        )
    ]


def describe_beyond(model: Model) -> dict[str, Any]:
    """Name the features with gaps of objects unlike all that have them, and say what is done."""
    support, shares = model.network.support, model.network.columns_beyond
    return {
        "shares": {name: round(share, 4) for name, share in shares.items()},
        "shared_regressions": bool(shares and support is not None and support.is_shared),
    }


def describe_logarithms(model: Model) -> list[str]:
    """Name the features that are mapped by their logarithms."""
    pairs = zip(model.names, model.network.logarithmic.tolist(), strict=True)
    return [name for name, is_logarithmic in pairs if is_logarithmic]


def describe_refined(model: Model) -> list[dict[str, Any]]:
    """Name the features that forests correct, and the weights of the forests.

    `with` and `without` name the features that gaps of this kind are missing with or without.
    """
    found = model.refinement
    if found is None:
        return []
    facts = []
    for i, j in enumerate(found.columns.tolist()):
        mean, quantiles = (round(float(w[i]), 4) for w in (found.mean.weight, found.shape.weight))
        facts.append({"name": model.names[j], "mean": mean, "quantiles": quantiles})
        if found.family is not None and found.apart is not None and found.family[i].any():
            others = [model.names[k] for k in np.flatnonzero(found.family[i])]
            facts[-1]["with" if found.apart[i] else "without"] = others
    return facts


def _spread(margin: Margin, ends: tuple[float, float] | None) -> dict[str, Any]:
    """Give the range of a feature in training or, where that is not known, mean and sd."""
    if ends is None:
        low, middle, high = margin.from_normal(np.array([-1.0, 0.0, 1.0])).tolist()
        return {"range": None, "mean": middle, "sd": (high - low) / 2}
    return {"range": list(ends)}


def _detection(detection: Detection) -> dict[str, Any]:
    """Say what gaps and errors of a feature mean, and how its cells in the training set were."""
    facts = {**vars(detection), "cells": detection.counts._asdict()}
    del facts["counts"]
    return {"detection": facts}


def _classes(model: Model) -> dict[str, Any] | None:
    scorer = model.scorer
    if scorer is None:
        return None
    shares = zip(scorer.classes, scorer.shares, scorer.prior, strict=True)
    return {
        "shares": [
            {"class": name, "training": round(float(share), 6), "field": round(float(prior), 6)}
            for name, share, prior in shares
        ],
        "trees": [{"kind": TREES[forest.kind], "view": view} for view, forest in scorer.forests],
        "calibration": scorer.calibration.kind,
        "mixture": None if scorer.mixture is None else scorer.mixture.description(),
    }
