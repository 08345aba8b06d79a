"""Rows of a HATS catalogue around some positions, whichever partitions they lie in."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Table
from skyfill.sky.sphere import ARCSEC, Floats, unit_vectors

# No point of a HEALPix pixel is further from its center than this, in square roots of its area.
PIXEL_REACH = 1.1


class Tiles(NamedTuple):
    """The partitions of a catalogue, in the order of its rows."""

    files: tuple[str, ...]
    centers: Floats  # (n, 3)
    reach: Floats  # (n,), radians
    position: tuple[str, str]
    healpix: str
    schema: pa.Schema


class Cap(NamedTuple):
    """A circle on the sky: its center as a unit vector, its radius in radians."""

    center: Floats
    radius: float

    @classmethod
    def around(cls, ra_deg: Floats, dec_deg: Floats, reach_arcsec: float) -> Cap:
        """Enclose positions, of which there is at least one, and all within reach of them."""
        vectors = unit_vectors(ra_deg, dec_deg)
        middle = vectors.mean(axis=0)
        middle = middle / max(np.linalg.norm(middle), 1e-9)
        return cls(middle, float(separations(vectors, middle).max()) + reach_arcsec * ARCSEC)

    def holds(self, ra_deg: Floats, dec_deg: Floats) -> Any:
        """Say which positions lie in it."""
        return separations(unit_vectors(ra_deg, dec_deg), self.center) <= self.radius


def separations(vectors: Floats, center: Floats) -> Floats:
    """Angles between unit vectors and one of them, in radians."""
    chord = np.sqrt(np.sum((vectors - center) ** 2, axis=1))
    return np.asarray(2 * np.arcsin(np.minimum(chord / 2, 1.0)))


@lru_cache(maxsize=16)
def tiles_of(folder: str) -> Tiles:
    """List the partitions of a catalogue."""
    import hats

    catalog = hats.read_hats(Path(folder))
    catalog = getattr(catalog, "main_catalog", catalog)  # of a collection with margins
    pixels, info = catalog.get_healpix_pixels(), catalog.catalog_info
    place = catalog.catalog_base_dir
    orders = np.array([pixel.order for pixel in pixels])
    files = [hats.io.pixel_catalog_file(place, p, npix_suffix=info.npix_suffix) for p in pixels]
    area = 4 * np.pi / (12 * 4.0 ** orders.astype(float))
    return Tiles(
        tuple(file.path for file in files),
        _pixel_centers(np.array([pixel.pixel for pixel in pixels]), orders),
        PIXEL_REACH * np.sqrt(area),
        (info.ra_column, info.dec_column),
        info.healpix_column,
        catalog.schema,
    )


def _pixel_centers(pixels: Any, orders: Any) -> Floats:
    import cdshealpix  # type: ignore[import-untyped]

    lon, lat = cdshealpix.healpix_to_lonlat(pixels.astype(np.uint64), orders.astype(np.uint8))
    return unit_vectors(np.asarray(lon.deg), np.asarray(lat.deg))


def read_around(folder: str, cap: Cap, columns: list[str], without: Any = ()) -> Table:
    """Read the rows of a catalogue within a circle, in its order, with the metadata of columns.

    Parameters
    ----------
    without : array of int
        HEALPix numbers of rows that are left out.
    """
    tiles = tiles_of(folder)
    near = separations(tiles.centers, cap.center) <= tiles.reach + cap.radius
    names = list(dict.fromkeys([*columns, *tiles.position, tiles.healpix]))
    schema = pa.schema([tiles.schema.field(name) for name in names])
    parts = [_read(tiles.files[k], cap, names, tiles.position) for k in np.flatnonzero(near)]
    rows = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    if len(without):
        others = ~np.isin(rows.column(tiles.healpix).to_numpy(), without)
        rows = rows.filter(pa.array(others))
    return Table(rows).select(columns)


def rows_before(folder: str, index: Any, pixel: tuple[int, int]) -> int:
    """Count the rows of a catalogue before the first of a partition, given their HEALPix numbers.

    A crossmatch may have divided the partition that holds the pixel.
    """
    tiles = tiles_of(folder)
    center = _pixel_centers(np.array([pixel[1]]), np.array([pixel[0]]))[0]
    apart = separations(tiles.centers, center)
    before = 0
    for k, file in enumerate(tiles.files):
        if apart[k] <= tiles.reach[k]:
            inside = pq.read_table(file, columns=[tiles.healpix], partitioning=None)
            numbers = inside.column(0).to_numpy()
            if len(numbers) and numbers.min() <= index.min() <= numbers.max():
                return before + int(np.count_nonzero(numbers < index.min()))
        before += pq.read_metadata(file).num_rows
    return before


def _read(file: str, cap: Cap, names: list[str], position: tuple[str, str]) -> pa.Table:
    dec = np.degrees(np.arcsin(np.clip(cap.center[2], -1, 1)))
    south, north = dec - np.degrees(cap.radius) - 1e-9, dec + np.degrees(cap.radius) + 1e-9
    inside = [(position[1], ">=", south), (position[1], "<=", north)]
    found = pq.read_table(file, columns=names, filters=inside, partitioning=None)
    places = (found.column(name).to_numpy().astype(np.float64) for name in position)
    return found.filter(pa.array(cap.holds(*places))).replace_schema_metadata()
