"""Classes in a hierarchy: probabilities of groups, and decisions at the level that is sure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import CatalogError, DataError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ClassTree:
    """Groups of classes, which may be members of larger groups.

    Parameters
    ----------
    parents : mapping of str to str
        The group that each class or group belongs to.

    Examples
    --------
    >>> tree = ClassTree({"RRL": "pulsating", "CEPH": "pulsating", "pulsating": "periodic"})
    >>> tree.path("RRL")
    ('periodic', 'pulsating', 'RRL')
    >>> tree.groups(["CEPH", "QSO", "RRL"])
    {'periodic': [0, 2], 'pulsating': [0, 2]}
    """

    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in self.parents:
            self.path(name)

    @classmethod
    def read(cls, path: str | Path) -> ClassTree:
        """Read a TOML file with a line ``CLASS = "GROUP"`` for each member of a group."""
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise CatalogError(f"{path}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CatalogError(f"{path}: not a TOML file ({error})") from None
        return cls.from_facts(found, str(path))

    @classmethod
    def from_facts(cls, facts: Any, place: str = "tree of classes") -> ClassTree:
        """Build from what a file holds; CatalogError where it is no tree."""
        if not isinstance(facts, dict) or not facts:
            raise CatalogError(f'{place}: write a line CLASS = "GROUP" for each member of a group')
        for name, parent in facts.items():
            if not isinstance(parent, str) or not parent or not name:
                raise CatalogError(f'{place}: {name!r} needs the name of a group, as in RRL = "rr"')
        try:
            return cls(dict(facts))
        except DataError as error:
            raise CatalogError(f"{place}: {error}") from None

    def path(self, name: str) -> tuple[str, ...]:
        """Name the groups of a class, the largest first, and the class."""
        found = [name]
        while found[-1] in self.parents:
            found.append(self.parents[found[-1]])
            if found[-1] in found[:-1]:
                raise DataError(f"{found[-1]!r} is a member of itself")
        return tuple(reversed(found))

    def check(self, classes: Sequence[str]) -> None:
        """Refuse a tree whose leaves are not classes, or with groups that are."""
        groups = set(self.parents.values())
        unknown = [name for name in self.parents if name not in groups and name not in classes]
        if unknown:
            known = ", ".join(classes)
            raise DataError(f"no class {', '.join(unknown)} for the tree; the classes are {known}")
        both = sorted(groups & set(classes))
        if both:
            raise DataError(f"{', '.join(both)} in the tree: a class cannot be a group, too")

    def groups(self, classes: Sequence[str]) -> dict[str, list[int]]:
        """Places of the classes of every group, the largest groups first."""
        found: dict[str, list[int]] = {}
        for k, name in enumerate(classes):
            for group in self.path(name)[:-1]:
                found.setdefault(group, []).append(k)
        return dict(sorted(found.items(), key=lambda item: len(self.path(item[0]))))

    def levels(self, classes: Sequence[str]) -> list[list[str]]:
        """Names of the classes at each level above themselves, the top first."""
        paths = [self.path(name) for name in classes]
        depth = max(map(len, paths))
        return [[path[min(k, len(path) - 1)] for path in paths] for k in range(depth - 1)]


def sum_groups(P: Array, groups: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """Probabilities of groups: the sums over their classes."""
    # One by one: along an axis, the last bits would depend on the number of rows.
    return {name: np.asarray(sum(P[:, k] for k in members)) for name, members in groups.items()}


def decide(P: Array, classes: Sequence[str], tree: ClassTree, sure: float) -> NDArray[Any]:
    """Name the smallest group, or the class, that is at least as probable as `sure`.

    Parameters
    ----------
    P : array of shape (n, classes)
    sure : float
        Above 0.5, so that no two disjoint groups can both reach it.

    Returns
    -------
    array of objects
        None where no group is sure.

    Examples
    --------
    >>> tree = ClassTree({"RRL": "pulsating", "CEPH": "pulsating"})
    >>> P = np.array([[0.5, 0.1, 0.4], [0.1, 0.9, 0.0], [0.4, 0.4, 0.2]])
    >>> decide(P, ["CEPH", "QSO", "RRL"], tree, 0.8).tolist()
    ['pulsating', 'QSO', None]
    """
    if not 0.5 < sure <= 1:
        raise DataError(f"the probability of a decision is {sure:g}; choose it above 0.5")
    found = np.full(len(P), None, dtype=object)
    # From the top down: what is sure further down replaces what is above it.
    nodes = sum_groups(P, tree.groups(classes)) | {n: P[:, k] for k, n in enumerate(classes)}
    for name in sorted(nodes, key=lambda name: len(tree.path(name))):
        found[nodes[name] >= sure] = name
    return found
