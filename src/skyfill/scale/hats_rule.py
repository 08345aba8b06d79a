"""One-to-one matching of a single partition of a HATS catalogue, as an LSDB algorithm.

LSDB pairs each partition of the left catalogue with the right rows in it and in its margin. A
one-to-one match also needs the other left rows that compete for the same right row. These lie
within two radii, possibly beyond the border of the partition, so their positions are read from the
left catalogue and its margin. Each partition then gives the matches of the whole catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from skyfill.errors import CatalogError
from skyfill.sky import Flag, match_positions
from skyfill.sky.matching import Asks
from skyfill.sky.sphere import ROUNDING, Floats, Rows, chord_of_arcsec, unit_vectors

# Widths of the margins in radii: competing left rows, and the right rows within their reach.
LEFT_RADII, RIGHT_RADII = 2.0, 3.0


class Folders(NamedTuple):
    """Where the positions of the left catalogue and of its margin are on disk."""

    catalog: str
    margin: str
    suffix: str


class Places(NamedTuple):
    """Positions of rows, and the HEALPix number that orders the whole catalogue."""

    healpix: Rows
    ra_deg: Floats
    dec_deg: Floats

    def take(self, rows: Any) -> Places:
        """Take some of the rows."""
        return Places(*(values[rows] for values in self))


@dataclass(frozen=True)
class OneToOne:
    """A one-to-one match with the interface of LSDB's crossmatch algorithms.

    `name` is the suffix of the added columns, `columns` are those of the right catalogue.
    """

    name: str
    radius_arcsec: float
    asks: Asks
    columns: tuple[str, ...]
    folders: Folders

    @classmethod
    def between(cls, left: Any, right: Any, name: str, radius_arcsec: float, asks: Asks) -> Self:
        """Prepare the match of two catalogues; CatalogError if a margin is too narrow."""
        if not radius_arcsec > 0:
            raise CatalogError(f"{name}: the radius is {radius_arcsec} arcsec; it must be positive")
        for catalog, radii in ((left, LEFT_RADII), (right, RIGHT_RADII)):
            _check_margin(catalog, radii * radius_arcsec)
        structure = left.hc_structure
        margin = str(left.margin.hc_structure.catalog_base_dir)
        suffix = structure.catalog_info.npix_suffix
        folders = Folders(str(structure.catalog_base_dir), margin, suffix)
        return cls(name, radius_arcsec, asks, tuple(right.columns), folders)

    @property
    def extra_columns(self) -> Any:
        """Types of the added columns."""
        import pandas as pd

        return pd.DataFrame(self._facts(np.empty(0), np.empty(0, np.int64), np.empty(0, "<U9")))

    def validate(self, left: Any, right: Any) -> None:
        """Do nothing: everything was checked in `between`."""

    def crossmatch(self, args: Any, how: str, suffixes: Any, suffix_method: str) -> Any:
        """Join the rows of a left partition, in their order, to their counterparts."""
        # Without a right partition, LSDB adds our columns to those of the right catalogue.
        left, right = args.left_df, args.right_df[list(self.columns)]
        info, other = args.left_catalog_info, args.right_catalog_info
        mine = _places(left, info.ra_column, info.dec_column)
        rivals = self._rivals(mine, info, (args.left_order, args.left_pixel))
        theirs = _places(right, other.ra_column, other.dec_column)
        partners, separation, n_candidates = self._decide(mine, rivals, theirs)
        columns = {name: left[name].array for name in left.columns}
        columns |= {
            f"{name}_{self.name}": right[name].array.take(partners, allow_fill=True)
            for name in self.columns
        }
        facts = self._facts(separation, n_candidates, _flags(partners, n_candidates))
        return type(left)({**columns, **facts}, index=left.index)

    def _decide(self, mine: Places, rivals: Places, theirs: Places) -> tuple[Rows, Floats, Rows]:
        """Return the right row of each left row (-1: none), separations and candidates."""
        ours = Places(*(np.concatenate(both) for both in zip(mine, rivals, strict=True)))
        # At equal separation the order of the whole catalogue decides.
        first = np.argsort(ours.healpix, kind="stable")
        second = np.argsort(theirs.healpix, kind="stable")
        places = (*ours.take(first)[1:], *theirs.take(second)[1:])
        pairs = match_positions(*places, self.radius_arcsec, asks=self.asks)
        partners, separation = np.full(len(first), -1), np.full(len(first), np.nan)
        n_candidates = np.empty(len(first), np.int64)
        partners[first[pairs.left]] = second[pairs.right]
        separation[first[pairs.left]] = pairs.separation_arcsec
        n_candidates[first] = pairs.n_candidates
        n = len(mine.healpix)
        return partners[:n], separation[:n], n_candidates[:n]

    def _rivals(self, mine: Places, info: Any, pixel: tuple[int, int]) -> Places:
        """Find left rows outside the partition that compete for the same right rows."""
        names = (info.healpix_column, info.ra_column, info.dec_column)
        found = [
            _read_places(folder, pixel, names, self.folders.suffix)
            for folder in (self.folders.catalog, self.folders.margin)
        ]
        all_of_them = Places(*(np.concatenate(both) for both in zip(*found, strict=True)))
        beyond = all_of_them.take(~np.isin(all_of_them.healpix, mine.healpix))
        return beyond.take(_near(beyond, mine, LEFT_RADII * self.radius_arcsec))

    def _facts(self, separation: Floats, n_candidates: Rows, flags: Any) -> dict[str, Any]:
        import pandas as pd

        arrays = {
            f"sep_{self.name}": pa.array(separation, from_pandas=True),
            f"n_{self.name}": pa.array(n_candidates, pa.int32()),
            f"flag_{self.name}": pa.array(flags, pa.string()),
        }
        return {name: pd.arrays.ArrowExtensionArray(array) for name, array in arrays.items()}


def _flags(partners: Rows, n_candidates: Rows) -> Any:
    flags = np.where(n_candidates > 0, Flag.TAKEN.value, Flag.UNMATCHED.value)
    matched = np.where(n_candidates > 1, Flag.AMBIGUOUS.value, Flag.MATCHED.value)
    return np.where(partners >= 0, matched, flags)


def _places(frame: Any, ra: str, dec: str) -> Places:
    degrees = (frame[name].to_numpy(dtype="float64", na_value=np.nan) for name in (ra, dec))
    return Places(frame.index.to_numpy().astype(np.int64), *degrees)


def _read_places(
    folder: str, pixel: tuple[int, int], names: tuple[str, str, str], suffix: str
) -> Places:
    """Read the positions of the partition that contains a pixel; margins may lack it."""
    import pyarrow.parquet as pq

    path = _partition(folder, pixel, suffix)
    if path is None:
        return Places(np.empty(0, np.int64), np.empty(0), np.empty(0))
    table = pq.read_table(path.path, columns=list(names), filesystem=path.fs, partitioning=None)
    return Places(*(table.column(name).to_numpy() for name in names))


def _partition(folder: str, pixel: tuple[int, int], suffix: str) -> Any:
    """Find the file of a pixel or of a larger one around it: a match divides partitions."""
    import hats

    for order in range(pixel[0], -1, -1):
        around = hats.HealpixPixel(order, pixel[1] >> 2 * (pixel[0] - order))
        path = hats.io.pixel_catalog_file(folder, around, npix_suffix=suffix)
        if path.exists():
            return path
    return None


def _near(places: Places, others: Places, reach_arcsec: float) -> Any:
    """Select places within the bounding box of others, extended by a reach."""
    if not len(others.healpix):
        return np.zeros(len(places.healpix), dtype=bool)
    box = unit_vectors(others.ra_deg, others.dec_deg)
    vectors = unit_vectors(places.ra_deg, places.dec_deg)
    pad = chord_of_arcsec(reach_arcsec) + ROUNDING
    inside = (vectors >= box.min(axis=0) - pad) & (vectors <= box.max(axis=0) + pad)
    return inside.all(axis=1)


def _check_margin(catalog: Any, needed_arcsec: float) -> None:
    margin = catalog.margin
    wide = 0.0 if margin is None else margin.hc_structure.catalog_info.margin_threshold
    if wide < needed_arcsec:
        raise CatalogError(
            f"{catalog.name}: its margin is {wide:g} arcsec wide, a one-to-one match needs "
            f"{needed_arcsec:g}; make a wider one (write_hats, hats-import) or match within a "
            "smaller radius"
        )
