"""Write a simulated field as the surveys would publish it, in different formats."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from skyfill.catalog import Provenance, Role, Table, write_table
from skyfill.datasets.field.observing import SURVEYS
from skyfill.datasets.field.simulate import Field
from skyfill.datasets.field.xray import CounterpartField

FILES = {
    "macho": "macho.ecsv",
    "sage": "sage.fits",
    "two_mass": "two_mass.vot",
    "ubvi": "ubvi.ecsv",
    "truth": "truth.parquet",
    "candidates": "candidates.ecsv",
    "light_curves": "light_curves.parquet",
}
# What stands for a gap in the UBVI catalogue, as in many catalogues of its time.
SENTINEL, ERROR_SENTINEL = 99.999, 9.999
# The schema that declares them to `read_table`.
_UBVI_SCHEMA = f"""\
[survey.magnitudes]
columns = ["U", "B", "V", "I"]
sentinels = [{SENTINEL}]

[survey.errors]
columns = ["e_U", "e_B", "e_V", "e_I"]
sentinels = [{ERROR_SENTINEL}]
"""


def write_field(field: Field, folder: str | Path) -> dict[str, Path]:
    """Write the catalogues of a field, the truth and, with mocpy, the footprints.

    Parameters
    ----------
    field : Field
        From `simulate_field` or `simulate_training_set`.
    folder : str or path
        Created if needed; files in it are replaced.

    Returns
    -------
    dict from name to path
        ECSV, FITS, VOTable and Parquet files; ``ubvi.ecsv`` has gaps as 99.999 (errors 9.999) and
        no limits, and ``ubvi.toml`` is the schema that declares these numbers.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.datasets.field.simulate import simulate_field
    >>> files = write_field(simulate_field(50), tempfile.mkdtemp())
    >>> files["sage"].name, files["two_mass"].name
    ('sage.fits', 'two_mass.vot')
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    provenance = Provenance("skyfill.datasets.write_field", seed=field.seed)
    files = {}
    for name, file in FILES.items():
        table: Table | None = getattr(field, name)
        if table is None:
            continue
        files[name] = folder / file
        table = with_sentinels(table) if name == "ubvi" else table
        write_table(table, files[name], provenance=provenance)
    files["ubvi_schema"] = folder / "ubvi.toml"
    files["ubvi_schema"].write_text(_UBVI_SCHEMA)
    return files | _write_footprints(folder)


def write_counterpart_field(field: CounterpartField, folder: str | Path) -> dict[str, Path]:
    """Write the base, the surveys and the truth of a field with known counterparts.

    Returns
    -------
    dict from name to path

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.datasets.field.xray import simulate_xray_field
    >>> sorted(write_counterpart_field(simulate_xray_field(20), tempfile.mkdtemp()))
    ['base', 'infrared', 'optical', 'truth']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"base": field.base, **field.surveys, "truth": field.truth}
    files = {name: folder / f"{name}.fits" for name in tables}
    provenance = Provenance("skyfill.datasets.write_counterpart_field")
    for name, table in tables.items():
        write_table(table, files[name], provenance=provenance)
    return files


def with_sentinels(table: Table) -> Table:
    """Write gaps as numbers: 99.999 for a magnitude, 9.999 for an error; limits are dropped.

    Examples
    --------
    >>> from skyfill.datasets.field.simulate import simulate_field
    >>> published = with_sentinels(simulate_field(200).ubvi)
    >>> float(published.numbers("U").max()), float(published.numbers("e_U").max())
    (99.999, 9.999)
    """
    table = table.drop([*table.names_with(Role.LIMIT), *table.names_with(Role.REASON)])
    for role, number in ((Role.FEATURE, SENTINEL), (Role.ERROR, ERROR_SENTINEL)):
        for name in table.names_with(role):
            values = np.nan_to_num(table.numbers(name)[:, 0].round(3), nan=number)
            table = table.with_column(name, values)
    return table


def _write_footprints(folder: Path) -> dict[str, Path]:
    if find_spec("mocpy") is None:
        return {}
    files = {f"{name}_moc": folder / f"{name}.moc.fits" for name in SURVEYS}
    for name, survey in SURVEYS.items():
        survey.footprint.to_moc().save(files[f"{name}_moc"], format="fits", overwrite=True)
    return files
