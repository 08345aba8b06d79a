"""Which magnitudes `match --probability` uses, and counterparts that are known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfill.cli.survey_options import BASE, named_values
from skyfill.cli.terminal import GUESSED, mention, note
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    import numpy as np

    from skyfill.classify import MixturePhotometry
    from skyfill.sky import Surroundings, Survey


def read_photometry(
    base: Survey, surveys: Sequence[Survey], there: Surroundings, options: Mapping[str, Any]
) -> MixturePhotometry | None:
    """Read the magnitudes that counterparts are recognized by; None for positions alone."""
    if options["photometry"] == "none":
        return None
    import numpy as np

    from skyfill.classify import MixturePhotometry
    from skyfill.sky import group_elsewhere

    names = [BASE, *(survey.name for survey in surveys)]
    given = named_values(options["bands"], names, "--bands", lambda text: text.split(","))
    bands = [given.get(s.name, _magnitudes(s) if s is not base else []) for s in (base, *surveys)]
    for survey, own in zip((base, *surveys), bands, strict=True):
        if own and survey.name not in given:
            mention(GUESSED, f"{survey.name}: bands {', '.join(own)}")
    if not any(bands[1:]):
        note("no magnitudes found: positions alone; name them with --bands NAME=COLUMN,...")
        return None
    values = [
        s.table.numbers(*b) if b else np.empty((len(s.table), 0))
        for s, b in zip((base, *surveys), bands, strict=True)
    ]
    known = options["prior_from"] and _known(options["prior_from"], names, bands)
    return MixturePhotometry(values[0], values[1:], group_elsewhere(there), known=known)


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
