"""One self-contained HTML page about a model and its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from skyfill import __version__
from skyfill.catalog.file_io import open_atomic
from skyfill.catalog.provenance import read_provenance
from skyfill.evaluate.surveys import Groups, guess_groups
from skyfill.model import Model, scorer_and_cells
from skyfill.model.cells import is_magnitude
from skyfill.model.description import describe_logarithms
from skyfill.model.results import record_of
from skyfill.network import MixtureNetwork
from skyfill.network.summary import Summary, pooled_cov, summarize_network
from skyfill.report.evaluations import CLASSES
from skyfill.report.gaps import REASONS
from skyfill.report.importance import importance_for_classes, importance_for_features
from skyfill.report.network_drawing import (
    FILLS,
    HEIGHT,
    NODE_HEIGHT,
    WIDTH,
    node_widths,
    place_nodes,
)
from skyfill.report.objects import Results, export_objects
from skyfill.report.page_data import axes_of, export_network, to_script
from skyfill.report.purity import unlike_words

# In the order in which they are loaded: later parts use earlier ones.
SCRIPTS = (
    "base", "limits", "moments", "mixture", "engine", "plots", "objects", "gaps", "network",
    "whatif", "pair", "filling", "classes", "importance", "panel", "sky", "main",
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What a page is about.

    Parameters
    ----------
    model : Model
    results : Results, optional
        From `read_results`.
    evaluations : mapping
        From `read_evaluations`.
    groups : mapping of str to names, optional
        Features that belong together; guessed where not given.
    title : str
    provenance : mapping
        How the page itself is made.
    """

    model: Model
    results: Results | None = None
    evaluations: Mapping[str, Any] = field(default_factory=dict)
    groups: Groups | None = None
    title: str = "Gaps, network and objects"
    provenance: Mapping[str, Any] = field(default_factory=dict)


