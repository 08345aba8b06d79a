"""Objects per class, as `skyfill inspect --label` counts and prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyfill.catalog import Schema


def count_classes(path: Path, label: str, rules: Schema) -> dict[str, Any]:
    """Count the objects of each class in a file, most frequent first, and those without a class."""
    import pyarrow as pa

    from skyfill.catalog import Table, open_scan
    from skyfill.classify.training_set import label_texts

    counts = Counter[str | None]()
    with open_scan(path, rules=rules) as scan:
        for batch in scan.batches:
            part = rules.apply(Table(pa.Table.from_batches([batch])))
            counts.update(label_texts(part.column(label).to_pylist()))
    unlabelled = counts.pop(None, 0)
    order = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return {"classes": dict(order), "unlabelled": unlabelled}


def class_table(label: str, found: Mapping[str, Any]) -> str:
    """Write the counts of `count_classes`, one line for each class."""
    counts, unlabelled = found["classes"], found["unlabelled"]
    total = sum(counts.values())
    rows = [(label, "objects", "share")]
    rows += [(name, str(n), f"{n / total:.1%}".replace("%", " %")) for name, n in counts.items()]
    rows += [("without a class", str(unlabelled), "")] if unlabelled else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}}  {n:>{widths[1]}}  {share:>{widths[2]}}".rstrip()
        for name, n, share in rows
    )
