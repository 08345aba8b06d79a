"""`skyfill match`: what it writes, what it says, how it fails."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from skyfill.catalog import ColumnInfo, Table, read_table, write_table
from skyfill.cli.main import main

ARCSEC = 1 / 3600


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["match", *map(str, words)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A base in CSV, a survey in FITS with radians, another in VOTable with sexagesimal text."""
    rng = np.random.default_rng(1)
    ra, dec = rng.uniform(80, 81, 50), rng.uniform(-69, -68, 50)
    write_table(Table.from_columns({"id": np.arange(50), "ra": ra, "dec": dec}), tmp_path / "b.csv")
    radians = {"ra": np.radians(ra[:30]), "dec": np.radians(dec[:30] + 2 * ARCSEC)}
    info = {name: ColumnInfo(unit="rad") for name in radians}
    nir = Table.from_columns({**radians, "J": np.arange(30.0), "n_obs": np.arange(30)}, info=info)
    write_table(nir, tmp_path / "nir.fits")
    hours = ra[20:] / 15
    text = [f"{int(h):02d}h{int(h * 60 % 60):02d}m{h * 3600 % 60:09.6f}s" for h in hours]
    optical = {"RAJ2000": text, "DEJ2000": dec[20:], "B": np.arange(30.0)}
    write_table(Table.from_columns(optical), tmp_path / "ubvi.vot")
    return tmp_path


def test_surveys_of_three_formats_are_joined_and_counted(folder: Path):
    out = folder / "joined.parquet"
    done = run(folder / "b.csv", folder / "nir.fits", folder / "ubvi.vot", "--radius", "1",
               "--radius", "nir=3", "-o", out)  # fmt: skip
    assert done.exit_code == 0, done.output
    joined = read_table(out)
    assert len(joined) == 50
    assert joined.column("J_nir").to_pylist() == [*map(float, range(30)), *[None] * 20]
    assert joined.column("B_ubvi").to_pylist() == [*[None] * 20, *map(float, range(30))]
    assert joined.reasons("J_nir").to_pylist() == [*[None] * 30, *["unmatched"] * 20]
    assert joined.column("n_obs_nir").type == "int64"
    first, second = done.stdout.splitlines()
    assert first.startswith("nir (3 arcsec): 30 matched (0 ambiguous), 20 unmatched")
    assert "expected chance matches: 0.0 +- 0.0" in first
    assert second.startswith("ubvi (1 arcsec): 30 matched")
    assert done.stderr.splitlines() == [
        "guessed: base: position ra, dec (no unit: degrees)",
        "guessed: nir: position ra, dec",
        "guessed: ubvi: position RAJ2000, DEJ2000",
        f"50 rows, {len(joined.names)} columns -> {out}",
    ]


def test_provenance_names_the_command_and_the_inputs(folder: Path):
    out = folder / "joined.fits"
    assert run(folder / "b.csv", folder / "nir.fits", "--keep", "best", "-o", out).exit_code == 0
    record = json.loads(read_table(out).meta["provenance"])
    assert record["command"].endswith(f"match {folder / 'b.csv'} {folder / 'nir.fits'} --output "
                                      f"{out} --keep best")  # fmt: skip
    assert [Path(each["file"]).name for each in record["inputs"]] == ["b.csv", "nir.fits"]


def test_the_offset_is_removed_and_reported_as_json(folder: Path):
    out = folder / "joined.ecsv"
    done = run(folder / "b.csv", folder / "nir.fits", "--name", "J", "--remove-offset", "--json",
               "--controls", "0", "-o", out)  # fmt: skip
    (report,) = json.loads(done.stdout)["surveys"]
    assert report["name"] == "J"
    assert report["matched"] == 30
    assert report["offset"]["dec_arcsec"] == pytest.approx(-2, abs=1e-3)
    assert report["chance"] is None
    assert read_table(out).numbers("sep_J")[:30].max() < 0.01


def test_footprints_tell_uncovered_from_unmatched(folder: Path):
    moc = pytest.importorskip("mocpy").MOC
    moc.from_string("0/3").save(folder / "moc.fits", format="fits")
    done = run(folder / "b.csv", folder / "nir.fits", "--radius", "3", "-o", folder / "o.csv",
               "--footprint", f"nir={folder / 'moc.fits'}")  # fmt: skip
    assert "30 matched (0 ambiguous), 0 unmatched (0 taken), 20 uncovered" in done.stdout


