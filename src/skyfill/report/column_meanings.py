"""What columns mean that are not described, as far as names, units and neighbours say."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from skyfill.catalog import ColumnInfo, Role, Table, judge
from skyfill.catalog.column_info import described
from skyfill.errors import CatalogError
from skyfill.model.results import candidate_infos, own_info, result_info, results_prefix
from skyfill.sky import find_position_columns

# Spectral ranges of the UCD vocabulary, by the usual names of bands in lower case.
BANDS = {
    "fuv": "UV.100-200nm",
    "nuv": "UV.200-300nm",
    **{band: f"opt.{band.upper()}" for band in "ubvri"},
    **dict.fromkeys(("g", "bp", "gbp"), "opt"),
    **dict.fromkeys(("rp", "grp"), "opt.R"),
    **dict.fromkeys(("z", "y"), "opt.I"),
    "j": "IR.J",
    "h": "IR.H",
    **dict.fromkeys(("k", "ks"), "IR.K"),
    **dict.fromkeys(("w1", "i1", "m36", "[3.6]", "3.6"), "IR.3-4um"),
    **dict.fromkeys(("w2", "i2", "m45", "[4.5]", "4.5"), "IR.4-8um"),
    **dict.fromkeys(("i3", "m58", "[5.8]", "5.8", "i4", "m80", "[8.0]", "8.0"), "IR.4-8um"),
    "w3": "IR.8-15um",
    **dict.fromkeys(("w4", "m24", "[24]"), "IR.15-30um"),
}
# Before and after the name of a band.
_AROUND = re.compile(r"^(mag_)?(.+?)(_?mag)?$", re.IGNORECASE)
_AXES = ("pos.eq.ra;meta.main", "Right ascension"), ("pos.eq.dec;meta.main", "Declination")


def with_meanings(schema: pa.Schema) -> tuple[pa.Schema, dict[str, str], list[str]]:
    """Complete what is known about the columns of a table.

    Returns
    -------
    schema : pyarrow.Schema
        What the columns state is kept.
    guessed : dict
        Descriptions that were guessed from the names of columns, by column.
    unknown : list of str
        Columns that still have no description.

    Examples
    --------
    >>> columns = [("p_QSO", pa.float64()), ("Jmag", pa.float64()), ("e_Jmag", pa.float64())]
    >>> schema, guessed, unknown = with_meanings(pa.schema([*columns, ("n", pa.int64())]))
    >>> schema.field("p_QSO").metadata[b"description"]
    b'Probability of class QSO'
    >>> guessed, unknown
    ({'Jmag': 'Magnitude in J', 'e_Jmag': 'Error of Jmag'}, ['n'])
    """
    stated = {column.name: ColumnInfo.from_metadata(column.metadata) for column in schema}
    guesses, prefix = _guesses(schema, stated), results_prefix(Table(schema.empty_table()))
    results = {name: _result(name, info, prefix) for name, info in stated.items()}
    known = {n: _completed(info, results[n] or guesses.get(n)) for n, info in stated.items()}
    for place, column in enumerate(schema):
        schema = schema.set(place, described(column, known[column.name]))
    guessed = {
        name: str(info.description)
        for name, info in known.items()
        if info.description and not stated[name].description and not results[name]
    }
    return schema, guessed, [name for name, info in known.items() if not info.description]


def _completed(info: ColumnInfo, known: ColumnInfo | None) -> ColumnInfo:
    known = known or ColumnInfo()
    return ColumnInfo(
        info.unit or known.unit,
        info.ucd or known.ucd,
        info.description or known.description,
        info.role if info.role is not Role.OTHER else known.role,
        info.of,
    )


def _result(name: str, info: ColumnInfo, prefix: str) -> ColumnInfo | None:
    """Describe what skyfill wrote; `prefix` is that of the results of classifying."""
    if info.role is Role.REASON and info.of:
        return ColumnInfo(None, "meta.code", f"Why {info.of} is missing", Role.REASON, info.of)
    own = result_info(name.removeprefix(prefix)) if name.startswith(prefix) else None
    return own or own_info(name) or candidate_infos().get(name)


def _guesses(schema: pa.Schema, stated: Mapping[str, ColumnInfo]) -> dict[str, ColumnInfo]:
    roles = {name: (info.role, info.of) for name, info in stated.items()}
    roles |= {n: (each.role, each.of) for n, each in judge(Table(schema.empty_table())).items()}
    found = {name: _band(name, info) for name, info in stated.items()}
    found |= {name: _by_role(role, of, stated, found) for name, (role, of) in roles.items()
              if role not in (Role.FEATURE, Role.OTHER)}  # fmt: skip
    return {name: info for name, info in (found | _positions(schema)).items() if info}


def _by_role(
    role: Role,
    of: str | None,
    stated: Mapping[str, ColumnInfo],
    bands: Mapping[str, ColumnInfo | None],
) -> ColumnInfo | None:
    plain = {
        Role.IDENTIFIER: ColumnInfo(None, "meta.id", "Identifier"),
        Role.LABEL: ColumnInfo(None, "src.class", "Class"),
    }
    if role in plain or of is None or of not in stated:
        return plain.get(role)
    own, guess = stated[of], bands.get(of) or ColumnInfo()
    unit, kind = own.unit or guess.unit, own.ucd or guess.ucd
    if role is Role.ERROR:
        ucd = _valid(f"stat.error;{kind}", "stat.error")
        return ColumnInfo(unit, ucd, f"Error of {of}")
    end = "stat.min" if ColumnInfo(unit, kind).is_magnitude else "stat.max"
    return ColumnInfo(unit, _valid(f"{kind};{end}", f"stat.value;{end}"), f"Limit of {of}")


def _valid(ucd: str, plain: str) -> str:
    """Return a UCD, or a plainer one where its words are not known or stand in the wrong place."""
    from astropy.io.votable.ucd import check_ucd

    return ucd if check_ucd(ucd, check_controlled_vocabulary=True) else plain


def _band(name: str, info: ColumnInfo) -> ColumnInfo | None:
    """Describe a magnitude in a band that is known by its name; unit or name must say mag."""
    found = _AROUND.match(name.partition("_")[0] if info.unit == "mag" else name)
    is_magnitude = info.unit == "mag" or (found and (found[1] or found[3]))
    if not (found and is_magnitude and found[2].lower() in BANDS):
        return None
    ucd = f"phot.mag;em.{BANDS[found[2].lower()]}"
    return ColumnInfo("mag", ucd, f"Magnitude in {found[2]}")


def _positions(schema: pa.Schema) -> dict[str, ColumnInfo]:
    try:
        columns = find_position_columns(Table(schema.empty_table()))
    except CatalogError:
        return {}
    if len(columns.ra) > 1:
        return {}
    pairs = zip((columns.ra[0], columns.dec[0]), _AXES, strict=True)
    return {name: ColumnInfo(None, ucd, words) for name, (ucd, words) in pairs}
