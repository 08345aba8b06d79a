"""What a survey adds: the same folds with and without its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError
from skyfill.evaluate.class_comparison import ClassComparison
from skyfill.evaluate.class_scores import Array
from skyfill.evaluate.classification import Factory, cross_validate


def survey_columns(names: Sequence[str], survey: str) -> list[int]:
    """Find the columns of a survey: its name is their suffix, or a list of columns with commas.

    Examples
    --------
    >>> survey_columns(["V", "J_two_mass", "K_two_mass"], "two_mass")
    [1, 2]
    >>> survey_columns(["V", "J_two_mass", "K_two_mass"], "V,K_two_mass")
    [0, 2]
    """
    found = [j for j, name in enumerate(names) if name.endswith(f"_{survey}")]
    if found:
        return found
    words = [word.strip() for word in survey.split(",")]
    unknown = [word for word in words if word not in names]
    if unknown:
        raise DataError(
            f"no feature {unknown[0]!r} and no features of a survey of that name (they would end "
            f"in _{unknown[0]}); the features are {', '.join(names)}"
        )
    return [names.index(word) for word in words]


def without_surveys(
    X: Array,
    y: Iterable[Any],
    methods: Mapping[str, Factory],
    *,
    columns: Sequence[int],
    found: ClassComparison,
    **options: Any,
) -> dict[str, ClassComparison]:
    """Put beside a comparison the same without some columns, and split it by who has them.

    Parameters
    ----------
    columns : sequence of int
        The columns to leave out.
    found : ClassComparison
        What `cross_validate` gave with all columns and the same options.
    **options
        Those of `cross_validate`; the seed must be the same.

    Returns
    -------
    dict
        Under ``all``, ``matched`` (objects that have any of the columns) and ``unmatched``: each
        method and, as "<method> without", what it reaches without the columns. A part without
        objects is left out.
    """
    kept = [j for j in range(X.shape[1]) if j not in set(columns)]
    if not kept:
        raise DataError("without these columns nothing is left to classify by")
    bare = cross_validate(X[:, kept], y, methods, **options).renamed(" without")
    both = found + bare
    matched = np.asarray(~np.isnan(X[:, list(columns)]).all(axis=1))
    parts: dict[str, NDArray[np.bool_]] = {
        "all": np.ones(len(X), dtype=bool),
        "matched": matched,
        "unmatched": np.logical_not(matched),
    }
    return {name: both.subset(rows) for name, rows in parts.items() if rows[both.rows].any()}
