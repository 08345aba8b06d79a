"""Which magnitudes `match --probability` uses, and counterparts that are known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfill.cli.survey_options import BASE, named_values
from skyfill.cli.terminal import GUESSED, mention, note
from skyfill.errors import CatalogError, shortened

if TYPE_CHECKING:
    import numpy as np

    from skyfill.classify import MixturePhotometry
    from skyfill.sky import Surroundings, Survey


def choose_bands(
    base: Survey, surveys: Sequence[Survey], options: Mapping[str, Any]
) -> list[list[str]] | None:
    """Choose the columns of the base and of each survey; None for positions alone."""
    if options["photometry"] == "none":
        return None
    names = [BASE, *(survey.name for survey in surveys)]
    given = named_values(options["bands"], names, "--bands", lambda text: text.split(","))
    bands = [given.get(s.name, _magnitudes(s) if s is not base else []) for s in (base, *surveys)]
    for survey, own in zip((base, *surveys), bands, strict=True):
        survey.table.select(own)  # raises where there is no such column
        if own and survey.name not in given:
            mention(GUESSED, f"{survey.name}: bands {shortened(own, 200)}")
    if any(bands[1:]):
        return bands
    note("no magnitudes found: positions alone; name them with --bands NAME=COLUMN,...")
    return None


def read_photometry(
    base: Survey,
    surveys: Sequence[Survey],
    bands: Sequence[Sequence[str]] | None,
    there: Surroundings,
    prior_from: Path | None,
) -> MixturePhotometry | None:
    """Read the magnitudes that counterparts are recognized by; None for positions alone."""
    if bands is None:
        return None
    from skyfill.classify import MixturePhotometry
    from skyfill.classify.survey_magnitudes import read_magnitudes
    from skyfill.sky import group_elsewhere

    names = [BASE, *(survey.name for survey in surveys)]
    known = None if prior_from is None else _known(prior_from, names, bands)
    magnitudes = read_magnitudes(base, surveys, bands, there)
    return MixturePhotometry(magnitudes, group_elsewhere(there), known=known)


def _magnitudes(survey: Survey) -> list[str]:
    from skyfill.catalog import Role

    table = survey.table
    features = table.names_with(Role.FEATURE)
    return [
        name
        for name in features
        if table.info(name).unit == "mag" or (table.info(name).ucd or "").startswith("phot.mag")
    ]


def _known(path: Path, names: Sequence[str], bands: Sequence[Sequence[str]]) -> np.ndarray:
    """Read the values of known counterparts by the names that match gives to columns."""
    from skyfill.catalog import read_table

    table = read_table(path)
    suffixes = ["" if name == BASE else f"_{name}" for name in names]
    columns = [f"{b}{end}" for end, own in zip(suffixes, bands, strict=True) for b in own]
    absent = [name for name in columns if name not in table.names]
    if absent:
        raise CatalogError(
            f"{path}: no column {absent[0]!r}; --prior-from needs a table joined by skyfill match "
            f"with the same names of surveys and bands ({', '.join(columns)})"
        )
    return table.numbers(*columns)
