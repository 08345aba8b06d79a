"""Names and descriptions of the columns that skyfill adds to a table of objects.

No other file spells them out. Rooms below this one are given the names that they need. A prefix
stands before all of them: by this they are known in files that keep names alone. What stands beside
filled values has none; see `skyfill.catalog.filled_names`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from skyfill.catalog import ColumnInfo, Role, Table, with_guessed_roles
from skyfill.catalog.filled_names import BEFORE, before_info, before_name, is_filled_part

# Of results, where the user chooses no other.
PREFIX = "sf_"
CLASS, OUTLIER = "class", "outlier"
# With a tree of classes: the smallest group that is sure.
CLASS_SURE = "class_sure"
ENTROPY, GAP_SHARE, OUTLIER_SCORE = "entropy", "gap_share", "outlier_score"
COUNTERPART_SHARE = "counterpart_share"
TRAINED_ON = "trained_on"
# Of a list of candidates.
RANK, MEMBERSHIP, NEW, IN_LIST = "rank", "probability", "new", "in_"
EVIDENCE = {"evidence_for": "for", "evidence_against": "against"}
# Of the next measurement.
NEXT, NEXT_BITS, NEXT_ENTROPY, BITS = "next", "next_bits", "next_entropy", "bits_"
# Where a table keeps, for each prefix, how it was classified.
CLASSIFIED = "classified"
# Results that are numbers, apart from the probabilities of the classes.
NUMBERS = (ENTROPY, GAP_SHARE, OUTLIER_SCORE)

_PROBABILITY, _GROUP = "p_", "any_"
# Probabilities of counterparts, not of classes.
_OF_COUNTERPARTS = ("p_any", "p_i")
_INFOS = {
    CLASS: ColumnInfo(None, "src.class", "Most probable class", Role.LABEL),
    CLASS_SURE: ColumnInfo(None, "src.class", "Smallest group of classes that is sure"),
    ENTROPY: ColumnInfo("bit", "stat.param", "Entropy of the class probabilities"),
    GAP_SHARE: ColumnInfo(
        None, "stat.param", "Share of the entropy that would vanish if the gaps were measured"
    ),
    COUNTERPART_SHARE: ColumnInfo(
        None, "stat.param", "Share of the entropy that would vanish if the counterpart were known"
    ),
    OUTLIER: ColumnInfo(
        None, "meta.code.qual", "Whether it is less likely than 99.9 % of the training objects"
    ),
    TRAINED_ON: ColumnInfo(
        None, "meta.code.qual", "Whether the model was trained on it, and so knew its class"
    ),
    OUTLIER_SCORE: ColumnInfo(
        None, "stat.param", "Minus log10 of the share of training objects that are less likely"
    ),
}


def probability_name(name: str) -> str:
    """Name the column that holds the probability of a class.

    Examples
    --------
    >>> probability_name("QSO")
    'p_QSO'
    """
    return f"{_PROBABILITY}{name}"


def group_name(name: str) -> str:
    """Name the column that holds the probability of a group of classes.

    Examples
    --------
    >>> group_name("pulsating")
    'any_pulsating'
    """
    return f"{_GROUP}{name}"


def probability_columns(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Find the classes among the columns of a table of results, and their probabilities.

    Examples
    --------
    >>> probability_columns(["id", "class", "p_QSO", "p_RRL"])
    {'QSO': 'p_QSO', 'RRL': 'p_RRL'}
    """
    start = prefix + _PROBABILITY
    own = (n for n in names if n.startswith(start) and n not in _OF_COUNTERPARTS)
    return {n.removeprefix(start): n for n in own if n != start}


def class_columns(table: Table, asked: str = "") -> dict[str, str]:
    """Find the classes of a table of results, and the columns of their probabilities.

    `asked` stands before the names of the results, if it is known; see `results_prefix`.
    """
    prefix = results_prefix(table, asked)
    found = probability_columns(table.names, prefix)
    known = _records(table).get(prefix, {}).get("classes", found)
    return {kind: name for kind, name in found.items() if kind in known}


def with_record(table: Table, prefix: str, record: Mapping[str, Any]) -> Table:
    """Let a table remember how it was classified: which columns are results, and their likeness."""
    records = {key: each for key, each in _records(table).items() if key != prefix}
    return table.with_meta(**{CLASSIFIED: json.dumps(records | {prefix: record})})


def record_of(table: Table, prefix: str = "") -> dict[str, Any] | None:
    """Return how a table says that it was classified; None where it does not."""
    return _records(table).get(results_prefix(table, prefix))


