"""Guess the roles of columns from names, UCDs and units; applied only on request."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from skyfill.catalog.column_info import GAP_SUFFIX, ColumnInfo, Role
from skyfill.catalog.table import Table

_IDENTIFIER = re.compile(
    r"(.*[_ ])?(id|ident|name|designation|objid|starid|source_?id|objname)(_\w{1,4})?|unnamed: 0",
    re.IGNORECASE,
)
_POSITION = re.compile(
    r"(?!(pm|e|err|error|sig|sigma)_)(\w+_|_)?(ra|de|dec|glon|glat|elon|elat|lon|lat)(_?j?2000|[_.]?icrs|_?deg|_?rad|j)?"
    r"|right_?ascension|declination|ra(rad|deg|hms)|dec?(rad|deg|dms)|(asc|dec)_[dms]",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(\w*_)?(class|label|type|classification|spclass|sptype|otype|category)", re.IGNORECASE
)
# Results of other classifiers: they know the answer, or another program's opinion of it.
_PROBABILITY = re.compile(
    r"p_(?!(rot|orb|lc|ls|days?|\d+)$)\w+|p_?(any|qso|agn|stars?|gal|galaxy)"
    r"|(\w+_)?(prob|probability|likelihood|confidence|score)(_\w+)?"
    r"|(\w+_)?(class|type|label)_?(id|code|num|no|\d+)|classprob\w*",
    re.IGNORECASE,
)
# Names of the error or the limit of a column.
_ERRORS = ("e_{}", "{}_err", "{}_error", "err_{}", "error_{}", "sigma_{}", "{}_sigma", "e{}",
           "{}err", "d{}", "{}_unc", "{}e", "{}Err", "sig_{}", "{}_sig", "sd_{}")  # fmt: skip
_LIMITS = ("{}_limit", "{}_lim", "{}lim", "l_{}", "limit_{}")
_FEATURE_UCDS = ("phot", "time.period", "src.var", "stat.", "spect", "em.", "phys", "pos.pm",
                 "pos.parallax", "arith", "time.duration")  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """A role that a column seems to have.

    Parameters
    ----------
    role : Role
        The guess.
    of : str, optional
        For an error, a limit or a reason: the column to which it belongs.
    why : str
        What the guess is based on.
    """

    role: Role
    of: str | None = None
    why: str = ""


def guess_roles(schema: pa.Schema) -> dict[str, Guess]:
    """Guess the role of every column that has none.

    Examples
    --------
    >>> schema = pa.schema([("ra", "float64"), ("J", "float64"), ("e_J", "float64")])
    >>> {name: str(guess.role) for name, guess in guess_roles(schema).items()}
    {'ra': 'position', 'J': 'feature', 'e_J': 'error'}
    """
    infos = {field.name: ColumnInfo.from_metadata(field.metadata) for field in schema}
    unset = [field for field in schema if infos[field.name].role is Role.OTHER]
    guesses = {field.name: _guess(field, infos) for field in unset}
    return {n: guess for n, guess in guesses.items() if guess and guess.role is not Role.OTHER}


def is_identifier_name(name: str) -> bool:
    """Whether a column is named like an identifier.

    Examples
    --------
    >>> is_identifier_name("source_id"), is_identifier_name("Jmag")
    (True, False)
    """
    return _IDENTIFIER.fullmatch(name) is not None


def is_probability_name(name: str) -> bool:
    """Whether a column is named like the probability or the class of another classifier.

    Examples
    --------
    >>> is_probability_name("P_AGN"), is_probability_name("period")
    (True, False)
    """
    return _PROBABILITY.fullmatch(name) is not None


def with_guessed_roles(table: Table) -> Table:
    """Set the roles that `guess_roles` finds; existing roles are kept.

    Examples
    --------
    >>> with_guessed_roles(Table.from_columns({"J": [14.2], "class": ["RRL"]})).info("class").role
    <Role.LABEL: 'label'>
    """
    for name, guess in guess_roles(table.arrow.schema).items():
        table = table.with_info(name, role=guess.role, of=guess.of)
    return table


def _guess(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
    return next(filter(None, (rule(field, infos) for rule in _RULES)), None)


def _reason(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
    of = field.name.removesuffix(GAP_SUFFIX)
    is_text = pa.types.is_string(field.type)
    return Guess(Role.REASON, of, "name") if of != field.name and of in infos and is_text else None


def _by_ucd(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
    ucd = (infos[field.name].ucd or "").lower()
    why = f"UCD {ucd}"
    if ucd.startswith("stat.error"):
        return Guess(Role.ERROR, _owner(field.name, infos, _ERRORS), why)
    if not {"stat.min", "stat.max"}.isdisjoint(ucd.split(";")):
        # Beside the column of its name; alone it is a feature, as the faintest magnitude of a star.
        owner = _owner(field.name, infos, _LIMITS)
        if owner or ucd.startswith("stat"):
            return Guess(Role.LIMIT, owner, why)
    for role, starts in _UCDS.items():
        if ucd.startswith(starts):
            return Guess(role, None, why)
    return None


_UCDS: dict[Role, tuple[str, ...]] = {
    Role.IDENTIFIER: ("meta.id",),
    Role.POSITION: ("pos.eq", "pos.galactic", "pos.ecliptic"),
    Role.LABEL: ("src.class", "meta.code.class", "src.sptype"),
    Role.FEATURE: _FEATURE_UCDS,
}


def _companion(patterns: Iterable[str], role: Role) -> Callable[..., Guess | None]:
    def rule(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
        of = _owner(field.name, infos, patterns) if _is_number(field.type) else None
        return Guess(role, of, f"name, beside {of}") if of else None

    return rule


def _owner(name: str, infos: dict[str, ColumnInfo], patterns: Iterable[str]) -> str | None:
    return next((n for n in infos for p in patterns if n != name and p.format(n) == name), None)


def _by_name(pattern: re.Pattern[str], role: Role) -> Callable[..., Guess | None]:
    def rule(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
        return Guess(role, None, "name") if pattern.fullmatch(field.name) else None

    return rule


def _feature(field: pa.Field, infos: dict[str, ColumnInfo]) -> Guess | None:
    unit = infos[field.name].unit
    if unit and _is_number(field.type):
        return Guess(Role.FEATURE, None, f"unit {unit}")
    return Guess(Role.FEATURE, None, "a real number") if pa.types.is_floating(field.type) else None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


_RULES = (
    _reason,
    _by_ucd,
    _companion(_LIMITS, Role.LIMIT),
    _companion(_ERRORS, Role.ERROR),
    _by_name(_POSITION, Role.POSITION),
    _by_name(_IDENTIFIER, Role.IDENTIFIER),
    _by_name(_LABEL, Role.LABEL),
    _by_name(_PROBABILITY, Role.OTHER),
    _feature,
)
