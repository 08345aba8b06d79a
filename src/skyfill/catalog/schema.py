"""What the user declares about a file, in TOML or options: roles, units and sentinels."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from skyfill.catalog.class_labels import UNLABELLED
from skyfill.catalog.column_info import ColumnInfo, Reason, Role, as_role
from skyfill.catalog.file_io import reading
from skyfill.catalog.limit_rules import DEPTH, LIMITS, RULES, apply_limits
from skyfill.catalog.sentinels import Sentinel, can_hold, declare
from skyfill.catalog.table import Table, nearest
from skyfill.catalog.units import in_unit
from skyfill.errors import CatalogError

# Values that mean a gap, by its reason; `sentinels` are rejected.
_REASONS = {
    "sentinels": Reason.REJECTED,
    **{str(reason): reason for reason in (Reason.UNDETECTED, Reason.UNCOVERED, Reason.UNMATCHED)},
}
_KEYS = {*ColumnInfo.__dataclass_fields__, *_REASONS, "convert", "text", LIMITS, DEPTH}
_KINDS: dict[str, tuple[Any, str]] = {
    **{key: (list, "a list") for key in _REASONS},
    "text": (bool, "true or false"),
    DEPTH: (int | float, "a number"),
}


@dataclass(frozen=True)
class Rule:
    """Facts about the columns that match patterns.

    Parameters
    ----------
    patterns : tuple of str
        Names of columns, or shell patterns such as ``*mag``.
    facts : mapping
        `unit`, `ucd`, `description`, `role`, `of`; `sentinels`, `undetected`, `uncovered` and
        `unmatched`: values that mean a gap with that reason; `limits` and `depth`: see
        `apply_limits`; `convert`, the unit to which the column is converted; and `text`: whether
        a plain text file holds words there, not numbers.
    is_column : bool
        Whether the rule names one column, which must exist.
    """

    patterns: tuple[str, ...]
    facts: Mapping[str, Any]
    is_column: bool = False

    def covers(self, name: str) -> bool:
        """Check whether the rule applies to a column."""
        if name in self.patterns:
            return True
        return not self.is_column and any(fnmatchcase(name, p) for p in self.patterns)


class Layout(NamedTuple):
    """How a plain text file is written.

    `delimiter` separates its cells; `names` are those of its columns, where no line has them; with
    `no_header` and without names, the columns are called col1, col2, ...
    """

    delimiter: str | None = None
    names: tuple[str, ...] = ()
    no_header: bool = False


@dataclass(frozen=True)
class Schema:
    """Rules for the columns of a file; a later rule overrides an earlier one, fact by fact.

    Parameters
    ----------
    rules : tuple of Rule
        From the general to the specific: whole file, surveys, columns, options.
    layout : Layout
        Of a plain text file.

    Examples
    --------
    >>> schema = Schema.from_toml('''
    ...     sentinels = [-99]
    ...     [survey.sage]
    ...     columns = ["*mag"]
    ...     unit = "mag"
    ...     [columns.Jmag]
    ...     role = "feature"
    ... ''')
    >>> table = schema.apply(Table.from_columns({"Jmag": [14.2, -99.0]}))
    >>> table.info("Jmag").unit, table.column("Jmag").to_pylist()
    ('mag', [14.2, None])
    """

    rules: tuple[Rule, ...] = field(default=())
    layout: Layout = Layout()

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """Read the text of a schema file."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CatalogError(f"not a TOML file: {error}") from None
        columns, surveys = _tables(content, "columns"), _tables(content, "survey")
        layout = _read_layout(content)
        rules = [_rule(("*",), content, "the file")]
        for name, facts in surveys.items():
            place = f"survey {name}"
            rules.append(_rule(_patterns(facts.pop("columns", ["*"]), place), facts, place))
        rules += [_rule((n,), f, f"column {n!r}", is_column=True) for n, f in columns.items()]
        return cls(tuple(rule for rule in rules if rule.facts), layout)

    @classmethod
    def from_options(
        cls,
        *,
        roles: Iterable[str] = (),
        units: Iterable[str] = (),
        sentinels: Iterable[str] = (),
        text: Iterable[str] = (),
    ) -> "Schema":
        """Read options of the form ``COLUMN=VALUE``; sentinels are separated by commas.

        `text` names columns that stay text.

        Examples
        --------
        >>> Schema.from_options(sentinels=["J=99.999,-99"]).rules[0].facts
        {'sentinels': [99.999, -99]}
        """
        by_key = {"role": roles, "unit": units, "sentinels": sentinels}
        rules = []
        for key, option in ((k, option) for k, given in by_key.items() for option in given):
            name, equals, word = option.rpartition("=")
            if not (equals and name and word):
                raise CatalogError(f"option {option!r} is not of the form COLUMN=VALUE")
            parts = [_sentinel(part) for part in word.split(",")]
            facts: dict[str, Any] = {key: parts if key == "sentinels" else word}
            if key == "role" and ":" in word:  # error:J, limit:J
                facts = dict(zip(("role", "of"), word.split(":", 1), strict=True))
            rules.append(_rule((name,), facts, f"column {name!r}", is_column=True))
        return cls((*rules, *(Rule((name,), {"text": True}, is_column=True) for name in text)))

    def __add__(self, other: "Schema") -> "Schema":
        delimiter = other.layout.delimiter or self.layout.delimiter
        names = other.layout.names or self.layout.names
        layout = Layout(delimiter, names, other.layout.no_header or self.layout.no_header)
        return Schema(self.rules + other.rules, layout)

    def facts(self, name: str) -> dict[str, Any]:
        """Return all facts that the rules state about a column."""
        covering = (rule.facts for rule in self.rules if rule.covers(name))
        return {key: value for facts in covering for key, value in facts.items()}

    def check(self, names: Iterable[str]) -> None:
        """Refuse rules for columns that do not exist."""
        known = list(names)
        for rule in self.rules:
            if not any(rule.covers(name) for name in known):
                pattern = rule.patterns[0]
                raise CatalogError(f"the schema: no column {pattern!r}; {nearest(pattern, known)}")

    def apply(self, table: Table, *, keep: bool = False) -> Table:
        """Set facts, then turn declared sentinels and limits into gaps, then convert units.

        With `keep`, unit, role and the like that the table states itself are left as they are.
        """
        for name in table.names:
            facts = self.facts(name)
            info = _info(facts, table.info(name) if keep else ColumnInfo())
            table = table.with_info(name, **info) if info else table
            kind = table.column(name).type
            for key, reason in _REASONS.items():
                # A rule for many columns may include some that cannot hold its sentinel.
                values = [v for v in facts.get(key, ()) if self._is_meant(name, v, kind)]
                table = declare(table, {name: values}, reason) if values else table
            table = apply_limits(table, name, facts)
            table = in_unit(table, name, facts["convert"]) if "convert" in facts else table
        return table

    def unlabelled(self, label: str) -> frozenset[str]:
        """Return the words of a column of classes that mean no class.

        The usual ones (`UNLABELLED`), and the sentinels of the column; none where the rules state
        that it has no sentinels. Case and blanks around them do not count.

        Examples
        --------
        >>> schema = Schema.from_toml('columns.kind.sentinels = ["Junk"]')
        >>> sorted(schema.unlabelled("kind") - UNLABELLED)
        ['junk']
        >>> Schema.from_toml("columns.kind.sentinels = []").unlabelled("kind")
        frozenset()
        """
        stated = self.facts(label).get("sentinels")
        if stated == []:
            return frozenset()
        return UNLABELLED | {str(word).strip().casefold() for word in stated or ()}

    def only(self, names: Iterable[str], *, without: Iterable[str] = ()) -> "Schema":
        """Return what the rules state about some columns, one rule for each.

        Parameters
        ----------
        names : iterable of str
        without : iterable of str
            Facts to leave out.

        Examples
        --------
        >>> schema = Schema.from_toml('sentinels = [-99]')
        >>> schema.only(["J"]).to_dict()
        {'J': {'sentinels': [-99]}}
        """
        left_out = set(without)
        facts = {name: self.facts(name) for name in names}
        stated = {n: {k: v for k, v in f.items() if k not in left_out} for n, f in facts.items()}
        return Schema(tuple(Rule((n,), f, is_column=True) for n, f in stated.items() if f))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the facts about each column that a rule names, for JSON."""
        named = [rule.patterns[0] for rule in self.rules if rule.is_column]
        return {name: _plain(self.facts(name)) for name in dict.fromkeys(named)}

    @classmethod
    def from_dict(cls, columns: Mapping[str, Mapping[str, Any]]) -> "Schema":
        """Build a schema from what `to_dict` gives."""
        return cls(
            tuple(_rule((n,), f, f"column {n!r}", is_column=True) for n, f in columns.items())
        )

    def _is_meant(self, name: str, value: Sentinel, kind: Any) -> bool:
        is_named = any(rule.is_column and rule.covers(name) for rule in self.rules)
        return can_hold(kind, value) or is_named


def _info(facts: Mapping[str, Any], own: ColumnInfo) -> dict[str, Any]:
    """Return those facts about a column that it does not state itself."""
    found = {key: facts[key] for key in ColumnInfo.__dataclass_fields__ if key in facts}
    if own.role is not Role.OTHER:
        found = {key: value for key, value in found.items() if key not in ("role", "of")}
    return {k: v for k, v in found.items() if k == "role" or getattr(own, k) is None}


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(value) if key == "role" else value for key, value in facts.items()}


def read_schema(path: str | Path) -> Schema:
    """Read a schema file (TOML)."""
    path = Path(path)
    with reading(path, "schema file"):
        return Schema.from_toml(path.read_text("utf-8"))


def as_schema(schema: "str | Path | Schema") -> Schema:
    """Return a schema, read from a file if a path is given."""
    return schema if isinstance(schema, Schema) else read_schema(schema)


def sentinel_line(name: str, values: Iterable[Sentinel], key: str = "sentinels") -> str:
    """Write the line of a schema file that declares sentinels of a column, or those of a reason.

    Examples
    --------
    >>> sentinel_line("[3.6]", [999.9999])
    'columns."[3.6]".sentinels = [999.9999]'
    """
    listed = ", ".join(_toml_text(v) if isinstance(v, str) else repr(v) for v in values)
    return f"columns.{_toml_key(name)}.{key} = [{listed}]"


def fact_line(name: str, key: str, value: str | float) -> str:
    """Write the line of a schema file that states a fact about a column.

    Examples
    --------
    >>> fact_line("W3", "limits", "no error")
    'columns.W3.limits = "no error"'
    """
    written = _toml_text(value) if isinstance(value, str) else repr(value)
    return f"columns.{_toml_key(name)}.{key} = {written}"


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_text(name)


def _toml_text(text: str) -> str:
    """Quote like JSON, which is valid TOML except for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _tables(content: dict[str, Any], key: str) -> dict[str, dict[str, Any]]:
    found = content.pop(key, {})
    if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
        raise CatalogError(f"{key} in the schema must be tables such as [{key}.NAME]")
    return {name: dict(facts) for name, facts in found.items()}


