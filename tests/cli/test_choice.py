"""`skyfill train` without a list of features: what it takes, leaves out and refuses."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.cli import main
from skyfill.model import load_model

QUICK = ("--components", "1", "--fits", "1", "--refine", "off", "--no-calibration")
QUICK = (*QUICK, "--method", "forest", "--trees", "5")
N = 120
KINDS = np.array(["CEPH", "QSO", "RRL"])[np.arange(N) % 3]


def run(*words, code=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def survey(**more):
    """Columns in the words of Gaia, 2MASS and AllWISE, and what people put beside them."""
    rng = np.random.default_rng(0)
    G = rng.normal(16, 1, N) + 2.0 * (KINDS == "QSO")
    columns = {
        "source_id": 4_657_000_000_000_000_000 + rng.integers(0, 10**15, N),
        "ra": rng.uniform(80, 90, N),
        "dec": rng.uniform(-70, -60, N),
        "l": rng.uniform(270, 290, N),
        "b": rng.uniform(-40, -30, N),
        "ref_epoch": np.full(N, 2016.0),
        "parallax": rng.normal(0, 1, N),
        "parallax_error": rng.uniform(0.1, 0.2, N),
        "phot_g_mean_mag": G,
        "bp_rp": rng.normal(1, 0.3, N) - 0.5 * (KINDS == "QSO"),
        "phot_g_n_obs": rng.integers(100, 300, N),
        "j_m": np.where(np.arange(N) % 4 == 0, np.nan, G - 1.5),
        "j_msigcom": np.where(np.arange(N) % 4 == 0, np.nan, 0.03),
        "ph_qual": ["AAA"] * N,
        "w1mpro": G - 2.5 + rng.normal(0, 0.2, N),
        "w1sigmpro": rng.uniform(0.02, 0.1, N),
        "w2mpro": ["..." if i % 17 == 0 else f"{x:.2f}" for i, x in enumerate(G - 3)],
        "angDist": rng.uniform(0, 1, N),
        "classprob_dsc_combmod_quasar": rng.uniform(0, 1, N),
        "otype": np.where(KINDS == "QSO", "Q", "V*"),
        "kind_again": 7.0 * (KINDS == "QSO") + (KINDS == "RRL"),
        "chi": np.full(N, 1.5),
        "nothing": np.full(N, np.nan),
    }
    return columns | more


FEATURES = ["parallax", "phot_g_mean_mag", "bp_rp", "j_m", "w1mpro"]


def test_a_table_as_people_have_it_is_learned_from_by_three_words(tmp_path):
    write_table(Table.from_columns({**survey(), "kind": KINDS}), tmp_path / "t.fits")
    words = ("train", tmp_path / "t.fits", "--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    done = run(*words)
    lines = done.stderr.splitlines()
    said = [line for line in lines if line.startswith(("features", "guessed", "warning: left"))]
    assert len(said) <= 6
    assert max(map(len, said)) < 300
    assert said[0] == f"guessed: features (5): {', '.join(FEATURES)}"
    text = " ".join(said)
    for words_of in (
        "identifiers: source_id", "positions: ra, dec, l, b", "ref_epoch", "parallax_error of",
        "w1sigmpro of w1mpro", "text: ph_qual", "angDist", "classprob_dsc_combmod_quasar",
        "another class column: otype", "the class again: kind_again", "one value only: chi",
        "no value: nothing", "w2mpro ('...')", "phot_g_n_obs",
    ):  # fmt: skip
        assert words_of in text
    model = load_model(tmp_path / "m.skyfill")
    assert list(model.names) == FEATURES


def tables():
    """Return tables whose columns are hard to judge, with the column of classes of each."""
    yield "survey", Table.from_columns({**survey(), "kind": KINDS}), "kind"
    info = {"bp_rp": ColumnInfo(role=Role.FEATURE), "j_m": ColumnInfo(role=Role.FEATURE)}
    yield "declared", Table.from_columns({**survey(), "kind": KINDS}, info=info), "kind"
    yield "none", Table.from_columns(survey()), None
    codes = {"x": np.arange(N) * 1.5, "y": np.tile([1.0, 2.5], N // 2), "z": (KINDS == "QSO") * 1.0}
    yield "codes", Table.from_columns({**codes, "kind": KINDS}), "kind"


@pytest.mark.parametrize(
    ("name", "table", "label"), [*tables()], ids=["survey", "declared", "none", "codes"]
)
def test_what_inspect_calls_a_feature_train_takes(tmp_path, name, table, label):
    path = tmp_path / f"{name}.parquet"
    write_table(table, path)
    words = ("--label", label) if label else ()
    seen = json.loads(run("inspect", path, *words, "--json").stdout)
    quick = QUICK if label else QUICK[:6]
    done = run("train", path, *words, *quick, "-o", tmp_path / "m.skyfill", "--json")
    taken = [each["name"] for each in seen["columns"] if each["guessed_role"] == "feature"]
    assert list(load_model(tmp_path / "m.skyfill").names) == taken
    learned = json.loads(done.stdout)
    assert {each["name"]: each["guessed_role"] for each in seen["columns"]} == {
        column: each["role"] for column, each in learned["columns"].items()
    }
    assert learned["input"]["guessed"] == seen["input"]["guessed"]


def test_a_column_that_gives_a_class_away_is_taken_and_named(tmp_path):
    redshift = np.where(KINDS == "QSO", 1 + np.arange(N) / N, np.nan)
    write_table(Table.from_columns({**survey(z=redshift), "kind": KINDS}), tmp_path / "t.parquet")
    words = ("--label", "kind", "--json")
    for command in (("inspect",), ("train", "-o", tmp_path / "m.skyfill", *QUICK)):
        done = run(command[0], tmp_path / "t.parquet", *command[1:], *words)
        (warning,) = [w for w in json.loads(done.stdout)["input"]["warned"] if "gives away" in w]
        assert "z (QSO)" in warning
    assert "z" in load_model(tmp_path / "m.skyfill").names


def written(path, header, rows, between=","):
    lines = [header, *(map(str, row) for row in rows)]
    path.write_text("".join(between.join(line) + "\n" for line in lines))
    return path


ROWS = [(f"s{i}", f"{14 + i % 7 / 3:.3f}", f"{i / 9:.3f}", KINDS[i]) for i in range(N)]
NAMES = ["name", "V", "amp", "kind"]


@pytest.mark.parametrize(
    ("names", "rows", "label", "message"),
    [
        (NAMES, ROWS, "kinds", "no column 'kinds'; did you mean 'kind'?"),
        (NAMES, [(*row[:3], "A") for row in ROWS], "kind", "all labels are of one class, A"),
        (NAMES, [(f"s{i}", 1.5, i, "A") for i in range(1000)], "name", "is it an identifier?"),
        (["name", "ra", "dec", "kind"], ROWS, "kind", "no column is left to learn from: name (id"),
        (["name", "V", "V", "kind"], ROWS, "kind", "the name 'V' occurs twice; rename one"),
        (NAMES, [], "kind", "has no rows"),
    ],
    ids=["no such class", "one class", "identifier", "no feature", "two names", "no rows"],
)
def test_what_cannot_be_learned_from_is_refused_in_one_line(tmp_path, names, rows, label, message):
    path, model = written(tmp_path / "t.csv", names, rows), tmp_path / "m.skyfill"
    model.write_text("an earlier model")
    done = run("train", path, "--label", label, "-o", model, code=2)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 300
    assert model.read_text() == "an earlier model"


def test_an_empty_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "t.csv").write_text("")
    done = run("train", tmp_path / "t.csv", "--label", "kind", "-o", tmp_path / "m", code=2)
    assert done.stderr == f"Error: {tmp_path / 't.csv'}: the file is empty\n"


@pytest.mark.filterwarnings("default:.*(decimal commas|without a name):UserWarning")
@pytest.mark.filterwarnings("default::skyfill.errors.SmallTableWarning")
@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda path: written(path, NAMES, [*ROWS, ("s", 1.5, 2.5, "Z")]), "unlabelled: Z (1)"),
        (lambda path: written(path, NAMES, ROWS[:20]), "the table has 20 rows"),
        (lambda path: written(path, ["", *NAMES[1:]], ROWS), "without a name are called col1"),
        (
            lambda path: written(path, ["", *NAMES[1:], " "], [(*row, "") for row in ROWS]),
            "without a name are called col1, col5",
        ),
        (
            lambda path: written(
                path, NAMES, [tuple(cell.replace(".", ",") for cell in row) for row in ROWS], ";"
            ),
            "numbers have decimal commas",
        ),
    ],
    ids=["one object", "20 rows", "blank name", "blank names", "decimal commas"],
)
def test_what_is_odd_is_read_with_one_line(tmp_path, change, line):
    words = ("--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    done = run("train", change(tmp_path / "t.csv"), *words)
    assert len([each for each in done.stderr.splitlines() if line in each]) == 1
    assert load_model(tmp_path / "m.skyfill").names == ("V", "amp")


@pytest.mark.parametrize("above", ["# ", "# stars of a field\n# ", ""])
def test_columns_between_blanks_may_have_a_commented_header(tmp_path, above):
    rows = [[f"{cell:>8}" for cell in row] for row in ROWS]
    path = written(tmp_path / "t.txt", [above + NAMES[0], *NAMES[1:]], rows, "  ")
    run("train", path, "--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    assert load_model(tmp_path / "m.skyfill").names == ("V", "amp")


def test_numbers_written_as_text_are_read_with_one_line(tmp_path):
    columns = {"V": [f"{14 + i % 7 / 3:.3f}" for i in range(N)], "amp": np.arange(N) / 9}
    write_table(Table.from_columns({**columns, "kind": KINDS}), tmp_path / "t.parquet")
    words = ("--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    assert "numbers written as text: V" in run("train", tmp_path / "t.parquet", *words).stderr
    assert load_model(tmp_path / "m.skyfill").names == ("V", "amp")


def test_features_that_are_named_override_the_choice(tmp_path):
    write_table(Table.from_columns({**survey(), "kind": KINDS}), tmp_path / "t.parquet")
    words = ("train", tmp_path / "t.parquet", "--label", "kind", *QUICK, "-o", tmp_path / "m")
    run(*words, "--features", "phot_g_n_obs,chi,bp_rp")
    assert load_model(tmp_path / "m").names == ("phot_g_n_obs", "chi", "bp_rp")
    text = run(*words, "--features", ",".join(set(survey()) - {"ph_qual", "w2mpro"}), code=2).stderr
    assert "must not be learned" in text
    assert len(text.replace(str(tmp_path), "")) < 300


def test_inspect_describes_a_model(tmp_path):
    write_table(Table.from_columns({**survey(), "kind": KINDS}), tmp_path / "t.parquet")
    words = ("--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    run("train", tmp_path / "t.parquet", *words)
    for more in ((), ("--json",)):
        one, two = (run(c, tmp_path / "m.skyfill", *more).stdout for c in ("inspect", "show"))
        assert one == two
        assert "phot_g_mean_mag" in one


def test_results_of_an_earlier_run_are_not_learned_from(tmp_path):
    table = Table.from_columns({**survey(), "kind": KINDS})
    write_table(table, tmp_path / "t.parquet")
    words = ("--label", "kind", *QUICK, "-o", tmp_path / "m.skyfill")
    run("train", tmp_path / "t.parquet", *words)
    for command in ("classify", "impute"):
        out = tmp_path / f"{command}.parquet"
        run(command, tmp_path / "m.skyfill", tmp_path / "t.parquet", "-o", out)
        run("train", out, *words[:-1], tmp_path / "again.skyfill")
        assert list(load_model(tmp_path / "again.skyfill").names) == FEATURES
