"""Tables of any kind converted to numbers, with NaN for gaps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyfill.catalog import Table
from skyfill.catalog.column_summary import summarize_column
from skyfill.catalog.sentinels import find_unmistakable
from skyfill.catalog.table import nearest
from skyfill.catalog.usual_values import find_usual
from skyfill.errors import (
    DataError,
    EmptyColumnWarning,
    MissingLimitsWarning,
    SentinelWarning,
    shortened,
)
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.seen_ranges import are_whole, credible_range, reached_ranges

Array = NDArray[np.float64]
# Values that a warning names.
SHOWN = 4


class Numbers(NamedTuple):
    """A table as numbers; `names` is None where the input had none."""

    X: Array
    names: tuple[str, ...] | None


def as_numbers(X: Any) -> Numbers:
    """Convert any table to float64 with NaN for gaps, and give the names of its columns.

    Parameters
    ----------
    X : array of shape (n, p), or a table
        NumPy array, list of rows, pandas or polars frame, Arrow table, astropy table or
        `skyfill.catalog.Table`; integers and booleans become floats. All columns must be numbers.

    Returns
    -------
    Numbers
        Infinity is an error: it is neither a value nor a gap.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_numbers(pa.table({"J": [14.5, None], "seen_twice": [True, False]}))
    Numbers(X=array([[14.5,  1. ],
           [ nan,  0. ]]), names=('J', 'seen_twice'))
    """
    table = as_arrow(X)
    if table is not None:
        return Numbers(_checked(_from_arrow(table)), tuple(table.column_names))
    columns = getattr(X, "columns", None)
    names = None if columns is None else tuple(str(name) for name in columns)
    return Numbers(_checked(unmasked(X)), names)


def validated(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Convert `X` to numbers, with scikit-learn's checks of feature names and counts.

    With ``reset`` the attributes ``n_features_in_`` and ``feature_names_in_`` are set; without it
    they are compared with those of `X`, whose columns are put in their order.
    """
    from sklearn.utils.validation import validate_data

    if not reset:
        X = in_order(X, getattr(estimator, "feature_names_in_", None))
    table = as_arrow(X)
    if table is None:
        try:
            return np.asarray(validate_data(estimator, unmasked(X), reset=reset, **_CHECKS))
        except (TypeError, ValueError):
            _refuse_text(X)
            raise
    validate_data(estimator, table, reset=reset, skip_check_array=True)
    return _checked(_from_arrow(table), estimator)


def _refuse_text(X: Any) -> None:
    """Name a column of a frame that is no numbers."""
    for name in column_names(X) or ():
        for cell in X[name].dropna().unique() if hasattr(X[name], "dropna") else ():
            try:
                float(cell)
            except (TypeError, ValueError):
                raise DataError(
                    f"column {str(name)!r}: {str(cell)!r} is not a number; leave the column out, "
                    "or put NaN there"
                ) from None


def column_names(X: Any) -> list[Any] | None:
    """Name the columns of a table; None where they have no names."""
    for attribute in ("colnames", "column_names", "columns"):
        found = getattr(X, attribute, None)
        if found is not None:
            return list(found)
    return list(X.names) if isinstance(X, Table) else None


def in_order(X: Any, names: Any) -> Any:
    """Put the columns of a table in the order of `names`, if it has these and no others."""
    own = None if names is None else column_names(X)
    wish = [] if names is None else list(names)
    is_other = own is not None and own != wish
    return picked(X, wish) if is_other and sorted(map(str, own or ())) == sorted(wish) else X


def picked(X: Any, names: Sequence[Any]) -> Any:
    """Take columns of a table by their names."""
    return X.select(list(names)) if hasattr(X, "select") else X[list(names)]


