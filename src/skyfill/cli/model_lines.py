"""What is printed of a model: of its file, by `skyfill inspect`, and after training."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skyfill.cli.checks import fact_words
from skyfill.cli.quality_lines import quality_lines
from skyfill.cli.terminal import echo, write_json
from skyfill.errors import ModelError, counted, shortened
from skyfill.model_archive import read_description

MOST_ARCS = 30


def show_model(model: Path, *, as_json: bool) -> None:
    """Print the features, gaps, arcs and classes of a model, and how it was made."""
    facts = _description(model)
    if as_json:
        write_json(facts)
        return
    try:
        lines = list(_lines(facts))
    except (LookupError, TypeError, ValueError) as error:
        raise ModelError(f"{model}: the model is damaged ({error!r} in its description)") from None
    for line in lines:
        echo(line)


def _description(path: Path) -> dict[str, Any]:
    """Read the description in the file, which takes no compiler; else make one of the model."""
    if (found := read_description(path)) is not None:
        return found
    from skyfill.model import describe_model, load_model

    return describe_model(load_model(path))


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(map(str, facts["components"]))
    yield f"model {facts['identifier']}"
    kind = f"{counted(fit=len(facts['components']))} of {counts} components"
    kind = "one Gaussian network" if facts["one_network"] else kind
    yield f"network: {kind}; gaps {facts['gaps']}"
    if facts["cells"]:
        yield cells_line(facts["cells"])
    if (beyond := facts.get("beyond")) and beyond["shares"]:
        yield beyond_line(beyond)
    if facts.get("logarithmic"):
        yield logarithms_line(facts["logarithmic"])
    if facts.get("refined"):
        yield "refined by forests: " + ", ".join(
            dict.fromkeys(each["name"] for each in facts["refined"])
        )
    yield from _feature_lines(facts["features"])
    yield from _limit_lines(facts["features"])
    yield from _class_lines(facts["classes"])
    if quality := list(quality_lines(facts.get("quality", {}))):
        yield from ("\nquality", *(f"  {line}" for line in quality))
    yield from _arc_lines(facts)
    if facts["declared"]:
        yield "\ndeclared in training"
        yield from (f"  {name}: {fact_words(each)}" for name, each in facts["declared"].items())
    if facts.get("found"):
        yield "\nfound in training to mean gaps"
        for name, values in facts["found"].items():
            yield f"  {name}: {', '.join(f'{value:.15g}' for value in values)}"
    yield "\nmade by"
    for key, value in facts["provenance"].items():
        yield f"  {key}: {value if isinstance(value, str) else json.dumps(value)}"


def _feature_lines(features: list[dict[str, Any]]) -> Iterator[str]:
    yield f"\n{counted(feature=len(features))}"
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
        yield f"  {name:{width}}  {limit_words(each, each['cells']['limited'])}"


def limit_words(detection: Mapping[str, Any], count: int) -> str:
    """Say how many cells lie beyond limits, where these are if none is stated, and how soft.

    Examples
    --------
    >>> limit_words({"side": "lower", "depth": 26.4, "width": 0.0}, 714)
    '714 cells, > 26.4 where none is stated'
    """
    sign = ">" if detection["side"] == "lower" else "<"
    depth = detection["depth"]
    where = "" if depth is None else f", {sign} {depth:.6g} where none is stated"
    soft = f", soft over {detection['width']:.2g}" if detection["width"] else ""
    return f"{counted(cell=count)}{where}{soft}"


def _class_lines(classes: Mapping[str, Any] | None) -> Iterator[str]:
    if classes is None:
        yield "\nno classes: the model was trained without --label and only fills gaps"
        return
    kinds = [tree["kind"] for tree in classes["trees"]]
    words = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    calibration = classes["calibration"]
    mixture = classes["mixture"]
    if mixture is not None:
        words += f"; mixture of {mixture['components']} components, weight {mixture['weight']:g}"
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
    yield f"\n{counted(arc=len(arcs))} ({what}){shown}"
    for arc in arcs[:MOST_ARCS]:
        yield f"  {arc['parent']} -> {arc['child']}  {arc['strength']:.2f}"


def cells_line(cells: Mapping[str, Any] | None) -> str:
    """Say what was known of the cells of a training set.

    Examples
    --------
    >>> cells_line({"errors": "on", "seen": 90, "with_errors": 80, "limited": 7, "unknown": 3})
    'cells: 90 seen (80 with errors), 7 beyond limits, 3 unknown'
    >>> cells_line(None)
    'cells: values and gaps alone; no limits, errors not used'
    """
    if cells is None:
        return "cells: values and gaps alone; no limits, errors not used"
    errors = f"{cells['with_errors']} with errors" if cells["errors"] == "on" else "errors not used"
    return (
        f"cells: {cells['seen']} seen ({errors}), {cells['limited']} beyond limits, "
        f"{cells['unknown']} unknown"
    )


def logarithms_line(names: Sequence[str]) -> str:
    """Say which features are mapped by their logarithms.

    Examples
    --------
    >>> logarithms_line(["S_3.6", "S_4.5"])
    'mapped by their logarithms: S_3.6, S_4.5'
    """
    return f"mapped by their logarithms: {shortened(names, 200)}"


def beyond_line(beyond: Mapping[str, Any]) -> str:
    """Say which features have gaps beyond what was measured, and what that does to them.

    Examples
    --------
    >>> beyond_line({"shares": {"J": 0.93, "K": 0.5}, "shared_regressions": False})
    'beyond what was measured: J (93 % of its gaps), K (50 %): objects without them are unlike \
all that have them; intervals are widened there'
    """
    (first, share), *others = beyond["shares"].items()
    listed = [f"{first} ({100 * share:.0f} % of its gaps)"]
    listed += [f"{name} ({100 * share:.0f} %)" for name, share in others]
    shared = ", and components share their regressions" if beyond["shared_regressions"] else ""
    return (
        f"beyond what was measured: {shortened(listed, 90)}: objects without {_them(others)} are "
        f"unlike all that have {_them(others)}; intervals are widened there{shared}"
    )


def _them(others: Sequence[object]) -> str:
    return "them" if others else "it"