def _read_layout(content: dict[str, Any]) -> Layout:
    delimiter, names = content.pop("delimiter", None), content.pop("names", [])
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise CatalogError(f"the schema: delimiter must be one character, not {delimiter!r}")
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise CatalogError(f"the schema: names must be a list of names, not {names!r}")
    return Layout(delimiter, tuple(names))


def _patterns(found: Any, place: str) -> tuple[str, ...]:
    """Check names of columns; a single word would be taken for a list of its letters."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise CatalogError(
            f"{place} in the schema: columns must be a list of names or patterns, such as "
            f'["*mag"], not {found!r}'
        )
    return tuple(found)


def _rule(
    patterns: tuple[str, ...], facts: Mapping[str, Any], place: str, *, is_column: bool = False
) -> Rule:
    for key, value in facts.items():
        if key not in _KEYS:
            hint = nearest(key, sorted(_KEYS), "keys")
            raise CatalogError(f"{place} in the schema: no key {key!r}; {hint}")
        expected, words = _KINDS.get(key, (str, "text"))
        if not isinstance(value, expected):
            raise CatalogError(f"{place} in the schema: {key} must be {words}, not {value!r}")
        if key == "sentinels" and not all(isinstance(v, str | int | float) for v in value):
            raise CatalogError(
                f"{place} in the schema: sentinels must be numbers or words, not {value!r}"
            )
    if facts.get(LIMITS, "signs") not in RULES:
        known = ", ".join(map(repr, RULES))
        raise CatalogError(f"{place} in the schema: {LIMITS} must be one of {known}")
    if "role" in facts:
        facts = {**facts, "role": as_role(facts["role"])}
    return Rule(patterns, facts, is_column)


def _sentinel(text: str) -> Sentinel:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
