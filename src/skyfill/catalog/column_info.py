"""Facts about a column: unit, UCD, description, role, and the reasons of its gaps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from skyfill.errors import CatalogError

GAP_SUFFIX = "_gap"
# UCDs of quantities of which a source has too little when a survey does not detect it.
MAGNITUDES, FLUXES = "phot.mag", ("phot.flux", "phot.fluence", "phot.count", "phys.luminosity")


class Role(StrEnum):
    """What a column is used for.

    Examples
    --------
    >>> Role("feature") is Role.FEATURE
    True
    """

    IDENTIFIER = "identifier"
    POSITION = "position"
    FEATURE = "feature"
    ERROR = "error"
    LIMIT = "limit"
    LABEL = "label"
    REASON = "reason"
    OTHER = "other"


class Reason(StrEnum):
    """Why a value is missing.

    ``unmatched``: no counterpart inside the survey's footprint; ``uncovered``: outside it, or the
    object has no position; ``undetected``: fainter than a limit, which a column of role `limit`
    keeps; ``rejected``: flagged, or a declared sentinel; ``filled``: missing, filled by a model.

    Examples
    --------
    >>> [str(reason) for reason in Reason]
    ['unmatched', 'uncovered', 'undetected', 'rejected', 'filled']
    """

    UNMATCHED = "unmatched"
    UNCOVERED = "uncovered"
    UNDETECTED = "undetected"
    REJECTED = "rejected"
    FILLED = "filled"


@dataclass(frozen=True)
class ColumnInfo:
    """What is known about a column besides its values.

    Parameters
    ----------
    unit, ucd, description : str, optional
        As in the file; `unit` is any string that `astropy.units` reads.
    role : Role
        `Role.OTHER` by default.
    of : str, optional
        For an error, a limit or a reason: the column to which it belongs.

    Examples
    --------
    >>> ColumnInfo(unit="mag", role=Role.ERROR, of="J").of
    'J'
    """

    unit: str | None = None
    ucd: str | None = None
    description: str | None = None
    role: Role = Role.OTHER
    of: str | None = None

    @property
    def is_magnitude(self) -> bool:
        """Whether it grows as a source gets fainter; the UCD says so, or the unit if there is none.

        An amplitude or a color is in magnitudes too, and its UCD is another.
        """
        ucd = (self.ucd or "").lower()
        return ucd.startswith(MAGNITUDES) or (not ucd and self.unit == "mag")

    @property
    def is_brightness(self) -> bool:
        """Whether a survey detects a source by it: a magnitude or a flux."""
        return self.is_magnitude or (self.ucd or "").lower().startswith(FLUXES)

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None) -> "ColumnInfo":
        """Read the metadata of an Arrow field; other keys are ignored."""
        found = {key: (metadata or {}).get(key.encode()) for key in cls.__dataclass_fields__}
        known = {key: text(value) for key, value in found.items() if value}
        return cls(**{**known, "role": as_role(known.get("role", "other"))})  # type: ignore[arg-type]

    def to_metadata(self) -> dict[str, str]:
        """Return the known facts as metadata of an Arrow field."""
        facts = {key: str(value) for key, value in asdict(self).items() if value}
        if self.role is Role.OTHER:
            del facts["role"]
        return facts


def as_role(name: str) -> Role:
    """Convert a word to a `Role`; the `CatalogError` for an unknown one lists all roles.

    Examples
    --------
    >>> as_role("label")
    <Role.LABEL: 'label'>
    """
    try:
        return Role(name)
    except ValueError:
        raise CatalogError(f"no role {name!r}; the roles are {', '.join(Role)}") from None


def gap_name(name: str) -> str:
    """Return the name of the companion column with the reasons of the gaps of a column."""
    return name + GAP_SUFFIX


def described(field: pa.Field, info: ColumnInfo) -> pa.Field:
    """Set the metadata of an Arrow field to `info`, keeping other keys."""
    ours = {key.encode() for key in ColumnInfo.__dataclass_fields__}
    kept = {key: value for key, value in (field.metadata or {}).items() if key not in ours}
    return field.with_metadata({**kept, **info.to_metadata()} or None)


def text(value: Any) -> str:
    """Decode metadata, which any program may have written in any encoding."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