def _records(table: Table) -> dict[str, dict[str, Any]]:
    """Read the records of a table, as far as they are some: any program may have changed it."""
    try:
        found = json.loads(table.meta.get(CLASSIFIED, "{}"))
    except (ValueError, RecursionError):
        return {}
    records = found.items() if isinstance(found, dict) else ()
    return {
        key: each
        for key, each in records
        if isinstance(each, dict) and isinstance(each.get("classes", []), list)
    }


def results_prefix(table: Table, asked: str = "") -> str:
    """Find what stands before the names of the results of classifying.

    What was asked for, where results have it; else `PREFIX`; else what the table remembers; else,
    as plain text remembers nothing, what stands before all that classifying writes. Of several,
    none, or the last one.

    Examples
    --------
    >>> table = Table.from_columns({"class": ["?"], "p_QSO": [1.0], "my_class": ["RRL"]})
    >>> results_prefix(table), results_prefix(with_record(table, "my_", {}))
    ('', 'my_')
    """
    for start in filter(None, (asked, PREFIX)):
        if probability_columns(table.names, start):
            return start
    ends = (CLASS, OUTLIER, *NUMBERS)
    starts = [n.removesuffix(CLASS) for n in table.names if n.endswith(CLASS)]
    known = [start for start in starts if start in _records(table)] or [
        start
        for start in starts
        if {start + end for end in ends} <= set(table.names)
        and probability_columns(table.names, start)
    ]
    return "" if not known or "" in known else known[-1]


def result_info(name: str) -> ColumnInfo | None:
    """Describe a column that classifying adds; None for any other name.

    Examples
    --------
    >>> result_info("p_QSO").description
    'Probability of class QSO'
    """
    for kind in probability_columns([name]):
        return ColumnInfo(None, "stat.probability;src.class", f"Probability of class {kind}")
    if name.startswith(_GROUP) and name != _GROUP:
        text = f"Probability of any class of the group {name.removeprefix(_GROUP)}"
        return ColumnInfo(None, "stat.probability;src.class", text)
    return _INFOS.get(name)


