"""`skyfill features`: what it writes, what it says, how it fails."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from skyfill.catalog import Role, Table, read_table, write_table
from skyfill.cli import main
from skyfill.datasets import simulate_field
from skyfill.lightcurve import extract_features, from_table


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["features", *map(str, words)])


@pytest.fixture(scope="module")
def curves() -> Table:
    found = simulate_field(8, light_curves=True).light_curves
    assert found is not None
    return found


def test_a_parquet_file_becomes_a_table_of_features(curves: Table, tmp_path: Path):
    path, out = tmp_path / "lc.parquet", tmp_path / "features.fits"
    write_table(curves, path)
    done = run(path, "-o", out)
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    expected = extract_features(from_table(curves), "macho14")
    found = read_table(out)
    names = expected.names_with(Role.FEATURE)
    assert found.names_with(Role.FEATURE) == names
    assert np.array_equal(found.numbers(*names), expected.numbers(*names), equal_nan=True)
    assert found.info("car_tau").unit == "d"
    points = int(expected.numbers("n_points_blue", "n_points_red").sum())
    assert done.stderr.splitlines() == [
        "guessed: id: id; time: time (days); value: mag (magnitudes); error: err; band: band",
        "guessed: bands, the bluest first: blue, red",
        f"8 objects, 14 features with 0 gaps (bands blue, red); {points} epochs used, 0 dropped "
        f"-> {out}",
    ]


def test_provenance_names_the_command_and_the_input(curves: Table, tmp_path: Path):
    path, out = tmp_path / "lc.csv", tmp_path / "features.parquet"
    write_table(curves, path)
    assert run(path, "-o", out, "--set", "mean,eta", "--band-order", "red").exit_code == 0
    found = read_table(out)
    record = json.loads(found.meta["provenance"])
    assert "features" in record["command"]
    assert "--band-order red" in record["command"]
    assert [Path(each["file"]).name for each in record["inputs"]] == ["lc.csv"]
    assert found.names_with(Role.FEATURE) == ("mean", "eta")


def test_counts_are_written_as_json(tmp_path: Path):
    path, out = tmp_path / "lc.csv", tmp_path / "features.csv"
    path.write_text("star,hjd,m,sig,f\n1,1,15,0.1,g\n1,2,15.2,0.1,g\n1,3,99,0,g\n2,1,16,0.1,g\n")
    done = run(path, "-o", out, "--id", "star", "--time", "hjd", "--value", "m", "--error", "sig",
               "--band", "f", "--set", "sigma,color", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert not any(facts.pop("input").values())
    assert facts == {
        "bands": ["g"], "objects": 2, "features": 2, "gaps": 3, "points": 3, "dropped": 1,
    }  # fmt: skip
    found = read_table(out)
    assert found.column("star").to_pylist() == [1, 2]
    assert found.numbers("sigma")[0, 0] == pytest.approx(0.2 / np.sqrt(2))
    assert found.reasons("sigma").to_pylist() == [None, "rejected"]


def test_outliers_are_clipped_and_fluxes_keep_their_unit(tmp_path: Path):
    path, out = tmp_path / "lc.csv", tmp_path / "features.parquet"
    rows = "".join(f"a,{t},{10 + t % 3}\n" for t in range(30))
    path.write_text("id,t,y\n" + rows + "a,31,1e9\n")
    assert run(path, "-o", out, "--flux", "--clip", "20", "--set", "mean,amplitude").exit_code == 0
    found = read_table(out)
    assert found.numbers("mean", "amplitude", "n_clipped").tolist() == [[11, 1, 1]]
    assert found.info("mean").ucd == "phot.flux;stat.mean"
    assert found.info("mean").unit is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "etta"], "no feature 'etta'; did you mean 'eta'"),
        (["--time", "tme"], "no column 'tme'"),
        (["--band-order", "Q"], "lc.csv: no measurement in band 'Q'; the bands are"),
        (["--clip", "0"], "Invalid value for '--clip'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(curves, tmp_path, words, message):
    path = tmp_path / "lc.csv"
    write_table(Table(curves.arrow.slice(0, 50)), path)
    done = run(path, "-o", tmp_path / "features.fits", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "features.fits").exists()


def test_a_file_that_is_not_there_and_a_bad_output_are_explained(tmp_path: Path):
    done = run(tmp_path / "none.csv", "-o", tmp_path / "out.fits")
    assert done.exit_code == 2
    assert "none.csv" in done.stderr
    path = tmp_path / "lc.csv"
    path.write_text("id,t,mag\n1,1,15\n")
    done = run(path, "-o", tmp_path / "out.xyz")
    assert done.exit_code == 2
    assert "no output format has this extension" in done.stderr


def test_features_that_were_interrupted_are_finished_with_the_same_bytes(tmp_path, monkeypatch):
    from skyfill.lightcurve import extract

    rng = np.random.default_rng(0)
    lines = ["id,mjd,mag"]
    for k in range(60):
        lines += [
            f"s{k:03},{t:.3f},{rng.normal(15, 0.1):.4f}" for t in np.sort(rng.uniform(0, 99, 30))
        ]
    (tmp_path / "c.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("skyfill.lightcurve.curve_files.BATCH_ROWS", 150)
    monkeypatch.setattr(extract, "TABLE_ROWS", 12)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.chdir(tmp_path)
    words = ["features", "c.csv", "-o", "f.parquet", "--set", "mean,sigma", "--json"]
    whole = CliRunner().invoke(main, words)
    assert whole.exit_code == 0, whole.output
    bytes_of_whole = (tmp_path / "f.parquet").read_bytes()
    plain, calls = extract._extract, []

    def stopped(*args, **options):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return plain(*args, **options)

    monkeypatch.setattr(extract, "_extract", stopped)
    CliRunner().invoke(main, words, standalone_mode=False)
    assert (tmp_path / "f.parquet.skyfill-parts").exists()
    again = CliRunner().invoke(main, [*words, "--resume"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads(whole.stdout)
    assert (tmp_path / "f.parquet").read_bytes() == bytes_of_whole
