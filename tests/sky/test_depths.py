"""Depths of surveys, as limits of the objects that they do not see."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.sky import MatchRules, Survey, faint_edge, join_surveys

NORTH, SOUTH = 20.0, 18.0


@pytest.fixture(scope="module")
def sky():
    """A survey that is two magnitudes deeper in the north, and a base that it sees in part."""
    rng = np.random.default_rng(4)
    ra, dec = rng.uniform(10, 11, 4000), rng.uniform(-0.5, 0.5, 4000)
    true = rng.uniform(14, 22, 4000)
    edge = np.where(dec > 0, NORTH, SOUTH)
    base = Table.from_columns({"ra": ra, "dec": dec, "G": true + 1})
    seen = true < edge
    info = {"J": ColumnInfo("mag"), "e_J": ColumnInfo("mag", role=Role.ERROR, of="J")}
    columns = {"ra": ra[seen], "dec": dec[seen], "J": true[seen], "e_J": np.full(seen.sum(), 0.1)}
    return base, Table.from_columns(columns, info=info), true, edge


def joined(base, nir, depths, **more):
    survey = Survey("nir", nir, 1.0, depths=depths, **more)
    return join_surveys(base, [survey], MatchRules(n_controls=0))[0]


def test_the_faint_edge_nearby_is_the_limit_of_unmatched_objects(sky):
    base, nir, true, edge = sky
    found = joined(base, nir, {"J": None})
    limits, lost = found.numbers("J_nir_limit")[:, 0], np.isnan(found.numbers("J_nir")[:, 0])
    assert lost.sum() > 1000
    assert np.array_equal(np.isnan(limits), ~lost)
    # The hundred nearest sources lie within 0.15 degrees.
    away = lost & (np.abs(base.numbers("dec")[:, 0]) > 0.3)
    assert np.abs(limits - edge)[away].max() < 0.5
    assert (limits <= edge)[away].all()
    info = found.info("J_nir_limit")
    assert (info.role, info.of, info.unit) == (Role.LIMIT, "J_nir", "mag")


def test_a_stated_depth_is_the_limit_of_every_unmatched_object(sky):
    base, nir, *_ = sky
    found = joined(base, nir, {"J": 19.5})
    lost = np.isnan(found.numbers("J_nir")[:, 0])
    limits = found.numbers("J_nir_limit")[:, 0]
    assert np.array_equal(limits[lost], np.full(lost.sum(), 19.5))
    assert np.isnan(limits[~lost]).all()


def test_limits_that_a_survey_states_are_kept():
    base = Table.from_columns({"ra": [10.0, 20.0], "dec": [0.0, 0.0]})
    info = {"J": ColumnInfo("mag"), "J_limit": ColumnInfo("mag", role=Role.LIMIT, of="J")}
    columns = {"ra": [10.0], "dec": [0.0], "J": [None], "J_limit": [17.5]}
    nir = Table.from_columns({**columns, "J": np.array([np.nan])}, info=info)
    found = joined(base, nir, {"J": 16.0})
    assert found.column("J_limit_nir").to_pylist() == [17.5, 16.0]
    assert "J_nir_limit" not in found.names


class HalfSky:
    """Everything north of the equator."""

    def covers(self, ra_deg, dec_deg):
        return dec_deg > 0


def test_objects_outside_the_footprint_have_no_limit(sky):
    base, nir, *_ = sky
    found = joined(base, nir, {"J": None}, footprint=HalfSky())
    uncovered = np.array(found.column("flag_nir").to_pylist()) == "uncovered"
    assert uncovered.sum() > 500
    assert np.isnan(found.numbers("J_nir_limit")[uncovered, 0]).all()


@given(st.floats(0.1, 100), st.integers(0, 2**32 - 1))
def test_the_edge_of_fluxes_mirrors_that_of_magnitudes(factor, seed):
    rng = np.random.default_rng(seed)
    there = rng.uniform(0, 1, 300), rng.uniform(0, 1, 300)
    values, at = rng.normal(size=300), (np.array([0.5, np.nan]), np.array([0.5, 0.0]))
    faint = faint_edge(factor * values, there, at, is_magnitude=True)
    mirrored = faint_edge(-factor * values, there, at, is_magnitude=False)
    assert faint[0] == pytest.approx(-mirrored[0])
    assert np.isnan([faint[1], mirrored[1]]).all()


def test_a_column_without_values_has_no_edge():
    nowhere = (np.array([1.0]), np.array([1.0]))
    with pytest.raises(CatalogError, match="no value at all"):
        faint_edge(np.array([np.nan]), nowhere, nowhere, is_magnitude=True)


def run(*words, code=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def test_train_and_impute_use_the_depths_that_match_writes(sky, tmp_path):
    base, nir, true, edge = sky
    write_table(base.with_info("G", unit="mag"), tmp_path / "base.parquet")
    write_table(nir, tmp_path / "nir.parquet")
    out = tmp_path / "out.parquet"
    done = run("match", tmp_path / "base.parquet", tmp_path / "nir.parquet", "--depth", "edge",
               "--json", "-o", out)  # fmt: skip
    said = json.loads(done.stdout)["input"]
    assert said["declared"] == ["nir: depth of J: the faint edge nearby"]
    assert said["guessed"] == [
        "base: position ra, dec (no unit: degrees)",
        "nir: position ra, dec (no unit: degrees)",
    ]
    words = ("--features", "G,J_nir", "--components", "1", "--fits", "1", "--refine", "off",
             "--json")  # fmt: skip
    done = run("train", out, *words, "-o", tmp_path / "m.skyfill")
    lost = np.isnan(read_table(out).numbers("J_nir")[:, 0])
    assert json.loads(done.stdout)["cells"]["limited"] == lost.sum()
    run("impute", tmp_path / "m.skyfill", out, "-o", tmp_path / "filled.parquet")
    filled = read_table(tmp_path / "filled.parquet").numbers("J_nir")[lost, 0]
    limits = read_table(out).numbers("J_nir_limit")[lost, 0]
    away = np.abs(base.numbers("dec")[lost, 0]) > 0.3
    # Errors of 0.1 make the limits soft.
    assert (filled > limits - 0.3)[away].all()
    assert np.abs(filled - true[lost]).mean() < 0.3


@pytest.mark.parametrize(
    ("depth", "message"),
    [
        ("nir=J", "write nir=COLUMN:NUMBER"),
        ("nir=K:15", "no column 'K'"),
        ("other=edge", "no 'other'; the names are nir"),
        ("nir=plain:15", "neither unit nor UCD"),
    ],
)
def test_a_wrong_depth_is_an_error(sky, tmp_path, depth, message):
    base, nir, *_ = sky
    write_table(base, tmp_path / "base.parquet")
    write_table(nir.with_column("plain", nir.numbers("J")[:, 0]), tmp_path / "nir.parquet")
    words = ("match", tmp_path / "base.parquet", tmp_path / "nir.parquet", "--depth", depth)
    said = run(*words, "-o", tmp_path / "out.parquet", code=2)
    assert message in " ".join(said.stderr.split())


def test_a_depth_in_the_schema_of_a_survey_holds_for_unmatched_objects(sky, tmp_path):
    base, nir, *_ = sky
    write_table(base, tmp_path / "base.parquet")
    write_table(nir, tmp_path / "nir.parquet")
    (tmp_path / "nir.toml").write_text("columns.J.depth = 19.0")
    run("match", tmp_path / "base.parquet", tmp_path / "nir.parquet", "--schema",
        f"nir={tmp_path / 'nir.toml'}", "-o", tmp_path / "out.parquet")  # fmt: skip
    found = read_table(tmp_path / "out.parquet")
    limits = found.numbers(next(n for n in found.names_with(Role.LIMIT)))[:, 0]
    assert (limits[np.isnan(found.numbers("J_nir")[:, 0])] == 19.0).all()
