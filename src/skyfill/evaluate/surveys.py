"""Which features belong together: those of one survey, or of one kind of light."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skyfill.catalog import Table
from skyfill.errors import CatalogError
from skyfill.model import Feature

# Features by the name of their survey or group.
Groups = dict[str, tuple[str, ...]]
OTHER = "other"
# What skyfill match calls its notes on a survey.
_MATCH = "match_"
# Parts of UCDs, the most specific first.
_KINDS = (
    ("em.ir.j", "near infrared"),
    ("em.ir.h", "near infrared"),
    ("em.ir.k", "near infrared"),
    ("em.ir", "infrared"),
    ("em.opt", "optical"),
    ("em.uv", "ultraviolet"),
    ("em.x-ray", "X-rays"),
    ("em.gamma", "gamma rays"),
    ("em.radio", "radio"),
    ("time.period", "variability"),
    ("src.var", "variability"),
    ("pos.pm", "astrometry"),
    ("pos.parallax", "astrometry"),
)


def survey_columns(names: Sequence[str], survey: str) -> list[int]:
    """Find the features of a survey: those that end in ``_NAME``, or those of ``NAME=COLUMN,...``.

    The name of a feature means that feature alone; several names are separated by commas.

    Examples
    --------
    >>> survey_columns(["V", "J_two_mass", "K_two_mass"], "two_mass")
    [1, 2]
    >>> survey_columns(["V", "J_two_mass", "K_two_mass"], "some=V,K_two_mass")
    [0, 2]
    """
    if "," in survey.partition("=")[0]:
        return sorted(
            {j for each in survey.split(",") for j in survey_columns(names, each.strip())}
        )
    name, equals, columns = survey.partition("=")
    found = [j for j, feature in enumerate(names) if feature.endswith(f"_{name}")]
    if found and not equals:
        return found
    words = [word.strip() for word in columns.split(",")] if equals else [name]
    unknown = [word for word in words if word not in names]
    if unknown or not name:
        end = "" if equals else f", and none that ends in _{name}"
        raise CatalogError(
            f"survey {survey}: no feature {unknown[0] if unknown else name!r}{end}; write NAME or "
            f"NAME=COLUMN,...; the features are {', '.join(names)}"
        )
    return [names.index(word) for word in words]


def find_surveys(
    table: Table, names: Sequence[str], asked: Iterable[str] = ()
) -> dict[str, list[int]]:
    """Find the features of each requested survey, or else of each that skyfill match recorded.

    Examples
    --------
    >>> table = Table.from_columns({"V": [18.0], "J_nir": [15.2]}).with_meta(match_nir="{}")
    >>> find_surveys(table, table.names), find_surveys(table, table.names, ["optical=V"])
    ({'nir': [1]}, {'optical': [0]})
    """
    noted = [key.removeprefix(_MATCH) for key in table.meta if key.startswith(_MATCH)]
    there = [name for name in noted if any(feature.endswith(f"_{name}") for feature in names)]
    texts = list(asked) or there
    return {text.partition("=")[0].strip(): survey_columns(names, text) for text in texts}


def name_groups(names: Sequence[str], surveys: Iterable[str]) -> Groups:
    """Group features by surveys; those of none become the group `other`.

    Examples
    --------
    >>> name_groups(["J", "H", "V"], ["2MASS=J,H"])
    {'2MASS': ('J', 'H'), 'other': ('V',)}
    """
    found = {text.partition("=")[0].strip(): survey_columns(names, text) for text in surveys}
    groups = {name: tuple(names[j] for j in columns) for name, columns in found.items()}
    taken = {name for members in groups.values() for name in members}
    rest = tuple(name for name in names if name not in taken)
    return {**groups, **({OTHER: rest} if rest else {})}


def guess_groups(features: Sequence[Feature], columns: Sequence[str] = ()) -> Groups:
    """Group by the surveys of a join (``sep_NAME`` next to ``J_NAME``), or else by UCD.

    Examples
    --------
    >>> guess_groups([Feature("J", ucd="phot.mag;em.IR.J"), Feature("eta")])
    {'near infrared': ('J',), 'other': ('eta',)}
    """
    surveys = [column.removeprefix("sep_") for column in columns if column.startswith("sep_")]
    ends = {
        feature.name: [s for s in surveys if feature.name.endswith(f"_{s}")] for feature in features
    }
    of = {name: next(iter(found), None) for name, found in ends.items()}
    if not any(of.values()):
        of = {feature.name: _kind(feature.ucd) for feature in features}
    found: dict[str, list[str]] = {}
    for name, group in of.items():
        found.setdefault(group or ("base" if surveys else OTHER), []).append(name)
    if list(found) == [OTHER]:
        return {"features": tuple(found[OTHER])}
    return {group: tuple(members) for group, members in found.items()}


def _kind(ucd: str | None) -> str | None:
    words = (ucd or "").lower()
    return next((kind for word, kind in _KINDS if word in words), None)
