"""`skyfill show`: the contents of a model file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import fact_words
from skyfill.cli.terminal import cells_line, echo, write_json

if TYPE_CHECKING:
    from skyfill.model import Detection, Model
    from skyfill.network.mixture.margin import Margin

MOST_ARCS = 30
# Kinds of `FlatForest` in the words of the field.
TREES = {"mean": "forest", "boost": "boosting"}


@click.command("show", epilog=shared.examples("skyfill show lmc.skyfill"))
@click.argument("model", type=click.Path(path_type=Path))
@shared.as_json("everything, including all arcs,")
def command(model: Path, as_json: bool) -> None:
    """Print the features, gaps, arcs and classes of MODEL, and how it was made."""
    from skyfill.model import load_model

    facts = describe_model(load_model(model))
    if as_json:
        write_json(facts)
        return
    for line in _lines(facts):
        echo(line)


def describe_model(model: Model) -> dict[str, Any]:
    """Return the main facts about a model as plain values."""
    from skyfill.model import summarize_cells
    from skyfill.report.network_summary import summarize_network

    summary = summarize_network(model.network)
    arcs = sorted(summary.arcs.items(), key=lambda item: -item[1])
    return {
        "identifier": model.identifier,
        "features": _features(model),
        "components": list(model.network.n_components),
        "gaps": "ignorable" if model.network.fits[0].gap_rates is None else "informative",
        "cells": summarize_cells(model),
        "arcs": [{"parent": a, "child": b, "strength": round(s, 4)} for (a, b), s in arcs],
        "arcs_learned": summary.is_learned,
        "one_network": summary.is_one,
        "arcs_resampled": summary.is_stability,
        "classes": _classes(model),
        "declared": model.declared.to_dict(),
        "provenance": dict(model.provenance),
    }


def _features(model: Model) -> list[dict[str, Any]]:
    """Describe each feature, with its range in training and its fraction of gaps if known."""
    import numpy as np

    fits = model.network.fits
    rates = [fit.weights @ fit.gap_rates for fit in fits if fit.gap_rates is not None]
    shares = np.mean(rates, axis=0) if rates else [None] * len(model.features)
    known = [_detection(each) for each in model.detections] or [{}] * len(model.features)
    return [
        {
            **vars(feature),
            **_spread(margin),
            "gaps": None if share is None else round(float(share), 4),
            **detection,
        }
        for feature, margin, share, detection in zip(
            model.features, model.network.margins, shares, known, strict=True
        )
    ]


def _spread(margin: Margin) -> dict[str, Any]:
    """Give the range of a feature in training or, where it is only standardized, mean and sd."""
    from skyfill.network.mixture.margin import Identity

    low, high = float(margin.x[0]), float(margin.x[-1])
    if isinstance(margin, Identity):
        return {"range": None, "mean": low, "sd": high - low}
    return {"range": [low, high]}


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
    }


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(map(str, facts["components"]))
    yield f"model {facts['identifier']}"
    kind = f"{len(facts['components'])} fits of {counts} components"
    kind = "one Gaussian network" if facts["one_network"] else kind
    yield f"network: {kind}; gaps {facts['gaps']}"
    if facts["cells"]:
        yield cells_line(facts["cells"])
    yield from _feature_lines(facts["features"])
    yield from _limit_lines(facts["features"])
    yield from _class_lines(facts["classes"])
    yield from _arc_lines(facts)
    if facts["declared"]:
        yield "\ndeclared in training"
        yield from (f"  {name}: {fact_words(each)}" for name, each in facts["declared"].items())
    yield "\nmade by"
    for key, value in facts["provenance"].items():
        yield f"  {key}: {value if isinstance(value, str) else json.dumps(value)}"


def _feature_lines(features: list[dict[str, Any]]) -> Iterator[str]:
    yield f"\n{len(features)} features"
    width = max(len(each["name"]) for each in features)
    for each in features:
        seen = "{mean:.6g} ± {sd:.4g}".format(**each) if each["range"] is None else ""
        seen = seen or "{:.6g} .. {:.6g}".format(*each["range"])
        gaps = "" if each["gaps"] is None else f"{each['gaps']:.0%} gaps"
        text = each["description"] or ""
        line = f"  {each['name']:{width}}  {seen:24} {each['unit'] or '':8} {gaps:9} {text}"
        yield line.rstrip()


def _limit_lines(features: list[dict[str, Any]]) -> Iterator[str]:
    """Say of each feature with limits which side they are on and how deep it reaches."""
    found = {each["name"]: each["detection"] for each in features if "detection" in each}
    found = {name: detection for name, detection in found.items() if detection["side"]}
    if found:
        yield "\nlimits"
    width = max(map(len, found), default=0)
    for name, each in found.items():
        sign = ">" if each["side"] == "lower" else "<"
        depth = "" if each["depth"] is None else f"{sign} {each['depth']:.6g} where none is stated"
        soft = f", soft over {each['width']:.2g}" if each["width"] else ""
        yield f"  {name:{width}}  {each['cells']['limited']} cells  {depth}{soft}".rstrip()


def _class_lines(classes: Mapping[str, Any] | None) -> Iterator[str]:
    if classes is None:
        yield "\nno classes: the model was trained without --label and only fills gaps"
        return
    kinds = [tree["kind"] for tree in classes["trees"]]
    words = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    calibration = classes["calibration"]
    yield f"\n{len(classes['shares'])} classes (trees: {words}; calibration: {calibration})"
    for each in classes["shares"]:
        moved = abs(each["training"] - each["field"]) > 1e-6
        field = f", {each['field']:.2%} of the field" if moved else ""
        yield f"  {each['class']:10} {each['training']:.2%} of the training set{field}"


def _arc_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    arcs, what = facts["arcs"], "of one network for all components"
    if facts["one_network"]:
        what = "change of the child per unit of the parent, in standard deviations"
        if facts["arcs_resampled"]:
            what = "fraction of bootstrap samples that link the two"
    elif facts["arcs_learned"]:
        what = "fraction of the mixture that has it"
    shown = f", the strongest {MOST_ARCS}" if len(arcs) > MOST_ARCS else ""
    yield f"\n{len(arcs)} arcs ({what}){shown}"
    for arc in arcs[:MOST_ARCS]:
        yield f"  {arc['parent']} -> {arc['child']}  {arc['strength']:.2f}"
