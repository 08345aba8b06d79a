"""The likely mistakes, command by command: one helpful message, exit code 2, nothing harmed."""

import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.cli import main

KEPT = b"what was there before"
FITS = ["--components", "2", "--fits", "1", "--refine", "off"]
QUICK = [*FITS, "--method", "forest", "--trees", "5"]


def stars(n=240, seed=0):
    rng = np.random.default_rng(seed)
    red = np.arange(n) % 3 == 0
    v = rng.normal(18, 1, n)
    k = v - np.where(red, 4.0, 0.8) + rng.normal(0, 0.2, n)
    k[rng.random(n) < 0.2] = np.nan
    position = {"ra": rng.uniform(80, 81, n), "dec": rng.uniform(-69, -68, n)}
    columns = {"id": [f"s{i}" for i in range(n)], **position, "V": v, "K": k}
    columns |= {"class": np.where(red, "LPV", "RRL"), "empty": [None] * n, "same": ["RRL"] * n}
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "K")}
    info["class"] = ColumnInfo(role=Role.LABEL)
    return Table.from_columns(columns, info=info)


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def done(*words):
    said = run(*words)
    assert said.exit_code == 0, said.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Good files of every kind, made by the commands themselves, and some bad ones."""
    folder = tmp_path_factory.mktemp("made")
    at = folder.joinpath
    table = stars()
    write_table(table, at("stars.parquet"))
    write_table(table.drop(["class", "empty", "same", "V", "K"]), at("nowhere.csv"))
    write_table(table.select(["id", "ra", "dec", "K"]), at("nir.fits"))
    far = table.select(["id", "K"]).with_column("ra", 10 + np.zeros(240))
    write_table(far.with_column("dec", np.linspace(20, 21, 240)), at("far.csv"))
    radians = {name: np.radians(table.numbers(name)[:, 0]) for name in ("ra", "dec")}
    write_table(Table.from_columns({**radians, "J": np.arange(240.0)}), at("radians.csv"))
    epochs = {"id": np.repeat(["a", "b"], 20), "time": np.tile(np.arange(20.0), 2)}
    values = {"mag": np.sin(np.arange(40.0)), "err": np.full(40, 0.1)}
    write_table(Table.from_columns({**epochs, **values}), at("curves.csv"))
    done("train", at("stars.parquet"), "--label", "class", *QUICK, "-o", at("good.skyfill"))
    done("train", at("stars.parquet"), *FITS, "-o", at("plain.skyfill"))
    write_table(table.drop(["class"]), at("field.parquet"))
    done("classify", at("good.skyfill"), at("field.parquet"), "-o", at("results.parquet"))
    whole = at("good.skyfill").read_bytes()
    at("cut.skyfill").write_bytes(whole[: len(whole) // 2])
    at("empty.skyfill").write_bytes(b"")
    at("notes.txt").write_text("Dear diary,\nrain, again; no sky, no stars.\nGood night.\n")
    at("header.csv").write_text("id,ra,dec,V,K,class\n")
    at("photo.fits").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    at("folder").mkdir()
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of the files, beside an output of an earlier run."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for name in ("out.parquet", "out.skyfill", "out.html", "out.json", "out.png"):
        (tmp_path / name).write_bytes(KEPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Commands with {} in the place of the file or option that is wrong.
READERS = {
    "inspect": "inspect {}",
    "match base": "match {} nir.fits -o out.parquet",
    "match other": "match stars.parquet {} -o out.parquet",
    "features": "features {} -o out.parquet",
    "train": "train {} -o out.skyfill",
    "impute": "impute good.skyfill {} -o out.parquet",
    "classify": "classify good.skyfill {} -o out.parquet",
    "candidates": "candidates {} --class RRL -o out.parquet",
    "candidates list": "candidates results.parquet --class RRL --compare {} -o out.parquet",
    "next": "next good.skyfill {} -o out.parquet",
    "evaluate": "evaluate {}",
    "report": "report good.skyfill {} -o out.html",
    "publish": "publish {} -o out.parquet",
    "send": "send {}",
}
NEED_ROWS = {name: READERS[name] for name in ("train", "evaluate")}
MODELS = {
    "impute": "impute {} stars.parquet -o out.parquet",
    "classify": "classify {} field.parquet -o out.parquet",
    "next": "next {} stars.parquet -o out.parquet",
    "report": "report {} results.parquet -o out.html",
    "show": "show {}",
    "candidates": "candidates results.parquet --class RRL --model {} -o out.parquet",
}
WRITERS = {
    "match": "match stars.parquet nir.fits -o {}",
    "features": "features curves.csv --set mean,sigma -o {}",
    "train": f"train stars.parquet {' '.join(FITS)} -o {{}}",
    "impute": "impute good.skyfill stars.parquet -o {}",
    "classify": "classify good.skyfill field.parquet -o {}",
    "candidates": "candidates results.parquet --class RRL -o {}",
    "next": "next good.skyfill stars.parquet --sample 5 -o {}",
    "report": "report good.skyfill results.parquet -o {}",
    "publish": "publish results.parquet -o {}",
}
FIRST_INPUT = {name: words.split()[1] for name, words in WRITERS.items()}


def table(kind, commands, wrong, words):
    """Rows of the table: one per command that can make this mistake."""
    return [pytest.param(c.format(wrong), words, id=f"{kind}: {n}") for n, c in commands.items()]


def row(kind, command, *words):
    return pytest.param(command, words, id=f"{kind}: {command}")


MISTAKES = [
    # 1 wrong file
    *table("no such file", READERS, "none.parquet", ("none.parquet", "no such file")),
    *table("not a table", READERS, "notes.txt", ("notes.txt",)),
    *table("no rows", NEED_ROWS, "header.csv", ("header.csv", "row")),
    *table("not what its name says", READERS, "photo.fits", ("photo.fits",)),
    *table("no such model", MODELS, "none.skyfill", ("none.skyfill", "no such file")),
    # 2 wrong column
    row("wrong column", "train stars.parquet --features V,k -o out.skyfill", "'k'", "'K'"),
    row("wrong column", "train stars.parquet --label clas -o out.skyfill", "'clas'", "'class'"),
    row("wrong column", "evaluate stars.parquet --features V,k", "'k'", "'K'"),
    row("wrong column", "evaluate stars.parquet --label clas", "'clas'", "'class'"),
    row("wrong column", "features curves.csv --time mjd -o out.parquet", "mjd", "time"),
    row("wrong column", "match stars.parquet nir.fits --id nir=name -o out.parquet", "'name'"),
    row(
        "wrong column", "match stars.parquet nir.fits --position nir=RA2:DE2 -o out.parquet", "RA2"
    ),
    row("wrong column", "inspect stars.parquet --role k=feature", "'k'", "'K'"),
    row("wrong column", "candidates results.parquet --class QSO -o out.parquet", "QSO", "RRL"),
    row("wrong column", "next good.skyfill stars.parquet --survey sage -o out.parquet", "sage"),
    row("wrong column", "report good.skyfill --survey nir=J -o out.html", "J", "K"),
    row("wrong column", "impute good.skyfill nowhere.csv -o out.parquet", "nowhere.csv", "V, K"),
    row("wrong column", "classify good.skyfill nowhere.csv -o out.parquet", "nowhere.csv", "V, K"),
    row("wrong column", "next good.skyfill nowhere.csv -o out.parquet", "nowhere.csv", "V, K"),
    # 3 swapped arguments
    row("swapped", "impute stars.parquet good.skyfill -o out.parquet", "stars.parquet", "model"),
    row("swapped", "classify stars.parquet good.skyfill -o out.parquet", "stars.parquet", "model"),
    row("swapped", "next stars.parquet good.skyfill", "stars.parquet", "not a skyfill model"),
    row("swapped", "report results.parquet good.skyfill -o out.html", "results.parquet", "model"),
    row("swapped", "show stars.parquet", "stars.parquet", "not a skyfill model"),
    row("swapped", "train good.skyfill -o out.skyfill", "good.skyfill"),
    row("swapped", "candidates good.skyfill --class RRL -o out.parquet", "good.skyfill"),
    # 4 missing label
    row("label", "train stars.parquet --label empty -o out.skyfill", "stars.parquet", "label"),
    row("label", "train stars.parquet --label same -o out.skyfill", "RRL", "class"),
    row("label", "train stars.parquet --trees 9 -o out.skyfill", "--trees", "--label"),
    row("label", "evaluate stars.parquet --label empty", "label"),
    row("label", "evaluate stars.parquet --label same", "class"),
    row("label", "classify plain.skyfill stars.parquet -o out.parquet", "--label"),
    row("label", "next plain.skyfill stars.parquet", "--label"),
    row("label", "candidates stars.parquet --class RRL -o out.parquet", "skyfill classify"),
    # 5 no overlap on the sky
    row("no overlap", "match stars.parquet far.csv -o out.parquet", "far", "overlap on the sky"),
    # 6 degrees for radians, radians for degrees
    row("units", "match stars.parquet radians.csv -o out.parquet", "degrees, radians, hours"),
    row("units", "match radians.csv nir.fits -o out.parquet", "degrees, radians, hours"),
    row(
        "units",
        "match stars.parquet nir.fits --position nir=ra:dec:rad -o out.parquet",
        "nir",
        "ra",
    ),
    # 7 unreadable model
    *table("cut model", MODELS, "cut.skyfill", ("cut.skyfill", "damaged")),
    *table("empty model", MODELS, "empty.skyfill", ("empty.skyfill", "skyfill train")),
    *table("folder as model", MODELS, "folder", ("folder", "directory")),
    # 8 output
    *table("output is a folder", WRITERS, "folder", ("folder", "is a directory")),
    *table("output in no folder", WRITERS, "a/b.parquet", ("a/b.parquet", "create it first")),
    *table("output is no file", WRITERS, "/dev/full", ("/dev/full", "not a regular file")),
    *(
        pytest.param(
            c.format(FIRST_INPUT[n]), (FIRST_INPUT[n], "input"), id=f"output is input: {n}"
        )
        for n, c in WRITERS.items()
    ),
    row("unknown format", "match stars.parquet nir.fits -o out.doc", "out.doc", ".fits"),
    row("unknown format", "impute good.skyfill stars.parquet -o out.doc", "out.doc", ".fits"),
]


def state(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_message(said, words):
    assert said.exit_code == 2, said.output
    assert said.exception is None or isinstance(said.exception, SystemExit)
    assert "Traceback" not in said.output
    lines = [line for line in said.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, said.stderr
    for word in words:
        assert word.lower() in lines[0].lower(), lines[0]


@pytest.mark.parametrize(("command", "words"), MISTAKES)
def test_a_mistake_gets_one_helpful_message_and_harms_nothing(here, command, words):
    before = state(here)
    check_message(run(*command.split()), words)
    assert state(here) == before


@contextmanager
def full_disk(n_bytes):
    """Let no file grow beyond so many bytes: the system refuses as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_named_and_the_old_output_stays(here, name):
    suffix = {"train": "skyfill", "report": "html"}.get(name, "parquet")
    words = WRITERS[name].format(f"out.{suffix}").split()
    # Once without the limit: what Numba compiles goes to files as well.
    assert run(*WRITERS[name].format(f"first.{suffix}").split()).exit_code == 0
    before = state(here)
    with full_disk(300):
        said = run(*words)
    check_message(said, (f"out.{suffix}", "too large"))
    assert state(here) == before


