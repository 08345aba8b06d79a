"""`skyfill match --probability` on HATS catalogues gives what it gives on files."""

import json
from itertools import count

import numpy as np
import pytest
from astropy import units as astropy_units
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.cli import main
from skyfill.scale import hats_sample
from skyfill.scale.hats import open_hats, write_hats
from skyfill.scale.hats_counterparts import CounterpartMatch
from skyfill.scale.job_folder import folder_of
from tests.stars import read_hats_table

pytest.importorskip("lsdb", reason="needs LSDB: pip install skyfill[lsdb]", exc_type=ImportError)

# LSDB 0.11 itself uses what pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ARC = 1 / 3600
N, N_FIELD = 120, 5000
MOTION = {name: ColumnInfo("mas/yr") for name in ("pmra", "pmdec")}
MAG = {"R": ColumnInfo("mag", "phot.mag", role=Role.FEATURE)}


def make_tables():
    """Objects in a field of one by one degree, with bright counterparts among faint sources."""
    rng = np.random.default_rng(1)
    ra, dec = rng.uniform(10, 11, N), rng.uniform(-0.5, 0.5, N)
    # Pairs of objects that compete for the same sources.
    ra[1::8], dec[1::8] = ra[::8] + 8 * ARC, dec[::8]
    has = np.arange(N) % 4 > 0
    optical = {
        "ra": np.append(ra[has], rng.uniform(10, 11, N_FIELD)),
        "dec": np.append(dec[has], rng.uniform(-0.5, 0.5, N_FIELD)),
        "R": np.append(rng.normal(19, 0.5, has.sum()), rng.normal(22, 1, N_FIELD)),
    }
    optical["err"] = np.full(len(optical["ra"]), 0.1)
    radio = {"ra": ra[::3], "dec": dec[::3], "flux": rng.uniform(1, 2, len(ra[::3]))}
    radio["err"] = np.full(len(radio["ra"]), 0.5)
    base = {"id": np.arange(N), "ra": ra + rng.normal(0, 4, N) * ARC}
    base |= {"dec": dec + rng.normal(0, 4, N) * ARC, "pos_err": np.full(N, 4.0)}
    base |= {"pmra": rng.normal(0, 200, N), "pmdec": rng.normal(0, 200, N)}
    tables = {
        "x": Table.from_columns(base, info=MOTION),
        "opt": Table.from_columns(optical, info=MAG),
    }
    return tables | {"radio": Table.from_columns(radio)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """HATS catalogues with and without a margin, and files with the same rows in the same order."""
    folder = tmp_path_factory.mktemp("skies")
    for name, table in make_tables().items():
        rows, wide = {"x": (40, 60), "opt": (2000, 0), "radio": (1000, 60)}[name]
        write_hats(table, folder / f"{name}_h", partition_rows=rows, margin_arcsec=wide)
        write_table(read_hats_table(folder / f"{name}_h"), folder / f"{name}.parquet")
    assert len(open_hats(folder / "x_h").get_healpix_pixels()) > 3
    assert open_hats(folder / "x_h").margin is not None
    assert open_hats(folder / "opt_h").margin is None
    return folder


@pytest.fixture
def at(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words)])


STATED = ("--error", "opt=err", "--probability")


def both(tmp_path, *words):
    """Match files and HATS catalogues in the same way; return both tables and reports."""
    words = (*STATED, "--name", "opt", *words)
    plain = run("x.parquet", "opt.parquet", *words, "-o", tmp_path / "plain.parquet")
    assert plain.exit_code == 0, plain.output
    done = run("hats://x_h", "hats://opt_h", *words, "-o", f"hats://{tmp_path}/joined")
    assert done.exit_code == 0, done.output
    return read_table(tmp_path / "plain.parquet"), read_hats_table(tmp_path / "joined"), plain, done


def assert_same(found, expected):
    assert set(found.names) == set(expected.names)
    for name in expected.names:
        assert found.info(name) == expected.info(name), name
        if expected.arrow.field(name).type == "double":
            np.testing.assert_allclose(found.numbers(name), expected.numbers(name), rtol=1e-9)
        else:
            assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name


def test_positions_of_two_surveys_give_the_numbers_of_files_on_a_cluster_too(at, tmp_path):
    distributed = pytest.importorskip("distributed")
    words = ("--name", "opt", "--name", "radio", *STATED, "--error", "radio=err",
             "--photometry", "none", "--area", "opt=1")  # fmt: skip
    names = ("x", "opt", "radio")
    outputs = ("-o", tmp_path / "best.parquet", "--all", tmp_path / "all.parquet")
    plain = run(*(f"{name}.parquet" for name in names), *words, *outputs)
    assert plain.exit_code == 0, plain.output
    outputs = ("-o", f"hats://{tmp_path}/best", "--all", f"hats://{tmp_path}/all")
    # Any free port: another job on this machine may have the usual one.
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        where = ("--scheduler", client.scheduler.address)
        done = run(*(f"hats://{name}_h" for name in names), *words, *outputs, *where)
    assert done.exit_code == 0, done.output
    assert done.stdout == plain.stdout
    for name in ("best", "all"):
        assert_same(read_hats_table(tmp_path / name), read_table(tmp_path / f"{name}.parquet"))
    assert read_table(tmp_path / "best.parquet").numbers("n_rivals").sum() > 0


