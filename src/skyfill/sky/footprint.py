"""The area that a survey covers, as a multi-order coverage map (MOC)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.sphere import Floats


@dataclass(frozen=True)
class Footprint:
    """Area of the sky that a survey covers.

    Parameters
    ----------
    moc : mocpy.MOC
    """

    moc: Any

    @property
    def area_deg2(self) -> float:
        """Covered area in square degrees."""
        return float(self.moc.sky_fraction) * 360.0**2 / math.pi

    def covers(self, ra_deg: Floats, dec_deg: Floats) -> np.ndarray:
        """Select the positions that are covered; a row without a position is not.

        Examples
        --------
        >>> from mocpy import MOC
        >>> whole_sky = Footprint(MOC.from_string("0/0-11"))
        >>> whole_sky.covers(np.array([10.0, np.nan]), np.array([0.0, 0.0]))
        array([ True, False])
        """
        from astropy import units as u

        placed = np.isfinite(ra_deg) & np.isfinite(dec_deg)
        covered = np.zeros(len(ra_deg), dtype=bool)
        ra, dec = np.mod(ra_deg[placed], 360.0), dec_deg[placed]
        covered[placed] = self.moc.contains_lonlat(ra * u.deg, dec * u.deg)
        return covered


def read_footprint(path: str | Path) -> Footprint:
    """Read a MOC from a FITS or JSON file; needs the extra ``skyfill[moc]``."""
    try:
        from mocpy import MOC
    except ImportError:
        raise CatalogError(
            f"{path}: footprints need mocpy; install it with: pip install 'skyfill[moc]'"
        ) from None
    if not Path(path).is_file():
        raise CatalogError(f"{path}: no such file; a footprint is a MOC in a FITS or JSON file")
    kind = "json" if str(path).lower().endswith(".json") else "fits"
    try:
        return Footprint(MOC.load(path, format=kind))
    except Exception as error:  # mocpy raises what its Rust part raises
        raise CatalogError(f"{path}: not a MOC in {kind.upper()} format ({error})") from None
