"""The order of bands: blue before red where the names are known, else by name."""

from collections.abc import Iterable

from skyfill.errors import CatalogError

# Usual names from blue to red; B and R of a survey may be its own, the order still holds.
_BLUE_TO_RED = ("FUV", "NUV", "U", "u", "B", "b", "blue", "Bp", "BP", "g", "G", "V", "v", "r", "R",
                "red", "Rp", "RP", "i", "I", "z", "Z", "y", "Y", "J", "H", "K", "Ks", "W1", "I1",
                "W2", "I2", "I3", "I4", "W3", "W4")  # fmt: skip


def order_bands(found: Iterable[str], wanted: Iterable[str] | None = None) -> tuple[str, ...]:
    """Put bands in the order in which features compare them.

    Parameters
    ----------
    found : iterable of str
        Bands that the data have.
    wanted : iterable of str, optional
        The order; bands that it does not name are left out.

    Examples
    --------
    >>> order_bands(["i", "V", "B"])
    ('B', 'V', 'i')
    >>> order_bands(["i", "V", "B"], ["V", "i"])
    ('V', 'i')
    """
    names = list(dict.fromkeys(found))
    if wanted is not None:
        return _checked(tuple(wanted), names)
    if all(name in _BLUE_TO_RED for name in names):
        return tuple(sorted(names, key=_BLUE_TO_RED.index))
    return tuple(sorted(names))


def _checked(wanted: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise CatalogError(
            f"no measurement in band {unknown[0] if unknown else ''!r}; the bands are "
            f"{', '.join(sorted(names))}"
        )
    if len(set(wanted)) < len(wanted):
        raise CatalogError(f"band order {','.join(wanted)} names a band twice")
    return wanted
