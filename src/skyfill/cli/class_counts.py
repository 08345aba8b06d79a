"""Objects per class, as `skyfill inspect --label` counts and prints them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyfill.catalog import Schema
    from skyfill.classify.training_set import ClassCounts


def count_classes(path: Path, label: str, rules: Schema) -> ClassCounts:
    """Count the objects of each class in a file, and those without a class."""
    import pyarrow as pa

    from skyfill.catalog import Table, open_scan
    from skyfill.classify.training_set import ClassCounts

    counts, words = ClassCounts(label, Counter(), Counter()), rules.unlabelled(label)
    with open_scan(path, rules=rules) as scan:
        for batch in scan.batches:
            part = rules.apply(Table(pa.Table.from_batches([batch])))
            counts += ClassCounts.of(part, label, words)
    return counts


def class_facts(counts: ClassCounts) -> dict[str, Any]:
    """Give counts for JSON, most frequent first."""
    order = sorted(counts.classes.items(), key=lambda pair: (-pair[1], pair[0]))
    return {"classes": dict(order), "unlabelled": counts.without}


def class_table(counts: ClassCounts) -> str:
    """Write the counts, one line for each class."""
    found, total = class_facts(counts), counts.classes.total()
    rows = [(counts.label, "objects", "share")]
    rows += [
        (name, str(n), f"{n / total:.1%}".replace("%", " %"))
        for name, n in found["classes"].items()
    ]
    rows += [("without a class", str(counts.without), "")] if counts.without else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}}  {n:>{widths[1]}}  {share:>{widths[2]}}".rstrip()
        for name, n, share in rows
    )
