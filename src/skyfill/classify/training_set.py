"""A training set: labels of its rows, the folds they are dealt to, columns not to be learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Role, Table, judge
from skyfill.catalog.class_labels import class_texts, is_gap, look_alike
from skyfill.catalog.roles import LEAKS
from skyfill.catalog.schema import sentinel_line
from skyfill.catalog.table import nearest
from skyfill.errors import CatalogError, DataError, counted, shortened

Codes = NDArray[np.intp]
# A column with more values is no label.
MOST_CLASSES = 300
# Positions and identifiers would be memorized; labels are what is to be predicted.
NO_FEATURES = (Role.IDENTIFIER, Role.POSITION, Role.LABEL, Role.REASON)


class Labels(NamedTuple):
    """Labels of the rows that have one.

    `known` marks those rows of the table; `codes` are places in `classes`.
    """

    known: NDArray[np.bool_]
    codes: Codes
    classes: NDArray[Any]


def read_labels(y: Any) -> Labels:
    """Find the rows with a label, and the classes; blanks around a label do not count.

    A label that is None, NaN, masked or blank is missing.

    Examples
    --------
    >>> labels = read_labels(["RRL", None, "QSO", " ", "RRL "])
    >>> labels.known.tolist(), labels.codes.tolist(), labels.classes.tolist()
    ([True, False, True, False, True], [1, 0, 1], ['QSO', 'RRL'])
    """
    from sklearn.utils.multiclass import check_classification_targets

    given = _stripped(np.asarray(y.to_pylist() if hasattr(y, "to_pylist") else unmasked_labels(y)))
    known = ~np.array([is_gap(value) for value in given.tolist()], bool)
    values = given[known]
    if not len(values):
        raise DataError("no row has a class label; give labels of at least two classes")
    if values.dtype == object:
        values = _of_one_type(values)
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            raise DataError("Input y contains infinity, which is not a class")
        check_classification_targets(values)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"all labels are of one class, {classes[0]!s}: a classifier needs two classes or more"
        )
    return Labels(known, codes.ravel(), classes)


def weighed(labels: Labels, weights: NDArray[np.float64]) -> tuple[Labels, NDArray[np.float64]]:
    """Take the labels of rows without weight away; return the weights of the others.

    A class none of whose rows has weight is no class.
    """
    known = labels.known.copy()
    known[known] = weights[labels.known] > 0
    words = np.full(len(known), None, dtype=object)
    words[labels.known] = labels.classes[labels.codes]
    words[~known] = None
    left = read_labels(words)
    return left, weights[left.known]


def class_weights(wish: Any, labels: Labels) -> dict[int, float] | None:
    """Weight of each class by its code; classes that are not in a dict weigh 1."""
    if wish is None:
        return None
    if isinstance(wish, Mapping):
        return {c: float(wish.get(name, 1.0)) for c, name in enumerate(labels.classes)}
    if wish != "balanced":
        raise DataError(f'class_weight must be a dict, "balanced" or None, not {wish!r}')
    counts = np.bincount(labels.codes)
    return dict(enumerate((len(labels.codes) / (len(counts) * counts)).tolist()))


def unmasked_labels(y: Any) -> Any:
    """Put None where an array of labels is masked; return anything else as it is.

    Examples
    --------
    >>> unmasked_labels(np.ma.array(["QSO", "RRL"], mask=[False, True])).tolist()
    ['QSO', None]
    """
    if not isinstance(y, np.ma.MaskedArray) or not np.ma.getmaskarray(y).any():
        return np.asarray(y) if isinstance(y, np.ma.MaskedArray) else y
    words = np.array(y, dtype=object)
    words[np.ma.getmaskarray(y)] = None
    return words


def merged(texts: Iterable[str | None], names: Mapping[str, str]) -> list[str | None]:
    """Give classes the names to which they are merged; DataError where there is no such class.

    Examples
    --------
    >>> merged(["YSO?", "AGN", None], {"YSO?": "YSO"})
    ['YSO', 'AGN', None]
    """
    known = list(texts)
    lost = sorted(set(names) - set(known))
    if lost:
        classes = sorted({text for text in known if text is not None})
        hints = "; ".join(
            f"no class {name!r}, {nearest(name, classes, 'classes')}" for name in lost
        )
        raise DataError(f"cannot merge: {hints}")
    return [None if text is None else names.get(text, text) for text in known]


class ClassCounts(NamedTuple):
    """Objects of each class of a column, and the rows whose label is a word that means no class.

    Parameters
    ----------
    label : str
        Name of the column.
    classes, words : mapping of str to int
    without : int
        Rows without a class, those of `words` among them.
    """

    label: str
    classes: Counter[str]
    words: Counter[str]
    without: int = 0

    @classmethod
    def of(cls, table: Table, label: str, unlabelled: Collection[str]) -> ClassCounts:
        """Count the rows of a table.

        Examples
        --------
        >>> from skyfill.catalog import Schema
        >>> table = Table.from_columns({"kind": ["RRL", "?", "unid ", "unid", None, "RRL"]})
        >>> ClassCounts.of(table, "kind", Schema().unlabelled("kind")).words
        Counter({'unid': 2, '?': 1})
        """
        found, texts = (class_texts(table, label, words) for words in (unlabelled, ()))
        kept, lost = Counter(found.tolist()), Counter(texts[found == None].tolist())  # noqa: E711
        without = kept.pop(None, 0)
        lost.pop(None, 0)
        return cls(label, kept, lost, without)

    def __add__(self, other: Any) -> ClassCounts:
        """Add the rows of another part of the table."""
        classes, words = self.classes + other.classes, self.words + other.words
        return ClassCounts(self.label, classes, words, self.without + other.without)

    def assumed(self) -> str:
        """Say which words count as no label, in one line; empty where there are none."""
        if not self.words:
            return ""
        listed = shortened(
            [f"{word} ({counted(row=n)})" for word, n in self.words.most_common()], 130
        )
        how = f"--declare '{sentinel_line(self.label, [])}' keeps them as classes"
        return f"labels that count as unlabelled: {listed} ({how})"

    def rare(self, least: int) -> dict[str, int]:
        """Name the classes of fewer objects than needed."""
        return {name: n for name, n in sorted(self.classes.items()) if n < least}

    def doubts(self, least: int) -> list[str]:
        """Say what may be wrong with the classes, each kind in one line."""
        lines, how = [], "--merge CLASS,...=NAME"
        if rare := self.rare(least):
            listed = shortened([f"{name} ({n})" for name, n in rare.items()], 130)
            what = f"classes with fewer than {least} objects count as unlabelled"
            lines.append(f"{what}: {listed}; merge them with {how}")
        if groups := look_alike(self.classes):
            listed = shortened([" and ".join(map(repr, group)) for group in groups], 130)
            what = "classes that differ only in blanks, case or a colon at the end"
            lines.append(f"{what}: {listed}; {how} takes them for one")
        return lines

    def check(self, least: int) -> None:
        """Refuse a column that names objects rather than classes, or only one class."""
        rare, n_all = self.rare(least), len(self.classes)
        kept = [name for name in self.classes if name not in rare]
        if len(kept) > MOST_CLASSES or (not kept and n_all > 1):
            why = (
                f"more than {MOST_CLASSES} classes"
                if kept
                else f"none in {counted(row=least)} or more"
            )
            raise DataError(
                f"column {self.label!r} has {n_all} different values, {why}: is it an identifier? "
                "Name another column, or drop rare classes (--min-class)"
            )
        if len(kept) < 2:
            what = f"all labels are of one class, {kept[0]}" if kept else "no label"
            raise DataError(
                f"column {self.label!r}: {what}; a classifier needs two classes of "
                f"{counted(object=least)} or more"
            )


def _stripped(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind == "U":
        return np.char.strip(y)
    if y.dtype != object:
        return y
    texts = [value.strip() if isinstance(value, str) else value for value in y]
    return np.array(texts, dtype=object)


def _of_one_type(values: NDArray[Any]) -> NDArray[Any]:
    """Keep objects of one type as they are; texts and numbers mixed become texts."""
    kinds = {type(value) for value in values}
    return np.array(values.tolist() if len(kinds) == 1 else [str(value) for value in values])


def deal_folds(
    codes: Codes, n_folds: int, rng: np.random.Generator, groups: Codes | None = None
) -> Codes:
    """Deal the rows of each class to folds in turn, in random order.

    Folds differ by at most one row, also within each class. The only row of a class is in no fold
    (-1): it is always learned from. Rows of one group are in one fold; then all this holds for
    groups, whose class is that of their first row.

    Examples
    --------
    >>> fold = deal_folds(np.array([0] * 6 + [1] * 4), 2, np.random.default_rng(0))
    >>> np.bincount(fold).tolist(), np.bincount(fold[6:]).tolist()
    ([5, 5], [2, 2])
    """
    if groups is not None:
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        return deal_folds(codes[first], n_folds, rng)[group.ravel()]
    fold = np.full(len(codes), -1, np.intp)
    dealt = 0
    for c in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == c))
        if len(rows) > 1:
            fold[rows] = (dealt + np.arange(len(rows))) % n_folds
            dealt += len(rows)
    return fold


def check_features(
    table: Table, names: Sequence[str], force: Sequence[str] = (), label: str | None = None
) -> None:
    """Refuse identifiers, positions, labels and reasons, unless `force` names them.

    Where a class is to be learned, roles are guessed where none is set, and whatever may give the
    class away is refused as well: dates, results of other classifiers, truths of simulations.

    Examples
    --------
    >>> table = Table.from_columns({"ra": [80.0]}).with_info("ra", role="position")
    >>> check_features(table, ["ra"], force=["ra"])
    >>> check_features(table, ["ra"])
    Traceback (most recent call last):
    skyfill.errors.CatalogError: must not be learned: ra (position); leave out, set the role ...

    """
    if label is None:
        why = {name: str(table.info(name).role) for name in names if name not in force}
        why = {name: role for name, role in why.items() if role in NO_FEATURES}
    else:
        found = judge(Table(table.arrow.schema.empty_table()), label)
        why = {name: found[name].kind for name in names if name not in force
               and (found[name].role in NO_FEATURES or found[name].why in LEAKS)}  # fmt: skip
    if why:
        listed = shortened([f"{name} ({kind})" for name, kind in why.items()], 90)
        raise CatalogError(
            f"must not be learned: {listed}; leave out, set the role to feature, or take all the "
            f"same (--force {shortened(why, 30, ',')})"
        )
