"""What `skyfill candidates` expects of its list: purity and completeness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from skyfill.cli import options as shared
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.report.published_lists import Search
    from skyfill.report.purity import ExpectedList

# Thresholds that are listed as JSON.
SHOWN = (*np.linspace(0.05, 0.95, 19).round(2).tolist(), 0.99)

takes_purity = shared.stacked(
    click.option(
        "--purity",
        type=click.FloatRange(min=0, max=1, min_open=True),
        metavar="SHARE",
        help="Choose the threshold for which this share of the list is expected to be of the "
        "class; instead of --min-probability.",
    ),
    click.option(
        "--checked",
        type=click.Path(path_type=Path),
        help="Objects whose classes were checked by hand: they correct the expected purity and "
        "completeness. Matched as a list of --compare.",
    ),
    click.option("--label", metavar="COLUMN", help="Column of the classes in --checked."),
)


class Expectation:
    """Gather from the results what the expected purity rests on, batch by batch."""

    def __init__(self, given: Mapping[str, Any], search: Callable[[Path], Search]) -> None:
        from skyfill.report.purity import ProbabilityCounts

        more = [] if given["purity"] else [given["least"]]
        self.every = ProbabilityCounts(given["name"], given["prefix"], more)
        self.new = ProbabilityCounts(given["name"], given["prefix"], more)
        self.given, self.checked = given, None
        if given["checked"]:
            mine = search(given["checked"])
            self.checked = mine, _classes(mine.published.table, given)

    def add(self, table: Table) -> None:
        """Count the objects of a batch, apart those new to the model; look for checked ones."""
        self.every.add(table)
        self.new.add(without_known(table, self.given["prefix"]))
        if self.checked:
            self.checked[0].add(table)

    def found(self) -> ExpectedList:
        """Return what is to be expected."""
        from skyfill.report.purity import AS_STATED, expect_list, learn_reliability

        counts = self.new if self.new.n.any() else self.every
        if not self.checked:
            return expect_list(counts, AS_STATED)
        p, classes = self.checked[0].found.probability, self.checked[1]
        use = ~np.isnan(p) & np.array([name is not None for name in classes])
        if not use.any():
            given = self.given
            raise CatalogError(f"{given['checked']}: none of its objects is in {given['results']}")
        member = classes[use] == self.given["name"]
        return expect_list(counts, learn_reliability(p[use], member))


def without_known(table: Table, prefix: str) -> Table:
    """Leave out the objects of the training set: their probabilities know their classes."""
    import pyarrow.compute as pc

    from skyfill.catalog import Table
    from skyfill.model.results import TRAINED_ON, results_prefix

    name = results_prefix(table, prefix) + TRAINED_ON
    if name not in table.names:
        return table
    is_new = pc.invert(pc.fill_null(table.column(name).cast("bool"), False))
    return Table(table.arrow.filter(is_new))


def _classes(table: Table, given: Mapping[str, Any]) -> NDArray[Any]:
    """Read the classes of checked objects; None where there is none."""
    from skyfill.catalog import Role, with_guessed_roles
    from skyfill.catalog.class_labels import class_texts
    from skyfill.model.results import result_columns

    known = with_guessed_roles(table).names_with(Role.LABEL)
    own = result_columns(table)
    found = [given["label"]] if given["label"] else [name for name in known if name not in own]
    if len(found) != 1:
        what = f"several ({', '.join(found)})" if found else "no column of classes"
        raise CatalogError(f"{given['checked']}: has {what}; name one with --label COLUMN")
    return class_texts(table, found[0])


def doubt_about(found: Table, given: Mapping[str, Any]) -> tuple[str, str]:
    """Say why nothing is to be expected of a list, and what else is to be known of its objects.

    Where more than a tenth of them are unlike the training set, no number holds; objects that were
    checked show how far probabilities hold nevertheless.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from skyfill.classify.likeness import NOTABLE_UNLIKE
    from skyfill.model.results import OUTLIER, record_of, results_prefix
    from skyfill.report.purity import unlike_words

    if given["checked"] or not len(found):
        return "", ""
    likeness = (record_of(found, given["prefix"]) or {}).get("likeness")
    if words := unlike_words(likeness, given["name"]):
        return words, ""
    flag = results_prefix(found, given["prefix"]) + OUTLIER
    column = found.column(flag) if flag in found.names else pa.array([], pa.bool_())
    n_unlike = (pc.sum(column).as_py() or 0) if pa.types.is_boolean(column.type) else 0
    if n_unlike > NOTABLE_UNLIKE * len(found):
        return f"{n_unlike} of them are unlike the training set ({flag})", ""
    unknown = "whether they are like the training set is not known"
    return "", unlike_words(likeness) if likeness else unknown


def expected_at(expected: ExpectedList, least: float, doubt: str) -> dict[str, Any]:
    """Describe what is to be expected above a threshold; None where there is doubt about it."""
    facts = expected.at(least)
    kept = ("threshold", "candidates")
    return {key: None if doubt and key not in kept else value for key, value in facts.items()}


def words_of(facts: Mapping[str, Any], name: str, doubt: str, caution: str) -> str:
    """Say what is to be expected of a list, or why nothing is."""
    if doubt:
        return f"; how many of them are {name} is not stated: {doubt}; check some (--checked FILE)"
    if facts["purity"] is None:
        return ""
    parts = [
        f"{facts[key]:.2g} of {what} ({facts[key + '_low']:.2g} to {facts[key + '_high']:.2g})"
        for key, what in (("purity", "the list"), ("completeness", f"all {name}"))
        if facts[key] is not None
    ]
    return f"; expected to be {name}: {', '.join(parts)}" + (caution and f"; {caution}")
