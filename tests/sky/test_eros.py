"""EROS-1 against the MACHO variables: a real pair of surveys with a systematic shift."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from skyfill.catalog import Table, read_table
from skyfill.sky import MatchRules, Survey, join_surveys


@pytest.fixture(scope="module")
def folder() -> Path:
    named = os.environ.get("SKYFILL_DATA")
    if named is None or not (Path(named) / "eros1" / "train.csv").is_file():
        pytest.skip("SKYFILL_DATA does not name a folder with eros1/ and macho/")
    return Path(named)


def test_eros_stars_have_1574_macho_counterparts_and_few_by_chance(folder: Path):
    parts = [read_table(folder / "eros1" / f"{part}.csv").arrow for part in ("train", "test")]
    eros = Table(pa.concat_tables(parts))
    macho = read_table(folder / "macho" / "macho_vs_catalog.csv")
    assert (len(eros), len(macho)) == (3641, 21474)
    rules = MatchRules(remove_offset=True)
    joined, (report,) = join_surveys(eros, [Survey("macho", macho, 3.0)], rules)
    assert len(joined) == 3641
    assert abs(report.matched - 1574) <= 5
    assert abs(report.chance.mean - 3) <= 5
    assert joined.column("starid_macho").null_count == 3641 - report.matched
    assert joined.column("starid_macho").type == macho.column("starid").type
    starids = joined.column("starid_macho").drop_null()
    assert len(starids.unique()) == report.matched
