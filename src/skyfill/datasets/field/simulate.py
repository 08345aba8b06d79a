"""A simulated LMC field: the catalogs that surveys would publish of it, and the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from skyfill.catalog import Table
from skyfill.datasets.field.draw import FRACTIONS, draw_counts, draw_population
from skyfill.datasets.field.lightcurves import record
from skyfill.datasets.field.names import macho_names
from skyfill.datasets.field.population import CLASSES
from skyfill.datasets.field.sky import Sky, place
from skyfill.datasets.field.surveys import SURVEYS, Observation, observe
from skyfill.datasets.field.tables import (
    candidate_table,
    counterpart_rows,
    light_curve_table,
    macho_table,
    survey_table,
    truth_table,
)
from skyfill.errors import DataError

# Pichara & Protopapas (2013), number of objects per class of the training set.
TRAINING_COUNTS = dict(zip(CLASSES, (1136, 45, 76, 70, 69, 100, 337), strict=True))
# Objects drawn for each that is wanted: a third of the binaries have entries in SAGE and UBVI.
_OVERSAMPLING = 6
_STREAMS = ("population", "sky", *SURVEYS, "macho", "candidates", "light_curves")


@dataclass(frozen=True)
class Field:
    """What was published of a field, and the truth about it.

    Attributes
    ----------
    macho : Table
        Base catalog: every object, with mean V and R.
    sage, two_mass, ubvi : Table
        Catalogs of three surveys, with their own identifiers and positions.
    truth : Table
        Class, true magnitudes, period and so on, and the identifiers in each catalog.
    candidates : Table
        Quasar candidates of an earlier search.
    light_curves : Table or None
        All measurements of the base survey: id, band, time, mag, err.
    seed : int
        The seed that gives this field again.
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
        Number of objects in the base catalog.
    seed : int
        The same seed gives the same field, bit for bit.
    light_curves : bool
        Also simulate some five hundred epochs in two bands for every object.
    fractions : mapping from class to share, optional
        Shares of the classes; by default nearly all objects keep still, as in the sky.
    part : int
        To make a field of billions piece by piece: parts of one seed differ in their objects
        and identifiers.

    Returns
    -------
    Field
        Tables of the base catalog, three surveys, the truth and a list of candidates.

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
    sky = place(draw_population(counts, rng), default_rng(streams["sky"]))
    seen = _observe_all(sky, streams)
    field = _publish(sky, seen, streams, first=part * n_objects, light_curves=light_curves)
    return replace(field, seed=seed)


def simulate_training_set(*, seed: int = 0, light_curves: bool = False) -> Field:
    """Simulate the paper's training set: 1833 labelled objects that SAGE and UBVI have seen.

    The class counts are those of Pichara & Protopapas (2013); gaps come from the limits and
    footprints of the surveys and amount to about the paper's.

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
    sky = place(population, default_rng(streams["sky"]))
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
    """Give each concern its own random numbers, so that one does not shift the others."""
    children = SeedSequence(seed, spawn_key=(part,)).spawn(len(_STREAMS))
    return dict(zip(_STREAMS, children, strict=True))


def _observe_all(sky: Sky, streams: dict[str, SeedSequence]) -> dict[str, Observation]:
    return {
        name: observe(survey, sky, default_rng(streams[name])) for name, survey in SURVEYS.items()
    }


def _labelled(sky: Sky, seen: dict[str, Observation]) -> NDArray[np.intp]:
    """Choose the first objects of each class that both SAGE and UBVI have."""
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
