"""A simulated LMC field: the catalogues that surveys would publish, and the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from skyfill.catalog import Reason, Role, Table
from skyfill.datasets.field.draw import FRACTIONS, draw_counts, draw_population
from skyfill.datasets.field.observing import SURVEYS, Observation, SurveyModel, observe
from skyfill.datasets.field.placement import Sky, place_objects
from skyfill.datasets.field.population import CLASSES
from skyfill.datasets.field.recording import record
from skyfill.datasets.field.tables import (
    candidate_table,
    counterpart_rows,
    light_curve_table,
    macho_names,
    macho_table,
    survey_table,
    truth_table,
)
from skyfill.errors import DataError

# Pichara & Protopapas (2013), number of objects per class of the training set.
TRAINING_COUNTS = dict(zip(CLASSES, (1136, 45, 76, 70, 69, 100, 337), strict=True))
# Objects drawn per wanted object: a third of the binaries have entries in SAGE and UBVI.
_OVERSAMPLING = 6
_STREAMS = ("population", "sky", *SURVEYS, "macho", "candidates", "light_curves")


@dataclass(frozen=True)
class Field:
    """The published catalogues of a field, and the truth.

    Attributes
    ----------
    macho : Table
        Base catalogue: every object, with mean V and R.
    sage, two_mass, ubvi : Table
        Catalogues of three surveys, with their own identifiers and positions.
    truth : Table
        Class, true magnitudes, period and so on, and the identifiers in each catalogue.
    candidates : Table
        Quasar candidates from an earlier search.
    light_curves : Table or None
        All measurements of the base survey: id, band, time, mag, err.
    seed : int
        The seed that reproduces this field.
    """

    macho: Table
    sage: Table
    two_mass: Table
    ubvi: Table
    truth: Table
    candidates: Table
    light_curves: Table | None = None
    seed: int = 0


def simulate_field(
    n_objects: int,
    *,
    seed: int = 0,
    light_curves: bool = False,
    fractions: Mapping[str, float] | None = None,
    part: int = 0,
) -> Field:
    """Simulate a field of the Large Magellanic Cloud.

    Parameters
    ----------
    n_objects : int
        Number of objects in the base catalogue.
    seed : int
        The same seed gives the same field, bit for bit.
    light_curves : bool
        Also simulate about five hundred epochs in two bands for every object.
    fractions : mapping from class to share, optional
        Shares of the classes; by default nearly all objects are constant, as in the sky.
    part : int
        To build a field of billions of objects in parts: parts of one seed differ in their
        objects and identifiers.

    Returns
    -------
    Field
        Tables of the base catalogue, three surveys, the truth and a list of candidates.

    Examples
    --------
    >>> field = simulate_field(1000, seed=1)
    >>> len(field.macho), field.ubvi.info("B").unit
    (1000, 'mag')
    >>> len(field.sage) < 1000
    True
    """
    _check(n_objects, seed, part)
    streams = _streams(seed, part)
    rng = default_rng(streams["population"])
    counts = draw_counts(n_objects, FRACTIONS if fractions is None else fractions, rng)
    sky = place_objects(draw_population(counts, rng), default_rng(streams["sky"]))
    seen = _observe_all(sky, streams)
    field = _publish(sky, seen, streams, first=part * n_objects, light_curves=light_curves)
    return replace(field, seed=seed)


def simulate_training_set(*, seed: int = 0, light_curves: bool = False) -> Field:
    """Simulate the training set of the paper: 1833 labelled objects observed by SAGE and UBVI.

    The class counts are those of Pichara & Protopapas (2013). The gaps come from the limits and
    footprints of the surveys; there are about as many as in the paper.

    Examples
    --------
    >>> field = simulate_training_set()
    >>> len(field.truth), field.truth.column("class").to_pylist().count("QSO")
    (1833, 45)
    """
    _check(1, seed, 0)
    streams = _streams(seed, 0)
    counts = {name: _OVERSAMPLING * count for name, count in TRAINING_COUNTS.items()}
    population = draw_population(counts, default_rng(streams["population"]))
    sky = place_objects(population, default_rng(streams["sky"]))
    seen = _observe_all(sky, streams)
    rows = _labelled(sky, seen)
    kept = {name: entries.of_objects(rows, len(sky.ra)) for name, entries in seen.items()}
    field = _publish(sky.take(rows), kept, streams, first=0, light_curves=light_curves)
    return replace(field, seed=seed)


def _check(n_objects: int, seed: int, part: int) -> None:
    for name, value in {"n_objects": n_objects, "seed": seed, "part": part}.items():
        if value < 0:
            raise DataError(f"{name} is {value}; it must not be negative")


def _streams(seed: int, part: int) -> dict[str, SeedSequence]:
    """Give each part of the simulation its own random numbers, independent of the others."""
    children = SeedSequence(seed, spawn_key=(part,)).spawn(len(_STREAMS))
    return dict(zip(_STREAMS, children, strict=True))


def _observe_all(sky: Sky, streams: dict[str, SeedSequence]) -> dict[str, Observation]:
    return {
        name: observe(survey, sky, default_rng(streams[name])) for name, survey in SURVEYS.items()
    }


def _labelled(sky: Sky, seen: dict[str, Observation]) -> NDArray[np.intp]:
    """Choose the first objects of each class that are in both SAGE and UBVI."""
    n = len(sky.ra)
    known = (counterpart_rows(seen["sage"], n) >= 0) & (counterpart_rows(seen["ubvi"], n) >= 0)
    kind = sky.population.kind
    chosen = [
        np.flatnonzero(known & (kind == CLASSES.index(name)))[:count]
        for name, count in TRAINING_COUNTS.items()
    ]
    return np.sort(np.concatenate(chosen))


def _publish(
    sky: Sky,
    seen: dict[str, Observation],
    streams: dict[str, SeedSequence],
    *,
    first: int,
    light_curves: bool,
) -> Field:
    names = macho_names(sky.ra, sky.dec, first)
    both = {name: (survey_table(SURVEYS[name], rows), rows) for name, rows in seen.items()}
    curves = record(sky, streams["light_curves"]) if light_curves else None
    return Field(
        macho=macho_table(sky, names, default_rng(streams["macho"])),
        truth=truth_table(sky, names, both),
        candidates=candidate_table(sky, names, default_rng(streams["candidates"])),
        light_curves=None if curves is None else light_curve_table(curves, names),
        sage=both["sage"][0],
        two_mass=both["two_mass"][0],
        ubvi=both["ubvi"][0],
    )


def join_by_truth(field: Field) -> Table:
    """Join the base catalogue with the three surveys by true identity, as a perfect match would.

    Parameters
    ----------
    field : Field
        From `simulate_field` or `simulate_training_set`.

    Returns
    -------
    Table
        One row per object of the base catalogue: id, class, position, its V and R as ``V_macho``
        and ``R_macho``, and the magnitudes of the surveys with errors, limits and the reasons of
        their gaps.

    Examples
    --------
    >>> table = join_by_truth(simulate_training_set())
    >>> len(table), table.info("class").role
    (1833, <Role.LABEL: 'label'>)
    >>> table.column("V").null_count
    0
    """
    table = _base(field)
    for name, survey in SURVEYS.items():
        table = _with_survey(table, field, survey=survey, rows=_rows(field, name))
    return table.with_meta(**{**field.truth.meta, "name": "simulated"})


def _base(field: Field) -> Table:
    names = {"V": "V_macho", "e_V": "e_V_macho", "R": "R_macho", "e_R": "e_R_macho"}
    arrow = field.macho.arrow.rename_columns([names.get(n, n) for n in field.macho.names])
    table = Table(arrow).with_info("e_V_macho", of="V_macho").with_info("e_R_macho", of="R_macho")
    return table.with_column("class", field.truth.column("class"), field.truth.info("class"))


def _rows(field: Field, name: str) -> pa.Array:
    """Return the row of each object in the catalogue of a survey, or null."""
    known = getattr(field, name).column("id").combine_chunks()
    return pc.index_in(field.truth.column(f"id_{name}").combine_chunks(), known, skip_nulls=True)


def _with_survey(table: Table, field: Field, *, survey: SurveyModel, rows: pa.Array) -> Table:
    catalog: Table = getattr(field, survey.name)
    for column in catalog.names:
        if catalog.info(column).role in (Role.FEATURE, Role.ERROR, Role.LIMIT):
            values = catalog.column(column).take(rows)
            table = table.with_column(column, values, catalog.info(column))
    for k, band in enumerate(survey.bands):
        inside = survey.footprints[k].contains(*table.numbers("ra", "dec").T)
        absent = np.where(inside, str(Reason.UNMATCHED), str(Reason.UNCOVERED))
        table = table.with_reasons(band, _reasons(catalog.reasons(band).take(rows), rows, absent))
    return table


def _reasons(inside: pa.Array, rows: pa.Array, absent: Any) -> pa.Array:
    return pc.if_else(pc.is_null(rows), pa.array(absent, pa.string()), inside)
