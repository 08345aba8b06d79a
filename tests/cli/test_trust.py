"""What docs/trust.md promises of the commands: no input is lost, no column is replaced unasked."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, declare, read_table, write_table
from skyfill.catalog.file_io import open_atomic
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.model import load_model

MODEL = Path(__file__).parent.parent / "model_files" / "version-2.skyfill"
FEATURES = ("V", "V_I", "n_obs")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(said, *words):
    """Check that a mistake was named in one line, with exit code 2 and without a traceback."""
    assert said.exit_code == 2, said.output
    assert "Traceback" not in said.output
    (line,) = [line for line in said.stderr.splitlines() if line.startswith("Error: ")]
    for word in words:
        assert word in line


def state(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stars(n=30):
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=n) for name in FEATURES}
    values["V_I"][::3] = np.nan
    places = {"ra": 80 + np.arange(n) / 100, "dec": np.full(n, -69.0)}
    return Table.from_columns({"id": [f"s{i}" for i in range(n)], **places, **values})


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Inputs of every kind, under other names too: links, a folder, a file that is no table."""
    shutil.copy(MODEL, tmp_path / "m.skyfill")
    write_table(stars(), tmp_path / "t.parquet")
    write_table(stars(), tmp_path / "u.csv")
    (tmp_path / "many").mkdir()
    shutil.copy(tmp_path / "t.parquet", tmp_path / "many" / "a.parquet")
    (tmp_path / "s.csv").write_text("[units]\nV = 'mag'\n")
    (tmp_path / "c.csv").write_text("seed = 1\n")
    (tmp_path / "link.parquet").symlink_to("t.parquet")
    (tmp_path / "also.parquet").hardlink_to(tmp_path / "t.parquet")
    (tmp_path / "again").symlink_to("many")
    (tmp_path / "w.parquet.dask-parts").mkdir()
    shutil.copy(tmp_path / "t.parquet", tmp_path / "w.parquet.dask-parts" / "t.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


OVER_AN_INPUT = [
    "impute m.skyfill t.parquet --scheduler local -o t.parquet",
    "impute m.skyfill t.parquet --scheduler local -o m.skyfill",
    "impute m.skyfill t.parquet --scheduler local -o link.parquet",
    "impute m.skyfill t.parquet -o also.parquet",
    "impute m.skyfill t.parquet --schema s.csv -o s.csv",
    "impute m.skyfill t.parquet --config c.csv -o c.csv",
    "impute m.skyfill t.parquet --config c.csv --scheduler local -o ./c.csv",
    "impute m.skyfill many -o many/filled.parquet",
    "impute m.skyfill many -o again/filled.parquet",
    "impute m.skyfill many -o again",
    "impute m.skyfill many/a.parquet --scheduler local -o many",
    "impute m.skyfill w.parquet.dask-parts/t.parquet --scheduler local -o w.parquet",
    "impute m.skyfill hats://many -o hats://again/filled",
    "classify m.skyfill t.parquet --scheduler local -o t.parquet",
    "classify m.skyfill many -o many/classes.parquet",
    "train many -o many/model.skyfill",
    "features many -o many/features.csv",
    "match t.parquet u.csv --schema u=s.csv -o s.csv",
    "match t.parquet u.csv --footprint u=s.csv -o s.csv",
    "match hats://many hats://many -o hats://many",
    "match t.parquet u.csv --probability --all u.csv -o out.csv",
    "next m.skyfill t.parquet --config c.csv -o c.csv",
    "publish t.parquet --config c.csv -o c.csv",
]


@pytest.mark.parametrize("words", OVER_AN_INPUT)
def test_no_command_writes_what_it_reads(here, words):
    before = state(here)
    refused(run(*words.split()), "input" if "dask-parts" not in words else "unfinished work")
    assert state(here) == before


def test_two_outputs_that_some_disks_take_for_one_are_refused(here):
    words = "match t.parquet u.csv --probability --all Out.csv -o out.csv"
    refused(run(*words.split()), "written twice")
    assert not list(Path().glob("[oO]ut.csv"))


def test_identifiers_of_plain_csv_files_are_joined_as_they_are_written(here):
    Path("a.csv").write_text("star,V,n\n82.1,1,5\n82.10,2,6\n82.100,3,7\n")
    Path("b.csv").write_text("star,J\n82.10,12.5\n82.1,11.5\n")
    said = run("match", "a.csv", "b.csv", "--id", "b=star", "--text", "base=n", "-o", "ab.csv")
    assert said.exit_code == 0, said.output
    assert '"82.100",' in Path("ab.csv").read_text()
    found = read_table("ab.csv", identifiers=["star"])
    assert found.column("star").to_pylist() == ["82.1", "82.10", "82.100"]
    assert found.column("J_b").to_pylist() == [11.5, 12.5, None]
    # Nothing in the file says that these are text.
    assert found.column("n").to_pylist() == [5, 6, 7]


def test_inspect_shows_which_columns_stay_text(here):
    Path("a.csv").write_text("star,V\n82.1,1\n82.10,2\n")
    kinds = [
        {column["name"]: column["type"] for column in json.loads(said.stdout)["columns"]}
        for said in (run("inspect", "a.csv", *more, "--json") for more in ([], ["--text", "star"]))
    ]
    assert [each["star"] for each in kinds] == ["double", "string"]
    refused(run("inspect", "a.csv", "--text", "sta"), "'sta'", "'star'")


def test_a_published_table_and_its_readme_appear_together_or_not_at_all(here, monkeypatch):
    assert run("publish", "t.parquet", "-o", "out.fits").exit_code == 0
    before = state(here)

    def fail(*_):
        raise OSError(errno.ENOSPC, "no space", "out_ReadMe.txt")

    monkeypatch.setattr("skyfill.report.publish.readme_text", fail)
    refused(run("publish", "u.csv", "-o", "out.fits"), "out_ReadMe.txt", "nothing was written")
    assert state(here) == before


def test_a_readme_of_another_table_is_not_overwritten(here):
    assert run("publish", "t.parquet", "-o", "lmc.dr1.fits").exit_code == 0
    assert run("publish", "t.parquet", "-o", "lmc.dr2.fits.gz").exit_code == 0
    assert run("publish", "u.csv", "-o", "lmc.dr1.fits").exit_code == 0
    readmes = sorted(path.name for path in here.glob("*_ReadMe.txt"))
    assert readmes == ["lmc.dr1_ReadMe.txt", "lmc.dr2_ReadMe.txt"]
    Path("own_ReadMe.txt").write_text("Notes on own.fits of the observing run.\n")
    before = state(here)
    refused(run("publish", "t.parquet", "-o", "own.fits"), "own_ReadMe.txt", "does not describe")
    refused(run("publish", "t.parquet", "-o", "lmc.dr1.vot"), "lmc.dr1_ReadMe.txt")
    assert state(here) == before


# A command, and a column of the user that has the name of one of its results.
TAKEN = [
    ("impute m.skyfill t.parquet", "V_sd"),
    ("impute m.skyfill t.parquet --quantiles 0.16 --draws 1", "v_i_Q16"),
    ("classify m.skyfill t.parquet --prefix=", "Class"),
    ("classify m.skyfill t.parquet --prefix=", "P_A"),
    ("next m.skyfill t.parquet --prefix=", "next_bits"),
    ("next m.skyfill t.parquet --prefix=", "bits_V"),
    ("candidates c.parquet --class A --min-probability 0.01 --prefix=", "rank"),
    (
        "candidates c.parquet --class A --min-probability 0.01 --model m.skyfill --prefix=",
        "evidence_for",
    ),
    ("candidates c.parquet --class A --min-probability 0.01 --compare u.csv --prefix=", "in_u"),
]


@pytest.mark.parametrize(("words", "name"), TAKEN)
def test_no_column_of_the_user_is_replaced_and_a_prefix_keeps_results_apart(here, words, name):
    name = name.replace("P_A", f"P_{CLASSES[0]}")
    words = words.replace("--class A", f"--class {CLASSES[0]}").split()
    for file in ("t.parquet", "c.parquet"):
        assert file != "c.parquet" or run(*CLASSIFY).exit_code == 0
        table = read_table(file)
        write_table(table.with_column(name, np.arange(len(table)) + 0.5), file)
        if file in words:
            break
    before = state(here)
    refused(run(*words, "-o", "out.fits"), repr(name), "--prefix")
    assert state(here) == before
    said = run(*words, "-o", "out.fits", "--prefix", "sf_")
    assert said.exit_code == 0, said.output
    kept = read_table("out.fits").select(["id", name]).arrow.to_pylist()
    given = read_table(file).select(["id", name]).arrow.to_pylist()
    assert sorted(map(str, kept)) == sorted(map(str, given))


CLASSIFY = ("classify", "m.skyfill", "t.parquet", "-o", "c.parquet")
CLASSES = load_model(MODEL).scorer.classes


@pytest.mark.parametrize("form", ["parquet", "fits", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        "impute m.skyfill {} --quantiles 0.16",
        "classify m.skyfill {}",
        "next m.skyfill {}",
        f"candidates {{}} --class {CLASSES[0]} --min-probability 0.01 --compare u.csv",
    ],
)
def test_a_command_works_on_its_own_output(here, words, form):
    run(*CLASSIFY)
    said = run(*words.format("c.parquet").split(), "-o", f"one.{form}")
    assert said.exit_code == 0, said.output
    said = run(*words.format(f"one.{form}").split(), "-o", f"two.{form}")
    assert said.exit_code == 0, said.output
    one, two = read_table(f"one.{form}"), read_table(f"two.{form}")
    assert two.arrow.equals(one.arrow)


def test_a_foreign_column_with_the_name_of_reasons_is_not_replaced_by_sentinels():
    table = Table.from_columns({"J": [14.2, 99.0], "J_gap": ["mine", "too"]})
    with pytest.raises(CatalogError, match="column 'J_gap' has the name of the column of reasons"):
        declare(table, {"J": [99.0]})


@pytest.mark.parametrize("words", ["impute", "classify", "next"])
def test_columns_of_plain_text_files_stay_text_on_request(here, words):
    Path("p.csv").write_text("star,V,V_I,n_obs\n82.1,1,2,3\n82.10,2,,4\n")
    said = run(words, "m.skyfill", "p.csv", "--text", "star", "-o", "out.csv")
    assert said.exit_code == 0, said.output
    assert read_table("out.csv", identifiers=["star"]).column("star").to_pylist() == [
        "82.1",
        "82.10",
    ]
    refused(run(words, "m.skyfill", "p.csv", "--text", "sta", "-o", "o.csv"), "'sta'", "'star'")


def test_features_keep_the_identifiers_of_light_curves(here):
    lines = [f"{star},{t},{15 + t % 2}" for star in ("82.1", "82.10", "82.100") for t in range(12)]
    Path("curves.csv").write_text("star,mjd,mag\n" + "\n".join(lines) + "\n")
    said = run("features", "curves.csv", "--id", "star", "--set", "mean", "-o", "f.csv")
    assert said.exit_code == 0, said.output
    assert read_table("f.csv", identifiers=["star"]).column("star").to_pylist() == [
        "82.1",
        "82.10",
        "82.100",
    ]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write")
@pytest.mark.parametrize(
    "words", ["train t.parquet --features V,V_I", "impute m.skyfill t.parquet"]
)
def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(here, words, monkeypatch):
    monkeypatch.setattr("skyfill.model.load_model", None)
    monkeypatch.setattr("skyfill.catalog.read_table", None)
    refused(run(*words.split(), "-o", "/proc/self/out.skyfill"), "/proc/self/out.skyfill")


@pytest.mark.parametrize(
    ("values", "said"), [(1e151 * np.arange(30), "too large"), (1e-160 * np.arange(30), "unit")]
)
@pytest.mark.parametrize("label", [(), ("--label", "kind")])
def test_values_that_no_model_can_hold_are_refused_in_training(here, values, said, label):
    kinds = ["a", "b"] * 15
    write_table(stars().with_column("L", values).with_column("kind", kinds), "l.parquet")
    words = ("train", "l.parquet", "--features", "V,L", *label, "-o", "out.skyfill")
    refused(run(*words), "l.parquet", "'L'", said)
    assert not Path("out.skyfill").exists()


LEAVES = """
import os, signal, sys
from skyfill.catalog.file_io import open_atomic
from skyfill.cli import main

os.replace = lambda *names: os.kill(os.getpid(), getattr(signal, sys.argv[1]))
main(sys.argv[2:])
"""


@pytest.mark.parametrize(("name", "code"), [("SIGKILL", -9), ("SIGTERM", 143), ("SIGINT", 130)])
def test_what_a_killed_command_leaves_is_removed_by_the_next(here, name, code):
    words = ["publish", "t.parquet", "-o", "out.fits"]
    run(*words)
    before = state(here)
    killed = subprocess.run(
        [sys.executable, "-c", LEAVES, name, *words], capture_output=True, text=True, check=False
    )
    assert killed.returncode == code, killed.stderr
    assert "Traceback" not in killed.stderr
    left = {path for path in state(here) if path not in before}
    assert bool(left) == (name == "SIGKILL")
    assert {path: state(here)[path] for path in before} == before
    assert run(*words).exit_code == 0
    assert set(state(here)) == set(before)


def test_what_a_living_process_writes_is_not_swept(here):
    with open_atomic(Path("out.txt")) as first:
        first.write(b"first")
        with open_atomic(Path("out.txt")) as second:
            second.write(b"second")
        assert Path("out.txt").read_bytes() == b"second"
    assert Path("out.txt").read_bytes() == b"first"
    Path(".out.txt.notes.part").write_text("mine")
    with open_atomic(Path("out.txt")) as stream:
        stream.write(b"third")
    assert Path(".out.txt.notes.part").read_text() == "mine"
