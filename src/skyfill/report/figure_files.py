"""The figures of a report as files: network, two features, gaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skyfill.catalog.file_io import open_atomic
from skyfill.evaluate.score_figures import new_figure
from skyfill.evaluate.surveys import guess_groups
from skyfill.report.figures import draw_pair, plot_gaps, plot_network
from skyfill.report.page import Report, typical_pair

# Inches, and dots per inch where a format has dots.
NETWORK_SIZE, GAPS_SIZE, DPI = (9.0, 6.0), (6.0, 4.0), 150


def write_figures(
    report: Report,
    folder: str | Path,
    pair: Sequence[str] | None = None,
    *,
    at: float | None = None,
    kind: str = "png",
) -> list[Path]:
    """Write ``network``, ``pair`` and, with results, ``gaps`` into a folder.

    Parameters
    ----------
    report : Report
    folder : path
        Made if it is not there.
    pair : two names, optional
        The feature that is known, and the one to be filled, of the figure of a joint, a marginal
        and a conditional distribution (Pichara & Protopapas 2013, fig. 1). By default two features
        that depend on each other.
    at : float, optional
        Value of the first; by default its median.
    kind : {"png", "pdf", "svg"}

    Returns
    -------
    list of Path
    """
    model, folder = report.model, Path(folder)
    columns = report.results.table.names if report.results else ()
    groups = report.groups or guess_groups(model.features, columns)
    first, second = pair or (model.names[j] for j in typical_pair(model, groups))
    figures = {"pair": draw_pair(model.network, (first, second), at=at)}
    figures["network"] = new_figure(NETWORK_SIZE)
    plot_network(model.network, groups, ax=figures["network"].subplots())
    if report.results is not None:
        figures["gaps"] = new_figure(GAPS_SIZE)
        plot_gaps(report.results.gaps, ax=figures["gaps"].subplots())
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.{kind}" for name in figures}
    for name, figure in figures.items():
        with open_atomic(paths[name]) as stream:
            figure.savefig(stream, dpi=DPI, format=kind)
    return list(paths.values())