def own_info(name: str) -> ColumnInfo | None:
    """Describe a result by its name with `PREFIX`; None for any other name.

    Examples
    --------
    >>> own_info("sf_p_QSO").description
    'Probability of class QSO'
    >>> own_info("p_QSO"), own_info("sf_rate")
    (None, None)
    """
    return _plain_info(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def _plain_info(name: str) -> ColumnInfo | None:
    """Describe a result of any command by its name without a prefix."""
    return result_info(name) or candidate_info(name) or next_info(name)


def candidate_info(name: str) -> ColumnInfo | None:
    """Describe a column of a list of candidates; None for any other name."""
    lists = [name.removeprefix(IN_LIST)] if name.startswith(IN_LIST) else []
    infos = candidate_infos(None, lists or [""], with_evidence=True)
    return infos.get(name) if name != IN_LIST else None


def next_info(name: str) -> ColumnInfo | None:
    """Describe a column about the next measurement; None for any other name."""
    gains = [name.removeprefix(BITS)] if name.startswith(BITS) and name != BITS else []
    return next_infos(gains).get(name)


def result_columns(table: Table) -> set[str]:
    """Name the columns that an earlier run added: by their names or their descriptions.

    Names of results of a classifier without `PREFIX` count only where two of them stand together.

    Examples
    --------
    >>> columns = {"V": [17.2], "class": ["RRL"], "p_RRL": [0.9], "entropy": [0.5], "outlier": [0]}
    >>> sorted(result_columns(Table.from_columns(columns)))
    ['class', 'entropy', 'outlier', 'p_RRL']
    >>> sorted(result_columns(Table.from_columns({"sf_rank": [1], "sf_rate": [0.5]})))
    ['sf_rank']
    """
    words = {info.description for info in (*_INFOS.values(), *next_infos(()).values())}
    found = {n for n in table.names if own_info(n) or table.info(n).description in words}
    found |= {n for n in table.names if table.info(n) == before_info(without_before(n))}
    start = results_prefix(table)
    own = [start + name for name in _INFOS if name != CLASS and start + name in table.names]
    if len(own) > 1:
        behind = [n for n in table.names if n.startswith(start)]
        found |= {n for n in behind if result_info(n.removeprefix(start))}
    return found


def without_results(
    table: Table, prefix: str, info: Callable[[str], ColumnInfo | None] | None = None
) -> Table:
    """Drop what an earlier run added with this prefix: known by name, or by its description.

    Parameters
    ----------
    table : Table
    prefix : str
    info : callable, optional
        Describes the results of a command: `candidate_info`, `next_info`; `result_info` by default.

    Examples
    --------
    >>> columns = {"V": [17.2], "sf_class": ["RRL"], "sf_p_RRL": [0.9], "sf_rank": [1]}
    >>> without_results(Table.from_columns(columns), "sf_").names
    ('V', 'sf_rank')
    """
    known = {n: (info or result_info)(n.removeprefix(prefix)) for n in table.names
             if n.startswith(prefix)}  # fmt: skip
    return table.drop([n for n, found in known.items()
                       if found and (prefix == PREFIX or table.info(n) == found)])  # fmt: skip


def after_identifier(table: Table, new: Sequence[str]) -> Table:
    """Put columns behind the first identifier, or first; all others keep their order.

    Examples
    --------
    >>> table = Table.from_columns({"ra": [80.0], "id": ["a"], "V": [17.2], "sf_class": ["RRL"]})
    >>> after_identifier(table, ["sf_class"]).names
    ('ra', 'id', 'sf_class', 'V')
    """
    rest = table.drop(list(new))
    known = with_guessed_roles(Table(rest.arrow.schema.empty_table()))
    first = next(iter(known.names_with(Role.IDENTIFIER)), None)
    place = 0 if first is None else rest.names.index(first) + 1
    return table.select([*rest.names[:place], *new, *rest.names[place:]])


def without_before(name: str) -> str:
    """Return the name that a column of the user had before `without_prefix`."""
    return name.removesuffix(BEFORE)


def without_prefix(table: Table, prefix: str, features: Collection[str] = ()) -> Table:
    """Give results their plain names; columns that have these become ``<name>_was``.

    A result that has the name of a feature keeps its prefix.

    Examples
    --------
    >>> without_prefix(Table.from_columns({"class": ["?"], "sf_class": ["QSO"]}), "sf_").names
    ('class_was', 'class')
    """
    if not prefix:
        return table
    ends = {n: n.removeprefix(prefix) for n in table.names if n.startswith(prefix)}
    plain = {n: end for n, end in ends.items() if _plain_info(end) and end not in features}
    taken = set(plain.values())
    names = [plain.get(n, before_name(n) if n in taken else n) for n in table.names]
    fields = [f.with_name(n) for f, n in zip(table.arrow.schema, names, strict=True)]
    schema = pa.schema(fields, metadata=table.arrow.schema.metadata)
    renamed = Table(pa.Table.from_arrays(table.arrow.columns, schema=schema))
    if not (classes := list(class_columns(table, prefix))):
        return renamed
    return with_record(renamed, "", (record_of(table, prefix) or {}) | {"classes": classes})


def filled_columns(table: Table) -> set[str]:
    """Name the columns of a filled table that mark which of its cells were filled."""
    filled = {table.info(name).of for name in table.names if is_filled_part(table, name)}
    return {name for name in table.names_with(Role.REASON) if table.info(name).of in filled}


def candidate_infos(
    kind: str | None = None, lists: Iterable[str] = (), *, with_evidence: bool = False
) -> dict[str, ColumnInfo]:
    """Describe the columns of a list of candidates of a class, and of what they were compared with.

    Examples
    --------
    >>> list(candidate_infos("QSO", ["old"]))
    ['rank', 'probability', 'in_old', 'new']
    """
    of = "the class" if kind is None else f"class {kind}"
    infos = {
        RANK: ColumnInfo(None, "meta.code", "Rank, the most probable first"),
        MEMBERSHIP: ColumnInfo(None, "stat.probability;src.class", f"Probability of {of}"),
    }
    for name, word in EVIDENCE.items() if with_evidence else ():
        text = f"Strongest evidence {word} the class: features and the log2 odds that each adds"
        infos[name] = ColumnInfo(ucd="meta.note", description=text)
    held = {f"{IN_LIST}{name}": f"Whether the list {name} contains it" for name in lists}
    held |= {NEW: "In none of the lists"} if held else {}
    return infos | {n: ColumnInfo(ucd="meta.code", description=text) for n, text in held.items()}


def next_infos(measurements: Iterable[str]) -> dict[str, ColumnInfo]:
    """Describe what is written about the next measurement of an object.

    Examples
    --------
    >>> list(next_infos(["J"]))
    ['next_entropy', 'next', 'next_bits', 'bits_J']
    """
    gain = "Expected information about the class from"
    words = {
        NEXT_ENTROPY: "Entropy of the class without further measurements",
        NEXT: "Measurement with the largest expected information about the class",
        NEXT_BITS: f"{gain} that measurement",
        **{f"{BITS}{name}": f"{gain} {name}" for name in measurements},
    }
    return {n: ColumnInfo(None if n == NEXT else "bit", None, w) for n, w in words.items()}
