"""Which features belong together: the columns of one survey, or of one kind of light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skyfill.errors import CatalogError
from skyfill.model import Feature

Groups = dict[str, tuple[str, ...]]
OTHER = "other"
# UCD words, the most special first.
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


def parse_groups(texts: Iterable[str], names: Sequence[str]) -> Groups:
    """Read ``NAME=COLUMN,...``; features that no group names become the group `other`.

    Examples
    --------
    >>> parse_groups(["2MASS=J,H"], ["J", "H", "V"])
    {'2MASS': ('J', 'H'), 'other': ('V',)}
    """
    groups: Groups = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        members = tuple(word.strip() for word in columns.split(",") if word.strip())
        if not (name and equals and members):
            raise CatalogError(f"--group {text}: write NAME=COLUMN,..., such as 2MASS=J,H,K")
        for column in members:
            if column not in names:
                raise CatalogError(
                    f"--group {text}: the model has no feature {column!r}; it has "
                    f"{', '.join(names)}"
                )
        groups[name.strip()] = members
    return _with_rest(groups, names)


def guess_groups(features: Sequence[Feature], columns: Sequence[str] = ()) -> Groups:
    """Group by the surveys of a join (``sep_NAME`` stands beside ``J_NAME``), else by UCD.

    Examples
    --------
    >>> guess_groups([Feature("J", ucd="phot.mag;em.IR.J"), Feature("eta")])
    {'near infrared': ('J',), 'other': ('eta',)}
    """
    surveys = [column.removeprefix("sep_") for column in columns if column.startswith("sep_")]
    of = {feature.name: _survey(feature.name, surveys) for feature in features}
    if not any(of.values()):
        of = {feature.name: _kind(feature.ucd) for feature in features}
    found: dict[str, list[str]] = {}
    for name, group in of.items():
        found.setdefault(group or ("base" if surveys else OTHER), []).append(name)
    if list(found) == [OTHER]:
        return {"features": tuple(found[OTHER])}
    return {group: tuple(members) for group, members in found.items()}


def _with_rest(groups: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> Groups:
    named = {column for members in groups.values() for column in members}
    rest = tuple(name for name in names if name not in named)
    return {**groups, **({OTHER: rest} if rest else {})}


def _survey(name: str, surveys: Sequence[str]) -> str | None:
    return next((survey for survey in surveys if name.endswith(f"_{survey}")), None)


def _kind(ucd: str | None) -> str | None:
    words = (ucd or "").lower()
    return next((kind for word, kind in _KINDS if word in words), None)