def with_known(
    estimator: Any, X: Any, known: Mapping[str, Any], *, reset: bool
) -> tuple[Any, dict[str, Any]]:
    """Take limits and errors that are columns of a table out of it, as arrays beside its features.

    Parameters
    ----------
    estimator : object
        With ``reset`` it gets ``columns_``: the names that `fit` was given. They hold for tables
        with such columns as far as a call says nothing else.
    X : array of shape (n, p), or a table
    known : mapping
        `lower`, `upper` and `errors`: arrays, tables with the columns of `X`, or the columns of
        `X` that hold them by the names of their features.

    Returns
    -------
    X : array or table
        Features alone.
    dict
        Arrays of the shape of these features, or None.
    """
    told = {k: dict(each) for k, each in known.items() if isinstance(each, Mapping)}
    if reset:
        estimator.columns_ = told
    held, names = {**estimator.columns_, **told}, column_names(X)
    if names is None:
        if told:
            raise DataError(f"{next(iter(told))}= by names needs a table whose columns have names")
        return X, dict(known)
    beside = {column for columns in held.values() for column in columns.values()} & {*names}
    features = [name for name in names if name not in beside]
    table = X
    if beside:
        X = picked(X, features)
    if not reset:
        X = in_order(X, getattr(estimator, "feature_names_in_", None))
        features = column_names(X) or features
    found = {kind: in_order(each, list(map(str, features))) for kind, each in known.items()}
    for kind, columns in held.items():
        if kind not in told and known.get(kind) is not None:
            continue
        if kind in told:
            _check_there(kind, columns.values(), names)
            _check_there(kind, columns, features)
        there = {f: column for f, column in columns.items() if f in features and column in names}
        found[kind] = None
        if there:
            part = np.full((len(table), len(features)), np.nan)
            for feature, column in there.items():
                part[:, features.index(feature)] = as_numbers(picked(table, [column])).X[:, 0]
            found[kind] = part
    return X, found


def _check_there(kind: str, wanted: Iterable[Any], names: Sequence[Any]) -> None:
    for name in wanted:
        if name not in names:
            known = map(str, names)
            raise DataError(f"{kind}=: no column {name!r}; {nearest(str(name), known)}")