def test_magnitudes_and_a_wanted_false_rate_give_the_numbers_of_files(at, tmp_path):
    expected, found, plain, done = both(tmp_path, "--false-rate", "0.2", "--json")
    assert_same(found, expected)
    ours, theirs = (json.loads(said.stdout) for said in (done, plain))
    assert ours["flags"] == theirs["flags"]
    assert ours["threshold"] == theirs["threshold"]
    assert ours["surveys"][0] == pytest.approx(theirs["surveys"][0])


def test_objects_move_to_the_epoch_of_the_survey_as_in_files(at, tmp_path):
    words = ("--epoch", "base=2016", "--epoch", "opt=2000", "--photometry", "none", "--area", "1")
    expected, found, _, _ = both(tmp_path, *words)
    assert_same(found, expected)
    east, north = (found.numbers("ra", "dec") - found.numbers("ra_opt", "dec_opt")).T / ARC
    as_stored = np.hypot(east * np.cos(np.radians(found.numbers("dec")[:, 0])), north)
    assert np.nanmax(np.abs(found.numbers("sep_opt")[:, 0] - as_stored)) > 1


def test_a_shift_a_footprint_and_a_depth_are_those_of_files(at, tmp_path):
    mocpy = pytest.importorskip("mocpy")
    unit = astropy_units.deg
    moc = mocpy.MOC.from_cone(10.5 * unit, 0 * unit, radius=0.4 * unit, max_depth=10)
    moc.save(tmp_path / "moc.fits", format="fits")
    words = ("--remove-offset", "--radius", "20", "--footprint", f"opt={tmp_path}/moc.fits")
    expected, found, plain, done = both(tmp_path, *words, "--depth", "opt=R:25", "--json")
    assert_same(found, expected)
    ours, theirs = (json.loads(said.stdout)["surveys"][0] for said in (done, plain))
    assert ours["offset"] == theirs["offset"]
    assert ours["offset"]["n_pairs"] > 0
    uncovered = expected.column("R_opt_gap").to_pylist().count("uncovered")
    assert uncovered > 5


def test_a_search_that_was_killed_goes_on_with_what_is_written(at, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = ("hats://x_h", "hats://opt_h", "--name", "opt", *STATED, "--photometry", "none")
    words = (*words, "-o", f"hats://{out}")
    match, calls = CounterpartMatch.match, count()

    def failing(*args):
        if next(calls) == 3:
            raise RuntimeError("power cut")
        return match(*args)

    with monkeypatch.context() as patch:
        patch.setattr(CounterpartMatch, "match", failing)
        with pytest.raises(RuntimeError, match="power cut"):
            CliRunner().invoke(main, ["match", *words], catch_exceptions=False)
    parts = folder_of(out) / "parts"
    written = {path: path.stat().st_mtime_ns for path in parts.glob("**/Npix=*.parquet")}
    assert written
    other = run(*words, "--resume", "--p-any", "0.7")
    assert other.exit_code == 2
    assert "these parts belong to another run (it differs in: --p-any)" in other.stderr
    said = run(*words, "--resume")
    assert said.exit_code == 0, said.output
    for path, time in written.items():
        assert (out / path.relative_to(parts)).stat().st_mtime_ns == time
    plain = run("x.parquet", "opt.parquet", *words[2:-1], tmp_path / "plain.parquet")
    assert plain.exit_code == 0, plain.output
    assert_same(read_hats_table(out), read_table(tmp_path / "plain.parquet"))


def test_a_sample_of_partitions_learns_nearly_what_all_of_them_do(at, tmp_path, monkeypatch):
    monkeypatch.setattr(hats_sample.read_sample, "__kwdefaults__",
                        {"most_objects": 60, "most_sources": 10**6})  # fmt: skip
    expected, found, _, _ = both(tmp_path, "--photometry", "none", "--area", "1")
    p = [table.numbers("p_any")[:, 0] for table in (expected, found)]
    assert 0 < np.abs(p[0] - p[1]).max() < 0.2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--all", "all.parquet"), "all.parquet: HATS catalogues are matched with HATS"),
        (("--depth", "opt=edge"), "--depth opt=edge: the faint edge is measured on whole tables"),
        (("--schema", "opt=x.toml"), "--schema: the columns of a HATS catalogue are described in"),
        (("--error", "base=nothing"), "nothing"),
        (("--bands", "opt=mag"), "mag"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(at, tmp_path, words, message):
    out = tmp_path / "never"
    done = run(
        "hats://x_h", "hats://opt_h", "--name", "opt", *STATED, *words, "-o", f"hats://{out}"
    )
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not out.exists()
