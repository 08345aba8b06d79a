"""A sample of the field for `train` and `evaluate`, and what is estimated from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.input_warnings import mention_gaps
from skyfill.cli.terminal import listing, note, warn
from skyfill.errors import CatalogError, shortened

if TYPE_CHECKING:
    from pathlib import Path

    from skyfill.catalog import Schema, Table
    from skyfill.classify.prior import FieldShares
    from skyfill.evaluate import FieldScores

# Rows of the field that are used at most.
FIELD_ROWS = 10_000


def takes_field(help_text: str) -> Any:
    """Return the option for the catalogue that is to be classified: --field."""
    return click.option("--field", type=shared.CATALOG, metavar="CATALOG", help=help_text)


def field_files(path: Path | str | None) -> list[Path]:
    """List the files of the field, on which the output depends."""
    from skyfill.scale import open_source

    return [] if path is None else list(open_source(path).checked_files)


def read_field(path: Path | str, names: Sequence[str], rules: Schema) -> Table:
    """Read a sample of a catalogue: its features, and what is known of them."""
    import numpy as np
    import pyarrow as pa

    from skyfill.catalog import Table
    from skyfill.model.cells import columns_for
    from skyfill.model.declared import find_sentinels
    from skyfill.scale import open_source

    source = open_source(path, rules)
    empty = source.table()
    mine = [name for name in names if name in empty.names]
    if not mine:
        raise CatalogError(f"--field {path}: has none of the features {shortened(names, 150)}")
    if absent := [name for name in names if name not in mine]:
        warn(listing(f"--field {path} lacks ", absent, ": gaps in every row"))
    table = rules.apply(source.sample(columns_for(empty, mine)))
    if not len(table):
        raise CatalogError(f"--field {path}: has no rows")
    chosen = np.unique(np.linspace(0, len(table) - 1, min(FIELD_ROWS, len(table))).astype(int))
    field = Table(table.arrow.take(pa.array(chosen)))
    mention_gaps(find_sentinels(field, names, rules), len(field), f"--field {path}: ")
    return field


def mention_shares(found: FieldShares, classes: Sequence[str], place: Path | str) -> None:
    """Print estimated shares of the classes, and warn where they cannot be trusted."""
    from skyfill.classify.prior import NOTABLE_MISFIT

    words = [
        f"{name} {share:.3g}" + (f" ({low:.2g} to {high:.2g})" if low >= 0 else "")
        for name, share, low, high in zip(classes, *found[:3], strict=True)
    ]
    kind = "estimated shares" if found.is_trusted else "shares of the training set, kept"
    if found.agree:
        kind = "shares of the training set, which may be those of these objects"
    note(f"{kind} (5 to 95 %): " + shortened(words, 200))
    if found.used < 1:
        note(
            f"from {100 * found.used:.3g} % of the rows, whose gaps are like those of the "
            "training set; the others are taken to have the same shares"
        )
    if found.taught is not None:
        note(f"{place} has also taught what objects of class {classes[found.taught]} look like")
    if not found.is_trusted:
        warn(
            f"{place}: other shares of the classes explain only {100 * found.explained:.0f} % of "
            "how its objects differ from the training set: objects of a class look different "
            "there, so estimated shares are not used, and all probabilities are less certain than "
            "they say; give known shares with --prior CLASS=SHARE,..., or label some of its objects"
        )
    elif found.misfit > NOTABLE_MISFIT:
        warn(
            f"{place}: its objects are no mixture of the training set's classes "
            f"({found.misfit:.1f} standard errors off): the estimated shares may be far off; give "
            "known shares with --prior CLASS=SHARE,..."
        )


def facts_of(found: FieldShares, classes: Sequence[str]) -> dict[str, Any]:
    """Describe estimated shares for JSON."""
    each = zip(classes, *(part.tolist() for part in found[:3]), strict=True)
    shares = {
        name: {"share": share, "low": _number(low), "high": _number(high)}
        for name, share, low, high in each
    }
    taught = None if found.taught is None else classes[found.taught]
    facts = {"shares": shares, "misfit": _number(found.misfit), "used": found.used}
    facts |= {"explained": _number(found.explained), "agree": found.agree}
    return facts | {"taught": taught}


def show_field_scores(
    there: FieldScores, n_rows: int, place: Path | str
) -> tuple[dict[str, Any], list[str]]:
    """Describe scores as they would be in a field: for JSON, and as tables."""
    shares, scored = there
    mention_shares(shares, scored.classes, place)
    title = f"in {place}, where objects of a class look as they do in the training set:"
    facts = {"rows": n_rows, **facts_of(shares, scored.classes), **scored.to_dict()}
    return facts, [title, scored.class_table(), scored.summary_table()]


def _number(value: float) -> float | None:
    return value if value == value else None  # noqa: PLR0124 - NaN is not JSON