def unmasked(X: Any) -> Any:
    """Put NaN where a NumPy array is masked; return anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(np.float64), np.nan)


def learnable_columns(X: Array, names: Any) -> NDArray[np.bool_]:
    """Mark columns with values; warn that the others are left out, or refuse if there are none."""
    lost = np.isnan(X).all(axis=0)
    if lost.all():
        check_learnable(X, names)
    if lost.any():
        listed = [f"x{j}" if names is None else str(names[j]) for j in np.flatnonzero(lost)]
        warnings.warn(
            f"column {shortened(map(repr, listed), 200)} has no value in {len(X)} rows and is left "
            "out",
            EmptyColumnWarning,
            stacklevel=3,
        )
    return np.asarray(~lost)


def warn_of_sentinels(
    X: Array, names: Any, network: MixtureNetwork | None = None, stacklevel: int = 2
) -> None:
    """Warn of numbers that surely mean gaps, and are used as values: arrays are not changed.

    Without a network the columns are judged, with one each cell by what the network has seen.
    """
    words, ranges = [], None if network is None else reached_ranges(network)
    for j, x in enumerate(X.T):
        low, high = (np.inf, np.inf) if ranges is None else credible_range(ranges[j])
        odd, is_whole = x[(x < low) | (x > high)], ranges is not None and are_whole(ranges[j])
        usual = find_usual(pa.array(odd), is_whole=is_whole)
        if not usual.any():
            continue
        values, counts = np.unique(odd[usual], return_counts=True)
        found = dict(zip(values.tolist(), counts.tolist(), strict=True))
        if ranges is None:
            sure = find_unmistakable(summarize_column(pa.array(x, from_pandas=True)))
            found = {float(each.value): each.count for each in sure}
        name = f"x{j}" if names is None else names[j]
        words += [f"{count} cells of {value:.15g} in {name}" for value, count in found.items()]
    if words:
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        warnings.warn(
            f"{'; '.join(words[:SHOWN])}{more} surely mean gaps, and are used as values; give NaN "
            "in their place",
            SentinelWarning,
            stacklevel=stacklevel + 1,
        )


def part_of(array: Any, kept: NDArray[np.bool_]) -> Any:
    """Return some columns of an array, if there is one; all columns as they are."""
    return array if array is None or kept.all() else unmasked(np.asanyarray(array))[:, kept]


def given_columns(cells: Cells) -> dict[str, NDArray[np.bool_]]:
    """Mark the columns whose limits or errors a table states."""
    found = {"lower": cells.lower, "upper": cells.upper, "errors": cells.errors}
    stated = {k: ~np.isnan(part) for k, part in found.items() if part is not None}
    return {k: np.asarray(part.any(axis=0)) for k, part in stated.items()}


def count_known(cells: Cells) -> NDArray[np.int64]:
    """Count the cells of each column that are seen, seen with an error, limited, and unknown."""
    seen, noisy, limited = ~np.isnan(cells.values), cells.is_noisy, cells.is_limited
    return np.stack([each.sum(axis=0) for each in (seen, noisy, limited, ~seen & ~limited)])


def widths_of_limits(cells: Cells) -> Array:
    """Return the median width of the limits of each column; 0 where they are hard."""
    found, limited = np.zeros(cells.values.shape[1]), cells.is_limited
    if cells.errors is not None:
        for j, (errors, rows) in enumerate(zip(cells.errors.T, limited.T, strict=True)):
            if rows.any():
                found[j] = np.median(np.nan_to_num(errors[rows]))
    return found


def warn_of_missing(given: Mapping[str, Any], cells: Cells, known: Mapping[str, Any]) -> None:
    """Warn where columns of new rows had limits or errors in training, and have none now.

    Parameters
    ----------
    given : mapping
        From `given_columns` of the training table.
    cells : Cells
        The new rows.
    known : mapping
        What was passed with them: `lower`, `upper` and `errors`; None if not.
    """
    lost = np.isnan(cells.values)
    names = [
        name
        for name, columns in given.items()
        if known.get(name) is None and (~lost if name == "errors" else lost)[:, columns].any()
    ]
    if names:
        listed = " and ".join(f"{name}=" for name in names)
        warnings.warn(
            f"fit was given {listed}, this call is not: nothing of the kind counts for these rows; "
            f"pass {listed} in the shape of X, NaN where there is none",
            MissingLimitsWarning,
            stacklevel=4,
        )


def check_learnable(X: Array, names: Any) -> None:
    """Refuse columns without any value: nothing can be learned about them."""
    for j in np.flatnonzero(np.isnan(X).all(axis=0)):
        name = f"x{j}" if names is None else names[j]
        raise DataError(
            f"column {str(name)!r} has no value in {len(X)} rows; drop it or join a catalog that "
            "measures it"
        )


def as_arrow(X: Any) -> pa.Table | None:
    """Convert tables to Arrow, except NumPy arrays and pandas frames, for which None is given."""
    if isinstance(X, Table):
        return X.arrow
    if isinstance(X, pa.Table):
        return X
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if hasattr(X, "colnames"):
        return _from_astropy(X)
    return X.to_arrow() if _is_polars(X) else None


_CHECKS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}


def _checked(X: Any, estimator: Any = None) -> Array:
    from sklearn.utils.validation import check_array

    return np.asarray(check_array(X, input_name="X", estimator=estimator, **_CHECKS))


def _from_arrow(table: pa.Table) -> Array:
    return Table.from_arrow(table).numbers(*table.column_names)


def _from_astropy(X: Any) -> pa.Table:
    """Values without units; a masked cell is a gap."""
    columns = {}
    for name in X.colnames:
        column = X[name]
        masked = np.ma.MaskedArray(
            np.asarray(getattr(column, "value", column)), getattr(column, "mask", False)
        )
        columns[name] = masked
    return Table.from_columns(columns).arrow


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "to_arrow")
