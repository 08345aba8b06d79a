"""Which columns may be learned: neither positions nor names, nor what a person has set."""

from __future__ import annotations

from collections.abc import Sequence

from skyfill.catalog import Role, Table, with_guessed_roles
from skyfill.errors import CatalogError

# Positions and identifiers would be learned by heart; labels are what is to be found out.
NO_FEATURES = (Role.IDENTIFIER, Role.POSITION, Role.LABEL, Role.REASON)


def check_features(table: Table, names: Sequence[str], force: Sequence[str] = ()) -> None:
    """Refuse identifiers, positions, labels and reasons, unless `force` names them.

    Examples
    --------
    >>> table = Table.from_columns({"ra": [80.0]}).with_info("ra", role="position")
    >>> check_features(table, ["ra"], force=["ra"])
    >>> check_features(table, ["ra"])
    Traceback (most recent call last):
    skyfill.errors.CatalogError: column 'ra' has the role position: it must not be learned; ...
    """
    for name in names:
        role = table.info(name).role
        if role in NO_FEATURES and name not in force:
            raise CatalogError(
                f"column {name!r} has the role {role}: it must not be learned; leave it out of the "
                "features, set its role to feature, or force it"
            )


def check_class_features(
    table: Table, names: Sequence[str], label: str, force: Sequence[str] = ()
) -> None:
    """Refuse what would tell the class by heart: more strictly than for filling gaps.

    Roles are guessed where none is set. Where the table says which columns are features, all
    others are refused as well: people set such columns while they looked at the object.
    """
    own = table.names_with(Role.FEATURE)
    check_features(with_guessed_roles(table).with_info(label, role=Role.LABEL), names, force)
    for name in names:
        if own and name not in (*own, *force):
            raise CatalogError(
                f"column {name!r} has the role {table.info(name).role}, and the table names its "
                "features: leave it out, set its role to feature, or force it"
            )