# Does as Ctrl-C does, once: before a first part of the output is opened, when rows are done for the
# first time, or before the finished output is put in place.
INTERRUPTED = """
import signal, sys
from skyfill.cli import main, terminal

moment, left = sys.argv.pop(1), [1]

def interrupt(*_):
    while left:
        left.pop()
        signal.raise_signal(signal.SIGINT)

def hook(event, args):
    if event == moment and "out.parquet" in str(args[:2]):
        interrupt()

sys.addaudithook(hook)
if moment == "rows":
    terminal.log_lines = lambda *_: interrupt
main(prog_name="skyfill")
"""
CLASSIFY = "classify good.skyfill large.parquet -o out.parquet --draws 2 --prefix sf_"
PUBLISH = "publish large.parquet -o out.parquet --title stars"


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        (CLASSIFY, "open"), (CLASSIFY, "rows"), (CLASSIFY, "os.rename"),
        (PUBLISH, "open"), (PUBLISH, "os.rename"),
    ],
)  # fmt: skip
def test_an_interrupt_leaves_the_old_output_and_no_parts(here, words, moment):
    rows = stars(60_000).drop(["empty"])
    write_table(rows.with_column("p_RRL", np.full(60_000, 0.5)), "large.parquet")
    before = state(here)
    command = [sys.executable, "-c", INTERRUPTED, moment, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    # What `--resume` goes on with may stay; no part of the output may.
    after = state(here)
    assert {p: b for p, b in after.items() if "skyfill-parts" not in str(p)} == before
