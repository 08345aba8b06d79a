"""Counterparts with a probability in HATS catalogues: learned on a sample, found by partition.

What holds for all of the sky (position errors, completeness, the magnitudes of counterparts) is
learned from a sample of partitions; of small catalogues the sample is everything. Each partition
is then searched with the sources and the competing objects around it, as far as they matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog import Table
from skyfill.classify.photometric_ratio import BoundRatio, LearnedRatio
from skyfill.classify.survey_magnitudes import read_magnitudes
from skyfill.scale.hats_around import Cap, read_around, rows_before, tiles_of
from skyfill.sky import (
    Conditions,
    CounterpartRules,
    Footprint,
    Found,
    Learned,
    PositionColumns,
    Surroundings,
    Survey,
    association_table,
    counterpart_table,
    read_surroundings,
    weigh_counterparts,
)
from skyfill.sky.counterpart_table import BASE_ROW
from skyfill.sky.density import NEIGHBORS

# Objects within so many radii of a partition may compete for its sources.
RIVAL_RADII = 4.0
# The circle of a local density may be larger than any in the sample.
DENSITY_SLACK, MOST_DOUBLINGS = 1.5, 8
# Objects and sources may move further than any in the sample.
MOTION_SLACK = 2.0


@dataclass(frozen=True)
class HatsSurvey:
    """A HATS catalogue of the search, the base or a survey.

    Parameters
    ----------
    name : str
    folder : str
    columns : tuple of str
        Those that the result has.
    bands : tuple of str
        Columns for photometry.
    radius_arcsec : float
        0 leaves it to the position errors.
    epoch : float, optional
        Julian year of its positions.
    footprint : Footprint, optional
        Area that it covers.
    depths : mapping of str to float
        Limits of columns where it covers an object and does not see it.
    """

    name: str
    folder: str
    columns: tuple[str, ...]
    bands: tuple[str, ...] = ()
    radius_arcsec: float = 0.0
    epoch: float | None = None
    footprint: Footprint | None = None
    depths: Mapping[str, float | None] = field(default_factory=dict)

    def with_rows(self, table: Table, *, beam_arcsec: float = 0.0) -> Survey:
        """Describe some of its rows as a survey."""
        ra, dec = tiles_of(self.folder).position
        place = PositionColumns((ra,), (dec,))
        return Survey(
            self.name,
            table,
            self.radius_arcsec,
            position=place,
            epoch=self.epoch,
            footprint=self.footprint,
            beam_arcsec=beam_arcsec,
            bands=self.bands,
            depths=self.depths,
        )


@dataclass(frozen=True)
class CounterpartMatch:
    """A search for counterparts with the interface of LSDB's crossmatch algorithms.

    LSDB hands over the rows of the base; sources of any number of surveys, and objects that
    compete for them, are read from the catalogues around these rows. So no margins are needed.

    Attributes
    ----------
    base : HatsSurvey
    surveys : tuple of HatsSurvey
    rules : CounterpartRules
    conditions, learned, ratio
        What was learned from a sample.
    reach_arcsec : float
        Largest distance of a counterpart.
    density_arcsec : float
        Largest circle in which a local density is measured; 0 where there are none.
    beam_arcsec : float
        Resolution of the base.
    every : bool
        Give every association its own row, not each object.
    """

    base: HatsSurvey
    surveys: tuple[HatsSurvey, ...]
    rules: CounterpartRules
    conditions: Conditions
    learned: Learned
    ratio: LearnedRatio | None
    reach_arcsec: float
    density_arcsec: float
    beam_arcsec: float = 0.0
    every: bool = False

    @property
    def extra_columns(self) -> Any:
        """Types of the columns that are added to those that LSDB knows."""
        empty = as_frame(Table(self.schema.empty_table()))
        return empty[empty.columns[len(self._known_columns) :]]

    @property
    def _known_columns(self) -> list[str]:
        """Columns that LSDB expects first: of the base, and positions of the first survey."""
        first = self.surveys[0]
        places = tiles_of(first.folder).position
        return [*self.base.columns, *(f"{name}_{first.name}" for name in places)]

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the result, as one row of the base gives them."""
        first = tiles_of(self.base.folder)
        row = read_first_row(first.files[0], first.schema, list(self.base.columns))
        return self.match(row, np.full(1, -1)).arrow.schema

    def validate(self, left: Any, right: Any) -> None:
        """Do nothing: everything was checked when the sample was read."""

    def crossmatch(self, args: Any, how: str, suffixes: Any, suffix_method: str) -> Any:
        """Find the counterparts of the rows of a partition, in their order."""
        frame = args.left_df
        index = frame.index.to_numpy().astype(np.int64)
        if not len(frame):
            return as_frame(Table(self.schema.empty_table()))
        known = tiles_of(self.base.folder).schema
        fields = [known.field(name) for name in self.base.columns]
        arrays = [pa.array(frame[f.name], type=f.type, from_pandas=True) for f in fields]
        own = Table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
        found = self.match(own, index)
        rows = np.arange(len(own))
        if self.every:
            pixel = (args.left_order, args.left_pixel)
            first = rows_before(self.base.folder, index, pixel)
            rows = found.numbers(BASE_ROW)[:, 0].astype(np.int64)
            found = found.with_column(BASE_ROW, rows + first, found.info(BASE_ROW))
        return as_frame(found, frame.index[rows])

    def match(self, own: Table, index: Any) -> Table:
        """Find the counterparts of some rows of the base, with these HEALPix numbers."""
        there, base, surveys = self._surroundings(own, index)
        bound = None
        if self.ratio is not None:
            bands = [self.base.bands, *(survey.bands for survey in self.surveys)]
            bound = BoundRatio(self.ratio, read_magnitudes(base, surveys, bands, there))
        found = weigh_counterparts(there, self.rules, self.learned, bound).first(len(own))
        mine = there.take(np.arange(len(own)))
        return self._table(own, surveys, mine, found)

    def _table(
        self, own: Table, surveys: Sequence[Survey], there: Surroundings, found: Found
    ) -> Table:
        if self.every:
            table = association_table(own, surveys, there, found)
        else:
            table = counterpart_table(own, surveys, there, found, self.rules)[0]
        return table.select(list(dict.fromkeys([*self._known_columns, *table.names])))

    def _surroundings(self, own: Table, index: Any) -> tuple[Surroundings, Survey, list[Survey]]:
        """Read all that lies around some rows: they come first, then those that compete."""
        ra, dec = own.numbers(*tiles_of(self.base.folder).position).T
        # Catalogues are ordered by positions of their own epochs.
        shifts = [np.hypot(o.ra_cosdec_arcsec, o.dec_arcsec) for o in self.conditions.offsets if o]
        moved = MOTION_SLACK * self.conditions.motion_arcsec + max(shifts, default=0.0)
        beyond = RIVAL_RADII * self.reach_arcsec + moved
        rivals = read_around(
            self.base.folder, Cap.around(ra, dec, beyond), list(self.base.columns), without=index
        )
        both = pa.concat_tables([own.arrow, rivals.arrow.cast(own.arrow.schema)])
        base = self.base.with_rows(Table(both), beam_arcsec=self.beam_arcsec)
        pad = max(self.reach_arcsec, DENSITY_SLACK * self.density_arcsec)
        for _ in range(MOST_DOUBLINGS):
            cap = Cap.around(ra, dec, beyond + pad + moved)
            surveys = [
                each.with_rows(read_around(each.folder, cap, list(each.columns)))
                for each in self.surveys
            ]
            there = read_surroundings(base, surveys, conditions=self.conditions)
            if not self.density_arcsec or density_circle(there) <= pad:
                break
            pad *= 2
        return there, base, surveys


def density_circle(there: Surroundings) -> float:
    """Radius in arcsec of the largest circle in which a local density was measured."""
    known = there.conditions.densities if there.conditions else ()
    local = [k for k, density in enumerate(known) if density is None]
    if not local:
        return 0.0
    return float(np.sqrt((NEIGHBORS - 1) / (np.pi * there.density[:, local].min())))


def read_first_row(file: str, schema: pa.Schema, columns: list[str]) -> Table:
    """Read the first row of a file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        rows = next(opened.iter_batches(1, columns=columns))
    fields = pa.schema([schema.field(name) for name in columns])
    plain = pa.Table.from_batches([rows]).select(columns).replace_schema_metadata()
    return Table(plain.cast(fields))


def as_frame(table: Table, index: Any = None) -> Any:
    """Give a table the form that LSDB wants."""
    import nested_pandas as npd
    import pandas as pd

    columns = {
        name: pd.arrays.ArrowExtensionArray(table.arrow.column(name)) for name in table.names
    }
    return npd.NestedFrame(columns, index=index)
