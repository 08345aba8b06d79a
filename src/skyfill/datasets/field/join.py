"""The field's catalogs joined by the truth: what a perfect cross-match would give."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Reason, Role, Table
from skyfill.datasets.field.simulate import Field
from skyfill.datasets.field.surveys import SURVEYS, Survey


def join_by_truth(field: Field) -> Table:
    """Join the base catalog with the three surveys by the true identities.

    Parameters
    ----------
    field : Field
        What `simulate_field` or `simulate_training_set` gives.

    Returns
    -------
    Table
        One row per object of the base catalog: id, class, position, V and R of the base catalog
        as ``V_macho`` and ``R_macho``, the magnitudes of the surveys with errors, limits and the
        reasons of their gaps.

    Examples
    --------
    >>> from skyfill.datasets.field.simulate import simulate_training_set
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
    """Return the row of each object in a survey's catalog; null where it has none."""
    known = getattr(field, name).column("id").combine_chunks()
    return pc.index_in(field.truth.column(f"id_{name}").combine_chunks(), known, skip_nulls=True)


def _with_survey(table: Table, field: Field, *, survey: Survey, rows: pa.Array) -> Table:
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