def build_page(report: Report) -> str:
    """Return the page as text, with everything that it shows and computes with inside.

    Examples
    --------
    >>> from skyfill.catalog import Table
    >>> from skyfill.model import train
    >>> table = Table.from_columns({"J": np.linspace(14, 15, 30), "K": np.linspace(13, 15, 30)})
    >>> model, _ = train(table, ["J", "K"], n_components=1, n_fits=1)
    >>> build_page(Report(model))[:15]
    '<!doctype html>'
    """
    folder = files("skyfill.report") / "page"
    read = {name: (folder / name).read_text("utf-8") for name in ("page.html", "style.css")}
    scripts = [(folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS]
    return Template(read["page.html"]).substitute(
        title=escape(report.title),
        style=read["style.css"],
        script="\n".join(scripts),
        payload=to_script(export_report(report)),
    )


def write_page(report: Report, path: str | Path) -> None:
    """Write the page; the file appears complete or not at all."""
    content = build_page(report).encode()
    with open_atomic(path) as stream:
        stream.write(content)


def export_report(report: Report) -> dict[str, Any]:
    """Return everything that the page shows as plain values."""
    model, results = report.model, report.results
    columns = results.table.names if results else ()
    groups = report.groups or guess_groups(model.features, columns)
    return {
        "fills": FILLS,
        "reasons": REASONS,
        "summary": _summary(report),
        "features": _features(model, groups),
        "groups": [{"name": name, "members": members} for name, members in groups.items()],
        "engine": export_network(model.network),
        "graph": _graph(summarize_network(model.network), model.network),
        "pair": typical_pair(model, groups),
        "gaps": _gaps(results),
        "objects": export_objects(results, model) if results else None,
        "importance": _importance(report),
        "imputation": report.evaluations.get("imputation"),
        "filling": report.model.quality.get("filling", {}),
        "classification": _classes(report),
        "unclassified": report.model.quality.get("classes", {}).get("not_measured"),
        "provenance": _provenance(report),
    }


def _classes(report: Report) -> dict[str, Any] | None:
    """Give the evaluation of the classes, else what training found out about them."""
    given: dict[str, Any] | None = report.evaluations.get("classification")
    own = report.model.quality.get("classes", {})
    if given is not None or "methods" not in own:
        return given
    kept = ("apart", "unmeasured", *sorted(CLASSES))
    return {key: own[key] for key in kept} | {"surveys": []}


def _summary(report: Report) -> str:
    n_features = len(report.model.network.names)
    text = (
        f"This page shows what a model has learned about {n_features} features of objects in spite "
        "of the gaps in their catalogues, and what it predicts for values never measured."
    )
    if report.model.refinement is not None:
        text += (
            " It computes with the mixtures of the model; skyfill impute also uses its forests, so "
            "that filled values differ."
        )
    if logarithmic := describe_logarithms(report.model):
        text += f" It computes with the logarithms of {', '.join(logarithmic)}."
    if beyond := report.model.network.columns_beyond:
        text += (
            f" Gaps in {', '.join(beyond)} are often those of objects unlike all that were "
            "measured, because they are too faint, say: their distributions are widened."
        )
    if report.results is None:
        return text
    if words := unlike_words((record_of(report.results.table) or {}).get("likeness")):
        text += f" When they were classified: {words}, so that probabilities promise too much."
    return text + " Open the panel of any object, or try values of your own under What if."


def _features(model: Model, groups: Groups) -> list[dict[str, Any]]:
    group_of = {name: g for g, members in enumerate(groups.values()) for name in members}
    return [
        {
            "name": feature.name,
            "unit": feature.unit,
            "description": feature.description,
            "magnitude": is_magnitude(feature),
            "group": group_of[feature.name],
            "axis": axis,
        }
        for feature, axis in zip(model.features, axes_of(model.network), strict=True)
    ]


def _graph(summary: Summary, network: MixtureNetwork) -> dict[str, Any]:
    is_linear = all(margin.is_line for margin in network.margins)
    place = {name: j for j, name in enumerate(summary.names)}
    arcs = sorted(summary.arcs.items(), key=lambda item: item[1])
    return {
        "learned": summary.is_learned,
        "one": summary.is_one,
        "stability": summary.is_stability,
        "linear": is_linear,
        "paper": {"width": WIDTH, "height": HEIGHT, "node": NODE_HEIGHT},
        "places": place_nodes(summary.names, summary.arcs).round(1).tolist(),
        "widths": node_widths(summary.names).tolist(),
        "arcs": [{"from": place[p], "to": place[c], "strength": s} for (p, c), s in arcs],
        "regressions": [vars(each) for each in summary.regressions],
    }


def typical_pair(model: Model, groups: Groups) -> tuple[int, int]:
    """Choose two features that depend on each other, of two groups, and are not nearly equal."""
    cov = pooled_cov(model.network)
    sd = np.sqrt(np.diag(cov))
    group_of = {name: g for g, members in enumerate(groups.values()) for name in members}
    group = np.array([group_of[name] for name in model.names])
    alike = 0.2 * (group[:, None] == group[None]) + 2 * np.eye(len(cov))
    distance = np.abs(np.abs(cov / np.outer(sd, sd)) - 0.85) + alike
    i, j = np.unravel_index(np.argmin(distance), distance.shape)
    return int(i), int(j)


def _gaps(results: Results | None) -> dict[str, Any] | None:
    if results is None:
        return None
    counts = results.gaps.counts.tolist()
    return {"rows": results.gaps.n_rows, "reasons": REASONS, "counts": counts}


def _importance(report: Report) -> dict[str, Any]:
    model, scorer = report.model, report.model.scorer
    found: dict[str, Any] = {"features": importance_for_features(model.network).tolist()}
    if scorer is not None and report.results is not None and len(report.results.table):
        scorer, cells = scorer_and_cells(model, report.results.table)
        found["classes"] = importance_for_classes(scorer, cells).tolist()
    return found


def _provenance(report: Report) -> list[dict[str, Any]]:
    parts: list[tuple[str, Mapping[str, Any]]] = [
        ("The model", {"model": report.model.identifier, **report.model.provenance})
    ]
    if report.results is not None:
        meta = dict(report.results.table.meta)
        made = read_provenance(meta.pop("provenance", None))
        parts.append(("The results", {**made, **meta}))
    parts.append(("This page", {"version": f"skyfill {__version__}", **report.provenance}))
    return [{"title": title, "facts": _lines(facts)} for title, facts in parts if facts]


def _lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [line for key, value in facts.items() for line in _line(key, value)]


def _line(key: str, value: Any) -> Sequence[tuple[str, str]]:
    if key == "inputs" and isinstance(value, list):
        return [
            ("input", f"{Path(each['file']).name} (SHA-256 {each['sha256'][:16]}…)")
            for each in value
        ]
    return [(key, value if isinstance(value, str) else json.dumps(value))]
