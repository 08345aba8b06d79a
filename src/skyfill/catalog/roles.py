"""What each column of a table is: one verdict per column, from its name, unit, UCD and values.

The header decides what a column is; its values can only take the role of a feature away from it.
Whoever needs roles that nobody has declared asks `judge`: what it calls a feature is learned from,
what it calls by another name is left out, and it says why.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog.arrays import NUMBER_PATTERN
from skyfill.catalog.brightness import brightness_of
from skyfill.catalog.class_labels import UNLABELLED, class_texts
from skyfill.catalog.column_info import GAP_SUFFIX, ColumnInfo, Role, described
from skyfill.catalog.column_summary import NULL_TEXTS
from skyfill.catalog.table import Table
from skyfill.catalog.usual_values import is_numeric

# Cells and rows of a table that are looked at; every command thins the rows in the same way.
MOST_CELLS, MOST_ROWS = 1 << 24, 1 << 17
# Fewer objects say little about a class; a copy of the class has at most so many values for each.
LEAST_OBJECTS, MOST_VALUES = 10, 3
# A column gives a class away if more of it is found, and more of what is found belongs to it.
TELLS, FOLDS, TREE_ROWS = 0.99, 5, 20_000
# Rows of so many equal values are of one object.
LEAST_EQUAL = 3
# So many whole numbers, the largest above this and hardly any twice, name objects.
LEAST_NAMES, LARGE, DISTINCT = 50, 1e6, 0.99

# Why a column is left out, where its role does not say so.
RESULT = "result of skyfill"
TRUTH = "truth of a simulation"
DATE = "date or time of an observation"
SEPARATION = "separation or number of counterparts"
PROBABILITY = "probability or score of another classifier"
OTHER_CLASS = "another class column"
COPY = "the class again"
INTERVAL = "end of an interval, or a weight"
CORRELATION = "correlation"
CODE = "flag, code or count"
WHOLE = "whole numbers without a unit"
TEXT, AS_TEXT, LOGICAL = "text", "numbers written as text", "true or false"
CONSTANT, EMPTY = "one value only", "no value"
WORDS = "numbers among which is a word"
UNNAMED = "not among the features that the table names"
# What must not be learned even where it is asked for: it is not known of new objects, or tells
# the class because people or programs set both.
LEAKS = (TRUTH, DATE, SEPARATION, PROBABILITY, OTHER_CLASS)


@dataclass(frozen=True)
class Verdict:
    """What a column is.

    Parameters
    ----------
    role : Role
        `Role.OTHER` for what has no role.
    of : str, optional
        For an error, a limit or a reason: the column to which it belongs.
    why : str
        What a role is based on; of `Role.OTHER` what it is instead of a feature.
    example : str
        A cell that keeps a column of numbers from being one.
    tells : tuple of str
        Classes that this feature gives away nearly alone.
    """

    role: Role
    of: str | None = None
    why: str = ""
    example: str = ""
    tells: tuple[str, ...] = ()

    @property
    def is_feature(self) -> bool:
        """Whether it is learned from unless the user chooses."""
        return self.role is Role.FEATURE

    @property
    def kind(self) -> str:
        """What it is, in the words in which columns are listed together."""
        return self.why if self.role is Role.OTHER else str(self.role)


def judge(
    table: Table,
    label: str | None = None,
    *,
    results: Collection[str] = (),
    unlabelled: Collection[str] = UNLABELLED,
) -> dict[str, Verdict]:
    """Say what each column is, and which are features.

    A role that is set holds, but for features without two different values and for copies of the
    class. Where the table names its features, no other column is one.

    Parameters
    ----------
    table : Table
        Without rows, only the header is judged.
    label : str, optional
        Column of the classes.
    results : collection of str
        Columns that an earlier run of skyfill added.
    unlabelled : collection of str
        Words of the column of the classes that mean no class; see `Schema.unlabelled`.

    Examples
    --------
    >>> table = Table.from_columns({"ra": [80.0, 81.0], "J": [14.0, 15.0], "e_J": [0.1, 0.2]})
    >>> {name: str(verdict.role) for name, verdict in judge(table).items()}
    {'ra': 'position', 'J': 'feature', 'e_J': 'error'}
    """
    infos = {name: table.info(name) for name in table.names}
    if label is not None:
        table.info(label)
    header = _Header(infos)
    verdicts = {
        field.name: _of_header(field, header, label, results) for field in table.arrow.schema
    }
    owners = {verdict.of for verdict in verdicts.values() if verdict.role is Role.ERROR}
    names_features = any(info.role is Role.FEATURE for info in infos.values())
    for name, found in verdicts.items():
        if found.why == WHOLE and name in owners:
            verdicts[name] = Verdict(Role.FEATURE, None, "whole numbers with errors")
        if names_features and verdicts[name].is_feature and infos[name].role is not Role.FEATURE:
            verdicts[name] = Verdict(Role.OTHER, None, UNNAMED)
    if not len(table):
        return verdicts
    rows = thinned(table)
    for name, found in verdicts.items():
        verdicts[name] = _of_values(rows.column(name), found, infos[name])
    if label is not None:
        codes, kinds = _class_codes(class_texts(rows, label, unlabelled))
        names = [name for name, found in verdicts.items() if found.is_feature]
        X = rows.numbers(*names)
        use = _for_trees(X, codes)
        for name, values in zip(names, X.T, strict=True):
            if _is_copy(values, codes):
                verdicts[name] = Verdict(Role.OTHER, None, COPY)
            elif len(use) > 1 and (told := _given_away(values[use], codes[use])):
                verdicts[name] = replace(verdicts[name], tells=tuple(kinds[told].tolist()))
    return verdicts


def with_guessed_roles(table: Table) -> Table:
    """Set the roles that the header tells; existing roles are kept.

    Examples
    --------
    >>> with_guessed_roles(Table.from_columns({"J": [14.2], "class": ["RRL"]})).info("class").role
    <Role.LABEL: 'label'>
    """
    schema, fields = table.arrow.schema, []
    for field, found in zip(schema, judge(Table(schema.empty_table())).values(), strict=True):
        info = ColumnInfo.from_metadata(field.metadata)
        guessed = replace(info, role=found.role, of=found.of)
        fields.append(described(field, guessed) if info.role is Role.OTHER else field)
    schema = pa.schema(fields, metadata=schema.metadata)
    return Table(pa.Table.from_arrays(table.arrow.columns, schema=schema))


def is_identifier_name(name: str) -> bool:
    """Whether a column is named like an identifier.

    Examples
    --------
    >>> is_identifier_name("source_id"), is_identifier_name("Jmag")
    (True, False)
    """
    return _IDENTIFIER.fullmatch(name) is not None


def thinning(n_rows: int, n_columns: int) -> int:
    """Say how many rows apart those are that are looked at: a power of two."""
    most, step = max(min(MOST_ROWS, MOST_CELLS // max(n_columns, 1)), 1), 1
    while -(-n_rows // step) > most:
        step *= 2
    return step


def thinned(table: Table) -> Table:
    """Return the rows of a table that are looked at."""
    step = thinning(len(table), len(table.names))
    return table if step == 1 else Table(table.arrow.take(np.arange(0, len(table), step)))


# The header: names, units, UCDs, types.

_IDENTIFIER = re.compile(
    r"(?i:(?:.*[_ ])?(?:id|ident|name|designation|iauname|(?:obj|star|src|source|det|spec)_?id"
    r"|objname)(?:_\w{1,4})?|unnamed: \d+|__index_level_\d+__|recno|_healpix_\d+)"
    r"|\w*[a-z]I[Dd]|Norder|Dir|Npix"
)
# Names of objects, if they are no real numbers: some catalogues have the probability of a star.
_OBJECT = re.compile(r"(?:star|source|object|obj|target)(?:_?(?:no|nr|num|number))?", re.IGNORECASE)
_POSITION = re.compile(
    r"(?!(?:pm|e|err|error|sig|sigma)_)(?:\w+_|_)?(?:ra|de|decl?|glon|glat|elon|elat|lon|lat)"
    r"(?:_?j?2000|[_.]?icrs|_?deg|_?rad|_?mean|j)?"
    r"|right_?ascension|declination|ra(?:rad|deg|hms)|dec?(?:rad|deg|dms)|(?:asc|dec)_[dms]"
    r"|(?:alpha|delta)(?:win|peak|sky)?_?j2000|gal(?:actic)?_?(?:l|b|lon|lat)2?|[lb]ii|radec"
    r"|[xy](?:win|peak)?_image|(?:row|col)c",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:\w*_)?(?:(?:sub)?class|label|(?:sp|spec|obj|var)?_?type|classification|spclass|otype"
    r"|category)",
    re.IGNORECASE,
)
_TRUTH = re.compile(r"(?:.*_)?(?:true|truth)(?:_.*)?", re.IGNORECASE)
_DATE = re.compile(
    r".*[mhb]jd.*|time|(?!n_|num)(?:.*_)?(?:jd|jdate|date|epoch|obs_?(?:date|time)|date_?obs"
    r"|timestamp|time_?obs|time_(?:start|end|stop|first|last))(?:_.*)?",
    re.IGNORECASE,
)
_SEPARATION = re.compile(
    r"(?:\w+_)?(?:sep|separation|ang_?(?:dist|sep)(?:ance)?|(?:match|xm)_?dist(?:ance)?)(?:_\w+)?"
    r"|dist_(?:opt|nn|arcsec|bayesfactor|post)",
    re.IGNORECASE,
)
# Results of other classifiers: they know the answer, or another program's opinion of it.
_PROBABILITY = re.compile(
    r"p_(?!(?:rot|orb|lc|ls|days?|\d+)$)\w+|p_?(?:any|qso|agn|stars?|gal|galaxy)"
    r"|(?:\w+_)?(?:\w{0,4}prob|probability|likelihood|confidence|score)(?:_\w+)?"
    r"|(?:\w+_)?(?:class|type|label)_?(?:id|code|num|no|\d+)|class(?:prob|_star)\w*",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:.*_)?(?:\w{0,4}flags?|flg|qual|quality|code|status|n_?obs|num_(?:points|obs))(?:_\w+)?",
    re.IGNORECASE,
)
_BY_NAME: tuple[tuple[re.Pattern[str], Role, str], ...] = (
    (_POSITION, Role.POSITION, "name"),
    (_IDENTIFIER, Role.IDENTIFIER, "name"),
    (_LABEL, Role.LABEL, "name"),
    (_DATE, Role.OTHER, DATE),
    (_SEPARATION, Role.OTHER, SEPARATION),
    (_PROBABILITY, Role.OTHER, PROBABILITY),
)
_BY_UCD: tuple[tuple[tuple[str, ...], Role, str], ...] = (
    (("meta.id", "meta.record"), Role.IDENTIFIER, ""),
    (("pos.angdistance",), Role.OTHER, SEPARATION),
    (("pos.eq", "pos.galactic", "pos.ecliptic", "pos.cartesian"), Role.POSITION, ""),
    (("src.class", "meta.code.class", "src.sptype"), Role.LABEL, ""),
    (("time.epoch", "time.start", "time.end"), Role.OTHER, DATE),
    (("stat.probability", "stat.likelihood", "stat.rank"), Role.OTHER, PROBABILITY),
    (("stat.correlation", "stat.covariance"), Role.OTHER, CORRELATION),
    (("stat.weight",), Role.OTHER, INTERVAL),
    (("meta.",), Role.OTHER, CODE),
    (("phot", "time.period", "src.var", "stat.", "spect", "em.", "phys", "pos.pm", "pos.parallax",
      "arith", "time.duration"), Role.FEATURE, ""),
)  # fmt: skip

# Parts of a name that turn it into another: without them, it is the name of its neighbor.
_ERROR = re.compile(
    r"(?:uncertainty|uncert|unc|error|err|sigma|sigcom|sig)|^sd_|_sd$|(?-i:^e_)|_e$", re.IGNORECASE
)
_LIMIT = re.compile(r"limit|lim|^l_", re.IGNORECASE)
_INTERVAL = re.compile(r"lower|upper|lolim|hilim|ivar|invvar|_(?:lo|hi|lb|ub|q\d+)$", re.IGNORECASE)
# An error, whatever stands beside it; a ratio to an error is none.
_SURE_ERROR = re.compile(
    r"(?i:(?:.*[^a-z])?[a-z]{0,4}err(?:or)?s?(?:[^a-z].*)?|(?-i:e_).*|(?:.*_)?unc(?:ertainty)?(?:_.*)?"
    r"|(?:.*_)?c?msig(?:com)?(?:_.*)?|sigra(?:dec)?)"
    r"|.*[a-z]Err(?:or)?(?:[^a-z].*)?"
)
_RATIO = re.compile(r".*(?:_over_|_to_|snr).*", re.IGNORECASE)
_SHORT = ("e{}", "{}e", "d{}")


class _Header:
    """The names of a table, to find the one that a longer name belongs to."""

    def __init__(self, infos: Mapping[str, ColumnInfo]) -> None:
        self.infos = infos
        self._by_key: dict[str, list[str]] = {}
        for name in infos:
            self._by_key.setdefault(_key(name.lower()), []).append(name)
        self._short = {form.format(name): name for name in infos for form in _SHORT}

    def owner(self, name: str, part: re.Pattern[str]) -> str | None:
        """Name the column that is left of a name without one of its parts."""
        for found in part.finditer(name):
            rest = name[: found.start()] + name[found.end() :]
            near = [n for n in self._by_key.get(_key(rest.lower()), ()) if n != name]
            if near:
                return next((n for n in near if _key(n) == _key(rest)), near[0])
        return None

    def error_owner(self, name: str) -> str | None:
        """Name the column whose error another is, by its name; ``E_X`` is one beside ``e_X``."""
        if name.startswith("E_") and f"e_{name[2:]}" in self.infos:
            name = f"e_{name[2:]}"
        short = self._short.get(name)
        return self.owner(name, _ERROR) or (short if short != name else None)

    def without_survey(self, name: str) -> str:
        """Return a name without that of a survey behind it, whose separations the table has."""
        surveys = (n.removeprefix("sep") for n in self.infos if n.startswith("sep_"))
        return next((name.removesuffix(end) for end in surveys if name.endswith(end)), name)

    def is_correlation(self, name: str) -> bool:
        """Whether it is the correlation of the errors of two columns."""
        words = name.removesuffix("_corr").split("_")
        pairs = (("_".join(words[:k]), "_".join(words[k:])) for k in range(1, len(words)))
        return name.endswith("_corr") and any(a in self.infos and b in self.infos for a, b in pairs)


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name)


def _of_header(
    field: pa.Field, header: _Header, label: str | None, results: Collection[str]
) -> Verdict:
    """Judge a column by everything but its values."""
    name, kind = field.name, field.type
    info = header.infos[name]
    if name == label:
        return Verdict(Role.LABEL, None, "the class")
    if info.role is not Role.OTHER:
        if info.role is Role.LABEL and label is not None:
            return Verdict(Role.OTHER, None, OTHER_CLASS)
        return Verdict(info.role, info.of, "declared")
    found = Verdict(Role.OTHER, None, RESULT) if name in results else _guess(name, kind, header)
    if found.role is Role.LABEL and label is not None:
        return Verdict(Role.OTHER, None, OTHER_CLASS)
    if found.is_feature and not is_numeric(kind):
        why = LOGICAL if pa.types.is_boolean(kind) else f"type {kind}"
        return Verdict(Role.OTHER, None, TEXT if pa.types.is_string(kind) else why)
    return found


def _guess(name: str, kind: pa.DataType, header: _Header) -> Verdict:  # noqa: PLR0911, PLR0912 - in order
    info, base = header.infos[name], name.removesuffix(GAP_SUFFIX)
    if base != name and base in header.infos and pa.types.is_string(kind):
        return Verdict(Role.REASON, base, "name")
    if _TRUTH.fullmatch(name) and not (info.ucd or "").startswith(("meta.id", "src.class")):
        return Verdict(Role.OTHER, None, TRUTH)
    near = _guess_by_neighbor(name, kind, header)
    # Some catalogues give an error the UCD of the value.
    owner = header.infos.get(near.of or "") if near else None
    is_same = owner is not None and owner.ucd == info.ucd
    if found := (None if is_same else _guess_by_ucd(name, header)) or near:
        return found
    if name in ("l", "b") and {"l", "b"} <= set(header.infos):
        return Verdict(Role.POSITION, None, "names l and b")
    forms = (name, header.without_survey(name))
    for pattern, role, why in _BY_NAME:
        if any(map(pattern.fullmatch, forms)):
            return Verdict(role, None, why)
    if _OBJECT.fullmatch(name) and not pa.types.is_floating(kind):
        return Verdict(Role.IDENTIFIER, None, "name")
    if _SURE_ERROR.fullmatch(name) and is_numeric(kind) and not _RATIO.fullmatch(name):
        return Verdict(Role.ERROR, None, "name")
    if pa.types.is_temporal(kind):
        return Verdict(Role.OTHER, None, DATE)
    if _CODE.fullmatch(name) and is_numeric(kind):
        return Verdict(Role.OTHER, None, CODE)
    if info.unit in ("bit", "byte"):
        return Verdict(Role.OTHER, None, CODE)
    if info.unit:
        return Verdict(Role.FEATURE, None, f"unit {info.unit}")
    if pa.types.is_integer(kind) and brightness_of(name, info) is None:
        return Verdict(Role.OTHER, None, WHOLE)
    return Verdict(Role.FEATURE, None, "a real number")


def _guess_by_ucd(name: str, header: _Header) -> Verdict | None:
    ucd = (header.infos[name].ucd or "").lower()
    why = f"UCD {ucd}"
    if ucd.startswith("stat.error"):
        return Verdict(Role.ERROR, header.error_owner(name), why)
    if not {"stat.min", "stat.max"}.isdisjoint(ucd.split(";")):
        # Beside the column of its name; alone it is a feature, as the faintest magnitude of a star.
        owner = header.owner(name, _LIMIT)
        if owner or ucd.startswith("stat"):
            return Verdict(Role.LIMIT, owner, why)
    for starts, role, reason in _BY_UCD:
        if ucd.startswith(starts):
            return Verdict(role, None, reason or why)
    return None


def _guess_by_neighbor(name: str, kind: pa.DataType, header: _Header) -> Verdict | None:
    """Find the column that this one says more of, by its name."""
    if not is_numeric(kind):
        return None
    if of := header.owner(name, _LIMIT):
        return Verdict(Role.LIMIT, of, f"name, beside {of}")
    if header.owner(name, _INTERVAL):
        return Verdict(Role.OTHER, None, INTERVAL)
    if header.is_correlation(name):
        return Verdict(Role.OTHER, None, CORRELATION)
    if f"sep_{name.removeprefix('sigma_')}" in header.infos:
        return Verdict(Role.OTHER, None, SEPARATION)
    of = header.error_owner(name)
    return Verdict(Role.ERROR, of, f"name, beside {of}") if of else None


# The values: what they can take away.


def _of_values(column: pa.ChunkedArray, found: Verdict, info: ColumnInfo) -> Verdict:
    """Judge a column again, now with its values."""
    if not (found.is_feature or found.why in (TEXT, WHOLE)):
        return found
    seen = column.drop_null()
    if not len(seen):
        return Verdict(Role.OTHER, None, EMPTY)
    if found.why == TEXT:
        found, seen = _of_text(column, info)
    if not found.is_feature:
        return found
    ends = pc.min_max(seen).as_py()
    if ends["min"] == ends["max"]:
        return Verdict(Role.OTHER, None, CONSTANT)
    if found.why != "declared" and not (info.unit or info.ucd) and _names_objects(seen):
        return Verdict(Role.IDENTIFIER, None, "large whole numbers, hardly any twice")
    return found


def _of_text(column: pa.ChunkedArray, info: ColumnInfo) -> tuple[Verdict, pa.ChunkedArray]:
    """Judge text: whether its cells are numbers, and if only some are, which is not."""
    cells = pc.utf8_trim_whitespace(column)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    is_number = pc.match_substring_regex(cells, NUMBER_PATTERN)
    # Not read as numbers, but meant so.
    is_meant = pc.match_substring_regex(cells, r"^[<>~]\s*[+-]?[0-9]|^[+-]?[0-9]+,[0-9]+$")
    is_lost = pc.is_in(pc.utf8_lower(cells), value_set=pa.array(sorted(NULL_TEXTS)))
    n_numbers, n_meant, n_lost = (pc.sum(m).as_py() or 0 for m in (is_number, is_meant, is_lost))
    n_seen = len(cells) - cells.null_count
    if not n_seen:
        return Verdict(Role.OTHER, None, EMPTY), cells
    if n_numbers + n_meant <= (n_seen - n_lost) / 2:
        return Verdict(Role.OTHER, None, TEXT), cells
    row = pc.index(pc.fill_null(is_number, True), False).as_py()
    if row >= 0:
        return Verdict(Role.OTHER, None, WORDS, repr(cells[row].as_py())), cells
    numbers = cells.cast(pa.float64())
    is_whole = pc.all(pc.equal(numbers, pc.floor(numbers))).as_py()
    if is_whole and not info.unit:
        return Verdict(Role.OTHER, None, WHOLE), numbers
    return Verdict(Role.FEATURE, None, AS_TEXT), numbers


def _names_objects(seen: pa.ChunkedArray) -> bool:
    if len(seen) < LEAST_NAMES or not pc.max(pc.abs(seen)).as_py() > LARGE:
        return False
    is_whole = pc.all(pc.equal(seen, pc.floor(seen))).as_py()
    return bool(is_whole and pc.count_distinct(seen).as_py() > DISTINCT * len(seen))


def _class_codes(texts: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Give each row the number of its class; -1 without one, or where it has too few objects."""
    words = ["" if text is None else text for text in texts]
    found, place, counts = np.unique(words, return_inverse=True, return_counts=True)
    enough = (counts >= LEAST_OBJECTS) & (found != "")
    return np.where(enough, np.cumsum(enough) - 1, -1)[place], found[enough]


