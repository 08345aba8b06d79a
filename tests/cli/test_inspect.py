"""`skyfill inspect`: the sentinels of real tables, options, JSON, mistakes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_schema, write_table
from skyfill.cli import main as skyfill

DATA = Path(os.environ.get("SKYFILL_DATA", "absent"))


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(skyfill, ["inspect", *map(str, words)])


def public_table(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not there: set SKYFILL_DATA to the folder of the public tables")
    return path


def found_in(run, path, *words):
    done = run(path, "--json", *words)
    assert done.exit_code == 0, done.output
    columns = json.loads(done.stdout)["columns"]
    return {
        (column["name"], suspect["value"]): suspect["count"]
        for column in columns
        for suspect in column["suspects"]
    }


SAGE = ["J2mag", "H2mag", "Ks2mag", "[3.6]", "[4.5]", "[5.8]", "[8.0]", "F5.8", "[24]"]


def test_sage_spec_shows_its_999(run):
    found = found_in(run, public_table("sage_spec/jones_2017_ascii.txt"))
    assert set(found) == {(name, 999.9999) for name in SAGE}
    assert found["J2mag", 999.9999] == 230


def test_the_macho_variables_show_their_zero(run):
    found = found_in(run, public_table("macho/macho_vs_catalog.csv"))
    assert found == {("period_reqb", 0.0): 14187}


def test_the_chandra_table_shows_its_codes(run):
    found = found_in(run, public_table("muwclass/CSC_TD_11042023_MW.csv"))
    assert (found["MW_MW", "-99"], found["MW_MW", "-9"], found["MW_MW", "-"]) == (210, 85, 9)
    numbers = {value for (name, value) in found if name != "MW_MW"}
    assert numbers == set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eros1/train.csv", {}),
        ("eros1/test.csv", {}),
        ("debosscher/lightcurves.csv.gz", {}),
        ("networks/gaussian.test.csv", {}),
        ("macho/MACHO_ts.csv~", {}),
        ("macho/New_training_psi.csv", {("AndersonDarling", "inf"): 43}),
    ],
)
def test_other_public_tables_show_what_they_have(name, expected, run):
    assert found_in(run, public_table(name)) == expected


def test_the_lines_that_are_shown_declare_the_sentinels(run, tmp_path):
    path = public_table("sage_spec/jones_2017_ascii.txt")
    shown = run(path).stdout
    lines = [line for line in shown.splitlines() if line.startswith("columns.")]
    assert 'columns."[3.6]".sentinels = [999.9999]' in {line.split("  #")[0] for line in lines}
    (tmp_path / "s.toml").write_text("\n".join(lines))
    assert found_in(run, path, "--schema", tmp_path / "s.toml") == {}


@pytest.fixture
def table(tmp_path):
    rows = "".join(f"star{i},{i % 7 + 14.5},0.{i + 1}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("id,J,e_J\n" + rows + "x,99.999,9.999\n,,\n")
    return tmp_path / "t.csv"


def test_columns_roles_gaps_and_suspects_are_shown(run, table):
    done = run(table, "--unit", "J=mag", "--role", "J=feature")
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
    assert lines["id"][:5] == ["id", "string", "identifier?", "3.1", "%"]
    assert " ".join(lines["J"]) == "J double feature mag 3.1 % 14.5 .. 99.999 99.999 × 1"
    assert lines["e_J"][2:5] == ["error", "of", "J?"]
    assert "columns.J.sentinels = [99.999]" in done.stdout
    assert done.stderr.splitlines() == [
        "declared: J: role feature, unit mag",
        "features (1): J",
        "guessed: left out: identifiers: id",
        "guessed: errors of 1 column are known and not used: e_J of J; train --errors on uses them",
        f"32 rows, 3 columns, 2 suspicious values in {table}",
    ]


def test_options_declare_sentinels(run, table):
    found = found_in(run, table, "--sentinel", "J=99.999", "--sentinel", "e_J=9.999,0.5")
    assert found == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.csv"], "absent.csv: no such file or directory"),
        (["{table}", "--role", "K=label"], "no column 'K'"),
        (["{table}", "--role", "J=star"], "no role 'star'"),
        (["{table}", "--sentinel", "J"], "is not of the form COLUMN=VALUE"),
        (["{table}", "--schema", "absent.toml"], "absent.toml: no such file"),
        (["{folder}"], "is a directory"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(words, message, run, table):
    done = run(*(word.format(table=table, folder=table.parent) for word in words))
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


BAD_FILES = {
    "truncated.fits": (lambda data: data[:6000], "truncated"),
    "truncated.parquet": (lambda data: data[:500], "not a readable Parquet file"),
    "unknown.vot": (lambda data: data.replace(b'"double"', b'"quaternion"'), "quaternion"),
    "ragged.csv": (lambda data: data + b"1,2,3\n", "has 3 cells"),
    "word.ecsv": (lambda data: data + b"bright,4\n", "'bright' does not read as double"),
    "empty.ecsv": (lambda data: b"", "the file is empty"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_one_line_and_exit_code_2(name, run, tmp_path):
    change, message = BAD_FILES[name]
    write_table(Table.from_columns({"J": [14.2, None] * 50, "n": [1, 2] * 50}), tmp_path / name)
    (tmp_path / name).write_bytes(change((tmp_path / name).read_bytes()))
    done = run(tmp_path / name)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(tmp_path / name) in done.stderr
    assert message in done.stderr


def test_a_table_without_rows_is_shown(run, tmp_path):
    (tmp_path / "t.csv").write_text("id,J\n")
    done = run(tmp_path / "t.csv")
    assert done.exit_code == 0
    assert "0 rows, 2 columns" in done.stderr


def written(tmp_path, **columns):
    write_table(Table.from_columns(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def lines_of(done):
    assert done.exit_code == 0, done.output
    return [line.partition("  #")[0] for line in done.stdout.splitlines() if "columns." in line]


def test_negative_fluxes_that_are_limits_are_proposed_and_noise_is_not(run, tmp_path):
    rng = np.random.default_rng(0)
    flux = rng.lognormal(2, 0.5, 300)
    limits = np.where(np.arange(300) % 10 == 0, -rng.uniform(1, 3, 300), flux)
    path = written(tmp_path, flux=limits, flux_noise=rng.normal(1, 1, 300))
    assert 'columns.flux.limits = "negative"' in lines_of(run(path))
    assert not any("columns.flux_noise.limits" in line for line in lines_of(run(path)))


def test_two_sentinels_of_a_flux_or_a_magnitude_get_a_reason_each(run, tmp_path):
    rng = np.random.default_rng(0)
    flux, mag = rng.lognormal(2, 0.5, 300) + 1, rng.normal(17, 1, 300)
    flux[:40], flux[40:60], mag[:40], mag[40:60] = 0.0, -1.0, 99.0, -99.0
    lines = lines_of(run(written(tmp_path, flux=flux, Jmag=mag, x=mag)))
    assert lines[:4] == [
        "columns.flux.undetected = [0.0]",
        "columns.flux.uncovered = [-1.0]",
        "columns.Jmag.undetected = [99.0]",
        "columns.Jmag.uncovered = [-99.0]",
    ]
    assert "columns.x.sentinels = [-99.0, 99.0]" in lines


def test_the_faint_edge_is_proposed_as_a_depth_and_drawn(run, tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    mag = rng.uniform(10, 18, 2000)
    mag[::10] = np.nan
    path = written(tmp_path, Jmag=mag, flux=10 ** (-0.4 * mag))
    (tmp_path / "t.toml").write_text("\n".join(lines_of(run(path))))
    found = read_schema(tmp_path / "t.toml").to_dict()
    assert found["Jmag"]["depth"] == pytest.approx(17.84, abs=0.05)
    assert found["Jmag"]["unit"] == "mag"
    assert found["flux"]["depth"] == pytest.approx(10 ** (-0.4 * 17.84), rel=0.05)
    assert run(path, "--figure", tmp_path / "edges.png").exit_code == 0
    assert (tmp_path / "edges.png").read_bytes().startswith(b"\x89PNG")
    done = run(written(tmp_path, x=mag), "--figure", tmp_path / "none.png")
    assert done.exit_code == 2
    assert "no column holds magnitudes or fluxes" in done.stderr


def test_what_is_a_gap_for_train_in_any_case_is_marked(run, tmp_path):
    columns = {
        "J": [*np.linspace(14, 16, 50), 99.99, 99.99],
        "K": [*np.linspace(14, 16, 51), 99.99],
    }
    write_table(Table.from_columns(columns), tmp_path / "t.parquet")
    done = run(tmp_path / "t.parquet")
    lines = {line.partition(".s")[0]: line for line in done.stdout.splitlines()}
    assert lines["columns.J"].endswith("99.99: a gap for train in any case")
    assert lines["columns.K"].endswith("# lies apart from all other values")
    assert "--sentinel" not in done.stdout
    columns = json.loads(run(tmp_path / "t.parquet", "--json").stdout)["columns"]
    assert [each["suspects"][0]["unmistakable"] for each in columns] == [True, False]


CLASSES = "name,class,V\na,RRL,18.1\nb,QSO,19.2\nc,RRL ,17.5\nd,,16.0\ne,RRL,15.5\nf,EB,18.8\n"


def test_label_prints_the_objects_of_each_class(run, tmp_path):
    path = tmp_path / "stars.csv"
    path.write_text(CLASSES)
    done = run(path, "--label", "class")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.split("\n\n")[-1].splitlines()]
    assert lines == [
        ["class", "objects", "share"],
        ["RRL", "3", "60.0", "%"],
        ["EB", "1", "20.0", "%"],
        ["QSO", "1", "20.0", "%"],
        ["without", "a", "class", "1"],
    ]
    found = json.loads(run(path, "--label", "class", "--json").stdout)
    assert (found["classes"], found["unlabelled"]) == ({"RRL": 3, "EB": 1, "QSO": 1}, 1)


def test_classes_may_be_numbers_and_are_counted_after_the_schema(run, tmp_path):
    write_table(Table.from_columns({"kind": [1, 2, 2, -9], "V": [1.0] * 4}), tmp_path / "t.fits")
    words = ("--label", "kind", "--sentinel", "kind=-9", "--json")
    found = json.loads(run(tmp_path / "t.fits", *words).stdout)
    assert (found["classes"], found["unlabelled"]) == ({"2": 2, "1": 1}, 1)


def test_a_label_that_is_not_there_is_named_with_the_nearest(run, tmp_path):
    path = tmp_path / "stars.csv"
    path.write_text(CLASSES)
    done = run(path, "--label", "clas")
    assert done.exit_code == 2
    assert "stars.csv: no column 'clas'; did you mean 'class'" in done.stderr
