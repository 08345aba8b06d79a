"""`skyfill match` and `skyfill train` on HATS catalogues, also with bad input."""

import json
from itertools import count

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, read_table, write_table
from skyfill.cli import main, terminal
from skyfill.model import load_model
from skyfill.scale.hats import write_hats
from skyfill.scale.hats_rule import OneToOne
from skyfill.scale.inputs import open_source
from skyfill.scale.job_folder import folder_of
from skyfill.scale.workers import open_client
from tests.stars import read_hats_table

pytest.importorskip("lsdb", reason="needs LSDB: pip install skyfill[lsdb]", exc_type=ImportError)

# LSDB 0.11 itself uses what pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ARCSEC = 1 / 3600
N = 600


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def sky(shift, rows):
    rng = np.random.default_rng(1)
    ra, dec = rng.uniform(75, 85, N)[rows], rng.uniform(-72, -66, N)[rows] + shift * ARCSEC
    columns = {"id": np.arange(N)[rows], "ra": ra, "dec": dec, "J": ra + dec}
    return Table.from_columns(columns, info={"J": ColumnInfo(unit="mag", role=Role.FEATURE)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A base, a survey of its first half at 1 arcsec, one of its last third at 2 arcsec."""
    folder = tmp_path_factory.mktemp("skies")
    surveys = {"base": sky(0, slice(N)), "nir": sky(1, slice(300)), "mir": sky(2, slice(400, N))}
    for name, table in surveys.items():
        write_hats(table, folder / f"{name}_h", partition_rows=150)
        write_table(table, folder / f"{name}.parquet")
    return folder


@pytest.fixture
def at(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_hats_catalogs_are_joined_and_counted_like_files(at, tmp_path):
    out = f"hats://{tmp_path}/joined"
    names = ("--name", "nir", "--name", "mir", "--radius", "2.5", "--radius", "nir=1.2")
    said = run("match", "hats://base_h", "hats://nir_h", "hats://mir_h", *names, "-o", out)
    assert said.exit_code == 0, said.output
    first, second = said.stdout.splitlines()
    assert first.startswith("nir (1.2 arcsec): 300 matched (0 ambiguous), 300 unmatched (0 taken)")
    assert second.startswith("mir (2.5 arcsec): 200 matched")
    files = run("match", "base.parquet", "nir.parquet", "mir.parquet", *names, "--controls", "0",
                "-o", tmp_path / "joined.parquet")  # fmt: skip
    assert files.stdout == said.stdout
    found, expected = read_hats_table(out), read_table(tmp_path / "joined.parquet")
    assert said.stderr.endswith(f"{N} rows, {len(found.names)} columns -> {out}\n")
    found = found.arrow.sort_by("id").combine_chunks()
    assert found.equals(expected.arrow.select(found.column_names).combine_chunks())
    record = json.loads(read_hats_table(out).meta["provenance"])
    assert "match hats://base_h hats://nir_h hats://mir_h" in record["command"]
    assert len(record["inputs"]) == 3


def test_a_match_that_was_interrupted_goes_on_with_what_is_written(at, tmp_path, monkeypatch):
    out = tmp_path / "out"
    words = ("match", "hats://base_h", "hats://nir_h", "-o", f"hats://{out}")
    monkeypatch.setattr(terminal, "SECONDS_PER_LINE", 0.0)
    decide, calls = OneToOne._decide, count()

    def failing(*args):
        if next(calls) == 4:
            raise RuntimeError("power cut")
        return decide(*args)

    with monkeypatch.context() as patch:
        patch.setattr(OneToOne, "_decide", failing)
        with pytest.raises(RuntimeError, match="power cut"):
            CliRunner().invoke(main, words, catch_exceptions=False)
    parts = folder_of(out) / "parts"
    # Nothing is at work any more: what is there is whole, and stays.
    written = {path: path.stat().st_mtime_ns for path in parts.glob("**/Npix=*.parquet")}
    assert len(written) >= 4
    # Of another match nothing is taken.
    other = run(*words, "--resume", "--radius", "2")
    assert other.exit_code == 2
    assert "these parts belong to another run (it differs in: match)" in other.stderr
    assert {path: path.stat().st_mtime_ns for path in written} == written
    said = run(*words, "--resume")
    assert said.exit_code == 0, said.output
    assert f"matching: {N} rows" in said.stderr
    for path, time in written.items():
        assert (out / path.relative_to(parts)).stat().st_mtime_ns == time
    assert "nir_h (1.5 arcsec): 300 matched" in said.stdout
    assert "--resume" not in read_hats_table(out).meta["provenance"]


def test_rows_are_counted_in_files_folders_and_hats_catalogs(at, tmp_path):
    for name in ("a", "b"):
        write_table(sky(0, slice(10)), tmp_path / f"{name}.parquet")
    places = ("base.parquet", tmp_path, "hats://base_h")
    assert [open_source(place).count_rows() for place in places] == [N, 20, N]


def test_nothing_within_the_radius_is_a_warning_and_json_holds_the_counts(at, tmp_path):
    said = run("match", "hats://base_h", "hats://nir_h", "--radius", "0.5", "--keep", "symmetric",
               "--json", "-o", f"hats://{tmp_path}/out")  # fmt: skip
    assert said.exit_code == 0, said.output
    (report,) = json.loads(said.stdout)["surveys"]
    assert (report["name"], report["matched"], report["unmatched"]) == ("nir_h", 0, N)
    assert "warning: nir_h: nothing lies within 0.5 arcsec; check the radius" in said.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hats://base_h", "nir.parquet"], "nir.parquet: HATS catalogues are matched with HATS"),
        (["base.parquet", "hats://nir_h"], "write hats:// before all names or before none"),
        (["hats://base_h", "hats://nir_h", "-o", "out.parquet"], "out.parquet: HATS catalogues"),
        (["base.parquet", "nir.parquet", "--scheduler", "local", "-o", "out.parquet"],
         "--scheduler: files are matched on this machine"),
        (["base.parquet", "nir.parquet", "--resume", "-o", "out.parquet"],
         "--resume: files are matched in memory"),
        (["hats://base_h", "hats://nir_h", "--keep", "all"], "--keep: pairs of HATS catalogues"),
        (["hats://base_h", "hats://nir_h", "--remove-offset"], "--remove-offset: a shift"),
        (["hats://base_h", "hats://nir_h", "--position", "base=ra:dec"], "--position: a HATS"),
        (["hats://base_h", "hats://nir_h", "--epoch", "2000"], "--epoch: positions"),
        (["hats://base_h", "hats://nir_h", "--footprint", "nir_h=a"], "--footprint: objects"),
        (["hats://base_h", "hats://nir_h", "--id", "nir_h=id"], "--id: HATS catalogues"),
        (["hats://base_h", "hats://nir_h", "--schema", "nir_h=a"], "--schema: the columns"),
        (["hats://base_h", "hats://nir_h", "--controls", "2"], "--controls: chance matches"),
        (["hats://base_h", "hats://nir_h", "--radius", "5"], "its margin is 10 arcsec wide"),
        (["hats://base_h", "hats://nir_h", "--radius", "-1"], "it must be positive"),
        (["hats://base_h", "hats://nir_h", "--radius", "mir=1"], "no 'mir'; the names are nir_h"),
        (["hats://base_h", "hats://nir_h", "hats://nir_h"], "two catalogues are called 'nir_h'"),
        (["hats://base_h", "hats://none"], "hats://none: there is no such folder"),
        (["hats://base_h", "hats://nir_h", "-o", "hats://mir_h"], "hats://mir_h: exists"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_hats_catalogs_is_said_in_one_line(at, words, message):
    words = words if "-o" in words else [*words, "-o", "hats://out"]
    before = sorted(at.iterdir())
    said = run("match", *words)
    assert said.exit_code == 2
    assert message in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert sorted(at.iterdir()) == before


def test_a_model_of_a_hats_catalog_is_learned_on_a_cluster_with_its_units(at, tmp_path):
    out = tmp_path / "m.skyfill"
    words = ("--features", "J", "--components", "1", "--fits", "1", "-o", out, "--scheduler")
    with open_client("local", n_workers=1) as client:
        said = run("train", "hats://base_h", *words, client.scheduler.address)
    assert said.exit_code == 0, said.output
    assert f"{N} rows, 1 feature: 1 fit of about 1 component to all rows" in said.stderr
    model = load_model(out)
    assert model.features[0].unit == "mag"
    Z = model.network.scores(sky(0, slice(N)).numbers("J"))
    assert model.network.fits[0].means[0, 0] == pytest.approx(Z.mean(), abs=1e-9)
    missing = run("train", "hats://none", *words, "local")
    assert missing.exit_code == 2
    assert "hats://none: there is no such folder" in missing.stderr