def test_sentinels_of_a_schema_become_rows_without_position(folder: Path):
    (folder / "s.csv").write_text("ra,dec,K\n-999,-999,1.0\n80.5,-68.5,2.0\n")
    words = [folder / "b.csv", folder / "s.csv", "-o", folder / "o.csv"]
    refused = run(*words)
    assert refused.exit_code == 2
    assert "s: column 'ra', row 1: -999 deg is beyond 360 degrees" in refused.stderr
    (folder / "s.toml").write_text(
        "[columns.ra]\nsentinels = [-999]\n[columns.dec]\nsentinels = [-999]\n"
    )
    accepted = run(*words, "--schema", f"s={folder / 's.toml'}")
    assert accepted.exit_code == 0, accepted.output
    assert "0 matched" in accepted.stdout


def test_epochs_move_the_base_to_the_survey(folder: Path):
    ra = 10 + 16 * ARCSEC  # one arcsec a year for sixteen years
    base = {"ra": [ra], "dec": [0.0], "pmra": [1000.0], "pmdec": [0.0], "ref_epoch": [2016.0]}
    write_table(Table.from_columns(base), folder / "gaia.fits")
    write_table(Table.from_columns({"ra": [10.0], "dec": [0.0]}), folder / "old.fits")
    words = [folder / "gaia.fits", folder / "old.fits", "-o", folder / "o.csv"]
    assert "0 matched" in run(*words).stdout
    assert "1 matched" in run(*words, "--epoch", "old=2000").stdout
    assert "1 matched" in run(*words, "--epoch", "2000").stdout


def test_a_survey_without_a_match_is_a_warning_that_hints_at_units(folder: Path):
    done = run(folder / "b.csv", folder / "nir.fits", folder / "ubvi.vot", "--position",
               "nir=ra:dec:deg", "-o", folder / "o.csv")  # fmt: skip
    assert done.exit_code == 0
    assert "warning: nir: nothing lies within 1.5 arcsec" in done.stderr
    assert "check the units of the positions" in done.stderr


def test_no_overlap_on_the_sky_is_an_error(folder: Path):
    done = run(folder / "b.csv", folder / "nir.fits", "--position", "nir=ra:dec:deg",
               "-o", folder / "o.csv")  # fmt: skip
    assert done.exit_code == 2
    assert "Error: nir: nothing lies within 1.5 arcsec" in done.stderr
    assert not (folder / "o.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["b.csv", "absent.csv"], "absent.csv"),
        (["b.csv", "nir.fits", "nir.fits"], "two catalogues are called 'nir'"),
        (["b.csv", "nir.fits", "--name", "base"], "two catalogues are called 'base'"),
        (["b.csv", "nir.fits", "--name", "a", "--name", "b"], "2 --name for 1 surveys"),
        (["b.csv", "nir.fits", "--radius", "wide"], "'wide' is not a number (arcsec)"),
        (["b.csv", "nir.fits", "--radius", "-1"], "must not be negative"),
        (["b.csv", "nir.fits", "--radius", "2mass=3"], "no '2mass'; the names are nir"),
        (["b.csv", "nir.fits", "--position", "ra:dec"], "write --position NAME=ra:dec"),
        (["b.csv", "nir.fits", "--position", "base=rah:dec"], "base: no column 'rah'"),
        (["b.csv", "nir.fits", "--epoch", "nir=today"], "'today' is not a number (a year"),
        (["b.csv", "nir.fits", "--footprint", "nir=absent.fits"], "absent.fits: no such file"),
        (["nir.fits", "b.csv", "--position", "base=ra:dec:parsec"], "'parsec' is not a unit"),
    ],
)
def test_mistakes_are_one_line_with_exit_code_2(folder: Path, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*words, "-o", "out.parquet")
    assert done.exit_code == 2
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if "guessed: " not in line]) == 1
    assert not (folder / "out.parquet").exists()


def test_the_help_shows_an_example():
    done = run("--help")
    assert done.exit_code == 0
    assert "skyfill match field/macho.ecsv field/sage.fits" in " ".join(done.stdout.split())