def _counts(rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count pairs of numbers in a table."""
    shape = rows.max() + 1, columns.max() + 1
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)


def _is_copy(values: NDArray[np.float64], codes: NDArray[np.intp]) -> bool:
    """Whether each value stands for one class, and each class has few values."""
    use = (codes >= 0) & ~np.isnan(values)
    found, place = np.unique(values[use], return_inverse=True)
    kinds, kind = np.unique(codes[use], return_inverse=True)
    if len(kinds) < 2 or len(found) > MOST_VALUES * len(kinds):
        return False
    counts = _counts(place, kind)
    is_one = ((counts > 0).sum(axis=1) == 1) & (counts.sum(axis=1) >= LEAST_OBJECTS)
    return bool(is_one.all() and ((counts > 0).sum(axis=0) <= MOST_VALUES).all())


def _for_trees(X: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Choose rows with a class to judge trees on: some of many, and each object once."""
    rows = np.flatnonzero(codes >= 0)
    rows = rows[:: -(-len(rows) // TREE_ROWS) or 1]
    # Rows of few values may be equal by chance.
    full = (~np.isnan(X[rows])).sum(axis=1) >= min(LEAST_EQUAL, max(X.shape[1], 2))
    # NaN is equal to nothing, not even to a gap.
    once = np.unique(np.nan_to_num(X[rows[full]], nan=np.inf), axis=0, return_index=True)[1]
    return np.sort(np.concatenate([rows[~full], rows[full][once]]))


def _given_away(values: NDArray[np.float64], codes: NDArray[np.intp]) -> list[int]:
    """Find the classes that a tree of one column tells from all others, in rows new to it.

    A tree of one column, fully grown, gives an object the class of the nearest value that it has
    learned from. Gaps are a branch of their own: they stand far from all values.
    """
    far = np.finfo(float).max / 8
    order = np.argsort(codes, kind="stable")
    x, truth = np.clip(values[order], -far, far), codes[order]
    x[np.isnan(x)] = 2 * far
    # Within each class, rows are dealt to the folds in turn.
    fold, found = np.arange(len(x)) % FOLDS, np.full(len(x), -1)
    for k in range(FOLDS):
        new = x[fold == k]
        known, place = np.unique(x[fold != k], return_inverse=True)
        counts = _counts(place, truth[fold != k])
        after = np.searchsorted(known, new).clip(0, len(known) - 1)
        before = (after - 1).clip(0)
        nearest = np.where(new - known[before] < known[after] - new, before, after)
        found[fold == k] = counts.argmax(axis=1)[nearest]
    return [int(c) for c in np.unique(truth) if _is_told(truth == c, found == c)]


def _is_told(is_member: NDArray[np.bool_], is_found: NDArray[np.bool_]) -> bool:
    """Whether members are found, and hardly any other object is, however few others there are."""
    right, n, n_others = (is_member & is_found).sum(), is_member.sum(), (~is_member).sum()
    wrong = is_found.sum() - right
    if min(n, n_others) < LEAST_OBJECTS:
        return False
    return bool(right > TELLS * max(n, is_found.sum()) and wrong < (1 - TELLS) * n_others)
