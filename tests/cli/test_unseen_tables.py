"""Tables as people have them: a right result, or one clear warning."""

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from skyfill.catalog import Schema, Table, declare, read_table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.model import fill_table, load_model, save_model

QUICK = ("--components", "1", "--fits", "1", "--refine", "off")


def run(*words, code=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def said(done):
    return json.loads(done.stdout)["input"]


def magnitudes(n=300, seed=0):
    rng = np.random.default_rng(seed)
    G = rng.normal(18, 1, n)
    return {"G": G, "J": G - 1 + rng.normal(0, 0.1, n)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a fifth of G at -999, declared for training only."""
    folder = tmp_path_factory.mktemp("unseen")
    columns = magnitudes()
    columns["G"][::5] = -999.0
    write_table(Table.from_columns(columns), folder / "stars.parquet")
    (folder / "stars.toml").write_text('columns.G = {sentinels = [-999], unit = "mag"}')
    words = ("--schema", folder / "stars.toml", "--features", "G,J", *QUICK, "--json")
    done = run("train", folder / "stars.parquet", *words, "-o", folder / "m.skyfill")
    assert said(done)["declared"] == ["G: sentinels -999, unit mag"]
    return folder


def test_what_was_declared_in_training_holds_when_the_model_is_used(folder, tmp_path):
    done = run("impute", folder / "m.skyfill", folder / "stars.parquet", "--json",
               "-o", tmp_path / "filled.parquet")  # fmt: skip
    assert json.loads(done.stdout)["filled"] == 60
    assert said(done)["declared"] == ["G: sentinels -999, unit mag (in training)"]
    G = read_table(tmp_path / "filled.parquet").numbers("G")[:, 0]
    assert abs(G - magnitudes()["G"]).max() < 1


def test_a_schema_at_use_takes_the_place_of_that_of_training_and_is_mentioned(folder, tmp_path):
    (tmp_path / "other.toml").write_text("columns.G.sentinels = []")
    done = run("impute", folder / "m.skyfill", folder / "stars.parquet", "--json", "--schema",
               tmp_path / "other.toml", "-o", tmp_path / "filled.parquet")  # fmt: skip
    assert json.loads(done.stdout)["filled"] == 0
    assert "G: sentinels none (in training: sentinels -999)" in said(done)["declared"]


def test_what_a_table_states_of_itself_outweighs_what_was_declared_in_training(folder):
    model = load_model(folder / "m.skyfill")
    flux = Table.from_columns({"G": [18000.0], "J": [None]}).with_info("G", unit="mmag")
    plain = Table.from_columns({"G": [18.0], "J": [None]})
    J = [fill_table(model, table).numbers("J")[0, 0] for table in (flux, plain)]
    assert J[0] == pytest.approx(J[1], rel=1e-12)


def test_a_model_keeps_what_was_declared_about_its_features_in_its_file(folder, tmp_path):
    model = load_model(folder / "m.skyfill")
    assert model.declared == Schema.from_dict({"G": {"sentinels": [-999], "unit": "mag"}})
    save_model(model, tmp_path / "again.skyfill")
    assert (tmp_path / "again.skyfill").read_bytes() == (folder / "m.skyfill").read_bytes()
    shown = run("show", folder / "m.skyfill").stdout
    assert "G: sentinels -999, unit mag" in shown


def test_unmistakable_sentinels_are_gaps_in_training_and_said_in_one_line(folder, tmp_path):
    words = ("train", folder / "stars.parquet", "--features", "G,J", *QUICK, "--json")
    done = run(*words, "-o", tmp_path / "m.skyfill")
    line = "60 cells of -999 in G are gaps (300 rows read)"
    assert said(done)["warned"] == []
    assert said(done)["guessed"] == [line]
    assert f"guessed: {line}" in done.stderr
    assert json.loads(done.stdout)["found"] == {"G": [-999.0]}
    shown = run("show", tmp_path / "m.skyfill")
    assert "found in training to mean gaps\n  G: -999\n" in shown.stdout
    assert "declared" not in shown.stdout
    (tmp_path / "real.toml").write_text("columns.G.sentinels = []")
    done = run(*words, "--schema", tmp_path / "real.toml", "-o", tmp_path / "m.skyfill")
    assert said(done)["guessed"] == said(done)["warned"] == []
    assert json.loads(done.stdout)["found"] == {}


def test_declared_and_found_sentinels_give_the_same_network(folder, tmp_path):
    words = ("train", folder / "stars.parquet", "--features", "G,J", *QUICK)
    run(*words, "-o", tmp_path / "m.skyfill")
    found, declared = load_model(tmp_path / "m.skyfill"), load_model(folder / "m.skyfill")
    assert found.found == {"G": (-999.0,)}
    assert not declared.found
    for a, b in zip(found.network.fits, declared.network.fits, strict=True):
        assert np.array_equal(a.covs, b.covs)


def test_evaluate_takes_unmistakable_sentinels_for_gaps(folder, tmp_path):
    table = read_table(folder / "stars.parquet")
    write_table(declare(table, {"G": [-999]}), tmp_path / "null.parquet")
    words = ("--columns", "G,J", "--methods", "mean", "--rates", "10", "--repeats", "1", "--json")
    done = [run("evaluate", path, *words) for path in
            (folder / "stars.parquet", tmp_path / "null.parquet")]  # fmt: skip
    assert said(done[0])["guessed"] == ["60 cells of -999 in G are gaps (300 rows read)"]
    (one,), (other,) = (json.loads(each.stdout)["means"] for each in done)
    assert one["nrmse"] == other["nrmse"]
    assert one["crps"] == other["crps"]


def test_unmistakable_sentinels_that_are_new_to_a_model_are_gaps_that_keep_their_reason(
    folder, tmp_path
):
    columns = magnitudes(seed=1)
    columns["J"][::10], columns["G"][7] = 99.99, -9999
    write_table(Table.from_columns(columns), tmp_path / "new.parquet")
    words = ("impute", folder / "m.skyfill", tmp_path / "new.parquet", "--json")
    done = run(*words, "-o", tmp_path / "out.parquet")
    assert said(done)["warned"] == []
    line = "1 cell of -9999 in G; 30 cells of 99.99 in J are gaps (300 rows read)"
    assert line in said(done)["guessed"]
    assert json.loads(done.stdout)["filled"] == 31
    table = read_table(tmp_path / "out.parquet")
    assert table.column("J_was").to_pylist() == [None if i % 10 else "rejected" for i in range(300)]
    assert table.column("J_gap").to_pylist() == [None if i % 10 else "filled" for i in range(300)]
    J = table.numbers("J")[:, 0]
    assert abs(J - magnitudes(seed=1)["J"]).max() < 1


def test_a_schema_at_use_keeps_what_would_be_a_gap(folder, tmp_path):
    columns = magnitudes(seed=1)
    columns["J"][::10] = 99.99
    write_table(Table.from_columns(columns), tmp_path / "new.parquet")
    words = ("impute", folder / "m.skyfill", tmp_path / "new.parquet", "--json")
    words = (*words, "-o", tmp_path / "out.parquet", "--declare", "columns.J.sentinels=[]")
    assert json.loads(run(*words).stdout)["filled"] == 0


def test_other_units_than_in_training_are_warned_about_or_converted(folder, tmp_path):
    columns = {name: 1000 * values for name, values in magnitudes(seed=1).items()}
    table = Table.from_columns(columns)
    write_table(table, tmp_path / "new.parquet")
    words = ("impute", folder / "m.skyfill", tmp_path / "new.parquet", "--json")
    found = said(run(*words, "-o", tmp_path / "out.parquet"))
    (text,) = found["warned"]
    assert text.startswith("values outside the range seen in training: G (100 % outside ")
    assert ", J (100 % outside " in text
    write_table(table.with_info("G", unit="mmag").select(["G"]), tmp_path / "new.parquet")
    found = said(run(*words, "-o", tmp_path / "out.parquet"))
    assert found["converted"] == ["G: mmag to mag, the unit of the model"]
    assert [text for text in found["warned"] if "outside" in text] == []


def test_values_of_light_curves_that_may_be_sentinels_are_warned_about(tmp_path):
    rng = np.random.default_rng(0)
    mag = rng.normal(17, 0.1, 200)
    mag[::20] = 99.999
    curves = {"id": np.repeat([1, 2], 100), "time": np.arange(200.0), "mag": mag}
    write_table(Table.from_columns(curves), tmp_path / "curves.parquet")
    words = ("features", tmp_path / "curves.parquet", "--set", "mean,sigma", "--json")
    (warning,) = said(run(*words, "-o", tmp_path / "f.parquet"))["warned"]
    assert warning.startswith("light curves: 99.999 × 10 may stand for no value")
    done = run(*words, "--sentinel", "99.999", "-o", tmp_path / "f.parquet")
    assert said(done)["warned"] == []
    assert json.loads(done.stdout)["dropped"] == 10


SMALL = ("--label", "class", "--method", "forest", "--trees", "3", *QUICK)


def labelled(n=120, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.where(np.arange(n) % 2, "QSO", "RRL")
    X = rng.normal(size=(n, 3)) + (kind == "QSO")[:, None]
    return {
        "name": [f"s{i}" for i in range(n)],
        **dict(zip("abc", X.T, strict=True)),
        "class": kind,
    }


def test_repeated_objects_are_warned_about_and_kept_in_one_fold(tmp_path):
    table = Table.from_columns(labelled())
    twice = Table(table.arrow.take(np.repeat(np.arange(120), 2)))
    write_table(twice, tmp_path / "twice.parquet")
    words = (tmp_path / "twice.parquet", "--json")
    done = run("train", *words, "--features", "a,b,c", *SMALL, "-o", tmp_path / "m.skyfill")
    (warning,) = said(done)["warned"]
    assert warning.startswith("120 rows repeat an object (the same name, or equal values")
    scores = []
    for more in ((), ("--group", "name"), ("--group", "row")):
        if more == ("--group", "row"):  # as if every row were an object of its own
            write_table(twice.with_column("row", np.arange(240)), tmp_path / "twice.parquet")
        done = run("evaluate", *words, "--columns", "a,b,c", "--label", "class", "--folds", "3",
                   "--methods", "nan-forest", *more)  # fmt: skip
        found = json.loads(done.stdout)
        assert len(found["input"]["warned"]) == (0 if more else 1)
        scores.append(found["methods"][0]["accuracy"]["value"])
    assert scores[0] == scores[1] < scores[2] - 0.1


def test_rows_of_the_training_set_are_recognized_when_they_are_classified(tmp_path):
    table = Table.from_columns(labelled())
    write_table(table, tmp_path / "stars.parquet")
    run("train", tmp_path / "stars.parquet", "--features", "a,b,c", *SMALL,
        "-o", tmp_path / "m.skyfill")  # fmt: skip
    new = Table.from_columns(labelled(40, seed=1))
    both = Table(pa.concat_tables([table.arrow.slice(0, 30), new.arrow]))
    write_table(both.drop(["class"]), tmp_path / "field.csv")
    done = run("classify", tmp_path / "m.skyfill", tmp_path / "field.csv", "--json",
               "-o", tmp_path / "out.parquet")  # fmt: skip
    (warning,) = said(done)["warned"]
    assert warning.startswith("30 of 70 rows are in the training set")
    known = read_table(tmp_path / "out.parquet").column("sf_trained_on").to_pylist()
    assert known == [True] * 30 + [False] * 40


@pytest.fixture
def stars(tmp_path):
    """Features beside positions, probabilities of another classifier, and rare classes."""
    columns = labelled()
    rng = np.random.default_rng(9)
    columns["class"] = np.where(np.arange(120) < 4, "QSO?", columns["class"]).astype(object)
    columns["class"][7] = "odd"
    leaks = {"gaia_ra": rng.uniform(80, 90, 120), "gaia_dec": rng.uniform(-70, -60, 120)}
    leaks |= {"P_QSO": rng.uniform(size=120), "class_code": rng.integers(1, 3, 120).astype(float)}
    write_table(Table.from_columns({**columns, **leaks}), tmp_path / "stars.parquet")
    return tmp_path / "stars.parquet"


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_features_are_chosen_and_what_is_left_out_is_listed_with_the_reason(
    stars, tmp_path, command
):
    words = {"train": (*SMALL, "-o", tmp_path / "m.skyfill")}
    words["evaluate"] = ("--label", "class", "--methods", "nan-forest", "--folds", "2")
    done = run(command, stars, *words[command], "--json")
    assert said(done)["guessed"] == [
        "features (3): a, b, c",
        "left out: identifiers: name; positions: gaia_ra, gaia_dec; probability or score of "
        "another classifier: P_QSO, class_code",
    ]
    columns = json.loads(done.stdout)["columns"]
    assert columns["gaia_ra"]["role"] == "position"
    assert [name for name, each in columns.items() if each["role"] == "feature"] == ["a", "b", "c"]
    if command == "train":
        assert load_model(tmp_path / "m.skyfill").names == ("a", "b", "c")


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_columns_that_give_the_class_away_are_refused_together(stars, tmp_path, command):
    option, out = (
        ("--features", ("-o", tmp_path / "m")) if command == "train" else ("--columns", ())
    )
    words = (command, stars, "--label", "class", *out, option)
    text = " ".join(run(*words, "a,gaia_ra,name,gaia_dec", code=2).stderr.split())
    assert "gaia_ra (position), name (identifier), gaia_dec (position); leave out" in text
    assert "--force gaia_ra,name,gaia_dec" in text
    text = " ".join(run(*words, "a,P_QSO,class_code", code=2).stderr.split())
    assert "P_QSO (probability or score of another classifier)" in text
    assert "--force P_QSO,class_code" in text
    assert "no column 'x'; the columns are" in run(*words, "a,x,y", code=2).stderr
    assert "no column 'y'" in run(*words, "a,x,y", code=2).stderr


def test_classes_are_merged_and_rare_ones_left_out(stars, tmp_path):
    words = ("train", stars, "--features", "a,b,c", *SMALL, "--json", "-o", tmp_path / "m.skyfill")
    done = run(*words, "--merge", "QSO?=QSO", "--min-class", "5")
    assert set(json.loads(done.stdout)["classes"]) == {"QSO", "RRL"}
    (warning,) = said(done)["warned"]
    assert warning.startswith("classes with fewer than 5 objects count as unlabelled: odd (1)")
    assert "no class 'QS0', did you mean 'QSO'" in run(*words, "--merge", "QS0=QSO", code=2).stderr


def test_a_class_of_one_object_is_no_reason_to_stop(stars):
    done = run("evaluate", stars, "--columns", "a,b,c", "--label", "class", "--folds", "2",
               "--methods", "nan-forest", "--json")  # fmt: skip
    assert json.loads(done.stdout)["classes"] == ["QSO", "QSO?", "RRL"]
    assert "odd (1)" in said(done)["warned"][0]


def test_a_label_that_names_objects_is_an_error_at_once(tmp_path):
    columns = labelled(400)
    write_table(Table.from_columns(columns), tmp_path / "stars.parquet")
    words = ("train", tmp_path / "stars.parquet", "--features", "a,b,c", "--label", "name")
    assert "400 different values" in run(*words, "-o", tmp_path / "m.skyfill", code=2).stderr


@pytest.mark.parametrize(
    ("ra", "dec"), [("gaia_ra", "gaia_dec"), ("CSCv2_RA", "CSCv2_DEC"), ("_RA.icrs", "_DE.icrs"),
                    ("RAJ2000", "DEJ2000")]
)  # fmt: skip
def test_positions_behind_prefixes_are_found(tmp_path, ra, dec):
    write_table(Table.from_columns({ra: [80.0, 81.0], dec: [-69.0, -68.0]}), tmp_path / "a.parquet")
    columns = {"ra": [80.0], "dec": [-69.0], "e_ra": [0.1], "e_dec": [0.1], "J": [14.0]}
    write_table(Table.from_columns(columns), tmp_path / "b.parquet")
    run("match", tmp_path / "a.parquet", tmp_path / "b.parquet", "-o", tmp_path / "out.parquet")
    assert read_table(tmp_path / "out.parquet").column("J_b").to_pylist() == [14.0, None]


def test_two_positions_are_not_chosen_between(tmp_path):
    names = ("gaia_ra", "gaia_dec", "wise_ra", "wise_dec")
    write_table(Table.from_columns({name: [80.0] for name in names}), tmp_path / "a.parquet")
    write_table(Table.from_columns({"ra": [80.0], "dec": [80.0]}), tmp_path / "b.parquet")
    words = ("match", tmp_path / "a.parquet", tmp_path / "b.parquet", "-o", tmp_path / "o.parquet")
    assert "several positions: gaia_ra:gaia_dec, wise_ra:wise_dec" in run(*words, code=2).stderr


def limited(columns, *lines):
    """Cells and limits of the last column, as the lines of a schema tell."""
    table = Schema.from_toml("\n".join(lines)).apply(Table.from_columns(columns))
    name = list(columns)[-1]
    limits = table.column(f"{name}_limit").to_pylist() if f"{name}_limit" in table.names else None
    return table.column(name).to_pylist(), table.reasons(name).to_pylist(), limits


@pytest.mark.parametrize(
    ("columns", "lines", "values", "reasons", "limits"),
    [
        ({"S": ["5.1", "<4.0", None]}, ['columns.S.limits = "signs"'],
         [5.1, None, None], [None, "undetected", None], [None, 4.0, None]),
        ({"V": ["17.2", "> 20.5", "<9"]}, ['columns.V = {limits = "signs", unit = "mag"}'],
         [17.2, None, None], [None, "undetected", "rejected"], [None, 20.5, None]),
        ({"l_S": [None, "<", None], "S": [5.1, 4.0, None]}, ['columns.S.limits = "flag"'],
         [5.1, None, None], [None, "undetected", None], [None, 4.0, None]),
        ({"V_flag": ["", ">"], "V": [17.2, 20.5]}, ['columns.V = {limits = "flag", unit = "mag"}'],
         [17.2, None], [None, "undetected"], [None, 20.5]),
        ({"S": [5.1, -4.0]}, ['columns.S.limits = "negative"'],
         [5.1, None], [None, "undetected"], [None, 4.0]),
        ({"e_W3": [0.1, None, 0.2], "W3": [9.1, 12.0, None]}, ['columns.W3.limits = "no error"'],
         [9.1, None, None], [None, "undetected", None], [None, 12.0, None]),
        ({"FIRST": [1.5, 0.0, -1.0]}, ["columns.FIRST = {undetected = [0], uncovered = [-1]}"],
         [1.5, None, None], [None, "undetected", "uncovered"], None),
        ({"FIRST": [1.5, 0.0]}, ["columns.FIRST = {undetected = [0], depth = 0.9}"],
         [1.5, None], [None, "undetected"], [None, 0.9]),
    ],
)  # fmt: skip
def test_limits_are_read_as_people_write_them(columns, lines, values, reasons, limits):
    assert limited(columns, *lines) == (values, reasons, limits)


def test_a_limit_of_a_magnitude_must_be_declared_as_one():
    with pytest.raises(CatalogError, match="row 2: '>20' is a limit of a magnitude; declare"):
        limited({"V": ["17", ">20"]}, 'columns.V.limits = "signs"')
    with pytest.raises(CatalogError, match="limits must be one of 'signs', 'flag', 'negative'"):
        limited({"V": [17.0]}, 'columns.V.limits = "below"')


def test_limits_in_text_are_learned_and_filled_beyond_them(tmp_path):
    columns = magnitudes()
    faint = columns["J"] > 17.5
    columns["J"] = [
        f">{17.5}" if lost else f"{J:.4f}" for J, lost in zip(columns["J"], faint, strict=True)
    ]
    columns["G"] = columns["G"].round(4)
    names = ("G", "J")
    lines = [",".join(names), *(f"{g},{j}" for g, j in zip(*columns.values(), strict=True))]
    (tmp_path / "stars.csv").write_text("\n".join(lines))
    words = ("--declare", 'columns.J={limits="signs", unit="mag"}', "--features", "G,J", *QUICK)
    done = run("train", tmp_path / "stars.csv", *words, "--json", "-o", tmp_path / "m.skyfill")
    assert json.loads(done.stdout)["cells"]["limited"] == faint.sum() > 20
    done = run("impute", tmp_path / "m.skyfill", tmp_path / "stars.csv", "--json",
               "-o", tmp_path / "out.parquet")  # fmt: skip
    assert json.loads(done.stdout)["filled"] == faint.sum()
    filled = read_table(tmp_path / "out.parquet").numbers("J")[faint, 0]
    assert (filled > 17.5).all()
    again = run("impute", tmp_path / "m.skyfill", tmp_path / "out.parquet", "--json",
                "-o", tmp_path / "again.parquet")  # fmt: skip
    assert said(again)["warned"] == []


def test_errors_can_be_named_in_the_shell(tmp_path):
    (tmp_path / "t.csv").write_text("J,noise\n14.2,0.1\n15.1,0.2\n")
    found = json.loads(
        run("inspect", tmp_path / "t.csv", "--role", "noise=error:J", "--json").stdout
    )
    noise = found["columns"][1]
    assert (noise["role"], noise["of"]) == ("error", "J")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.txt", "# made by hand\n# id V I\n1 17.5 16.1\n2 18.0 nan\n", ()),
        ("t.txt", "# id V I\n1 17.5 16.1\n2 18.0 nan\n", ()),
        ("t.csv", "# from a survey\n# id,V,I\n1,17.5,16.1\n2,18.0,\n", ()),
        ("t.tex", "id & V & I\n1 & 17.5 & 16.1\n2 & 18.0 & nan\n", ()),
        ("t.dat", "id;V;I\n1;17.5;16.1\n2;18.0;\n", ()),
        ("t.dat", "1 17.5 16.1\n2 18.0 nan\n", ("--names", "id,V,I")),
        ("t.csv", "1,17.5,16.1\n2,18.0,\n", ("--names", "id,V,I")),
        ("t.dat", "1!17.5!16.1\n2!18.0!\n", ("--names", "id,V,I", "--delimiter", "!")),
        ("t.csv", "a,17.5,16.1\nb,18.0,\n", ("--no-header", "--names", "id,V,I")),
        ("t.dat", "id!V!I\n1!17.5!16.1\n2!18.0!\n", ("--delimiter", "!")),
    ],
)
def test_text_tables_are_read_as_people_write_them(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    found = json.loads(run("inspect", tmp_path / name, *words, "--json").stdout)
    assert found["rows"] == 2
    assert [column["name"] for column in found["columns"]] == ["id", "V", "I"]
    assert found["columns"][1]["range"] == [17.5, 18.0]
    assert found["columns"][2]["missing"] == 1


def test_a_wrong_number_of_names_is_an_error(tmp_path):
    for name, text in (("t.csv", "1,17.5,16.1\n"), ("t.dat", "1 17.5 16.1\n")):
        (tmp_path / name).write_text(text)
        assert (
            "2 names are given" in run("inspect", tmp_path / name, "--names", "a,b", code=2).stderr
        )


def test_identifiers_may_have_other_names_in_the_two_tables(tmp_path):
    write_table(Table.from_columns({"objID": ["a", "b"], "V": [17.0, 18.0]}), tmp_path / "a.csv")
    write_table(Table.from_columns({"star": ["b"], "J": [15.0]}), tmp_path / "b.csv")
    run("match", tmp_path / "a.csv", tmp_path / "b.csv", "--id", "b=objID:star",
        "-o", tmp_path / "out.parquet")  # fmt: skip
    assert read_table(tmp_path / "out.parquet").column("J_b").to_pylist() == [None, 15.0]


def test_inspect_proposes_limits(tmp_path):
    rows = "5.1,9.1,0.1\n<4.0,12.0,\n6.2,9.5,0.2\n"
    (tmp_path / "t.csv").write_text("S,W3,e_W3\n" + rows)
    done = run("inspect", tmp_path / "t.csv")
    assert 'columns.S.limits = "signs"  # is a limit' in done.stdout
    assert 'columns.W3.limits = "no error"  # 1 values without an error' in done.stdout
    proposed = [line.partition("  #")[0] for line in done.stdout.splitlines() if ".limits" in line]
    (tmp_path / "t.toml").write_text("\n".join(proposed))
    found = read_table(tmp_path / "t.csv", schema=tmp_path / "t.toml")
    assert found.column("S").to_pylist() == [5.1, None, 6.2]
    assert found.column("W3_limit").to_pylist() == [None, 12.0, None]


@pytest.mark.filterwarnings("default:.*taken for names:UserWarning")
def test_a_row_is_not_taken_for_names(tmp_path):
    (tmp_path / "t.csv").write_text("1,17.5,16.1\n2,18.0,16.5\n")
    found = json.loads(run("inspect", tmp_path / "t.csv", "--json").stdout)
    assert (found["rows"], [c["name"] for c in found["columns"]]) == (2, ["col1", "col2", "col3"])
    (tmp_path / "t.csv").write_text("a,17.5,16.1\nb,18.0,16.5\n")
    (warning,) = said(run("inspect", tmp_path / "t.csv", "--json"))["warned"]
    assert "t.csv: the first line is taken for names of columns (a, 17.5, 16.1); if it" in warning
    for name, blank in (("t.csv", ","), ("t.dat", " ")):
        (tmp_path / name).write_text("a,17.5,16.1\nb,18.0,16.5\n".replace(",", blank))
        found = json.loads(run("inspect", tmp_path / name, "--no-header", "--json").stdout)
        assert found["rows"] == 2
        assert [c["name"] for c in found["columns"]] == ["col1", "col2", "col3"]
    (tmp_path / "t.csv").write_text("0,1,2\n5,17.5,16.1\n")
    assert json.loads(run("inspect", tmp_path / "t.csv", "--json").stdout)["rows"] == 1


def test_light_curves_without_names_are_read_from_an_archive(tmp_path):
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(tmp_path / "asas.zip", "w") as archive:
        for star in ("a", "b"):
            rows = zip(np.arange(50.0), rng.normal(17, 0.1, 50), np.full(50, 0.1), strict=True)
            lines = (" ".join(map(str, row)) for row in rows)
            archive.writestr(f"asas/{star}.dat", "\n".join(lines))
    words = ("features", tmp_path / "asas.zip", "--set", "mean,sigma", "--json")
    done = run(*words, "-o", tmp_path / "f.parquet")
    assert json.loads(done.stdout)["objects"] == 2
    assert said(done)["guessed"] == [
        "time: col1 (days); value: col2 (magnitudes); error: col3",
    ]
    assert read_table(tmp_path / "f.parquet").numbers("mean") == pytest.approx(17, abs=0.1)


def test_limits_that_another_column_marks_are_warned_about_and_proposed(tmp_path):
    columns = {name: values.round(3) for name, values in magnitudes(60).items()}
    signs = np.where(columns["J"] > 17.5, ">", "")
    write_table(Table.from_columns({**columns, "l_J": signs}), tmp_path / "t.parquet")
    words = ("train", tmp_path / "t.parquet", "--features", "G,J", *QUICK, "--json")
    (warning,) = said(run(*words, "-o", tmp_path / "m.skyfill"))["warned"]
    n_limits = (signs == ">").sum()
    assert warning.startswith(f"J: l_J marks {n_limits} values as limits, which are used as values")
    assert 'columns.J.limits = "flag"' in run("inspect", tmp_path / "t.parquet").stdout
    declared = ("--declare", 'columns.J={limits="flag", unit="mag"}')
    done = run(*words, *declared, "-o", tmp_path / "m.skyfill")
    assert said(done)["warned"] == []
    assert json.loads(done.stdout)["cells"]["limited"] == n_limits


@pytest.mark.filterwarnings("default::skyfill.errors.SmallTableWarning")
def test_train_warns_of_a_table_with_few_rows(tmp_path):
    write_table(Table.from_columns(magnitudes(25)), tmp_path / "few.parquet")
    words = ("--features", "G,J", *QUICK, "-o", tmp_path / "m.skyfill")
    done = run("train", tmp_path / "few.parquet", *words)
    assert "warning: the table has 25 rows; with fewer than 40 intervals are rough" in done.stderr


def test_errors_beside_features_are_listed_and_used_if_declared(tmp_path):
    columns = {**magnitudes(60), "e_J": np.full(60, 0.3)}
    write_table(Table.from_columns(columns), tmp_path / "t.parquet")
    words = ("train", tmp_path / "t.parquet", "--features", "G,J", *QUICK, "--json")
    done = run(*words, "-o", tmp_path / "m.skyfill")
    assert said(done)["guessed"] == [
        "errors of 1 column are known and not used: e_J of J; train --errors on uses them"
    ]
    assert json.loads(done.stdout)["cells"] is None
    done = run(*words, "--role", "e_J=error:J", "-o", tmp_path / "m.skyfill")
    assert said(done)["guessed"] == []
    assert said(done)["declared"] == ["e_J: role error, of J"]
    assert json.loads(done.stdout)["cells"]["with_errors"] == 60


COMMANDS = {
    "inspect": "inspect s.parquet",
    "match": "match s.parquet t.parquet -o o.parquet",
    "features": "features lc.parquet --set mean -o o.parquet",
    "train": "train s.parquet --features a,b --components 1 --fits 1 -o o.skyfill",
    "evaluate": "evaluate s.parquet --columns a,b --methods mean --rates 10 --repeats 1",
    "impute": "impute m.skyfill s.parquet -o o.parquet",
    "classify": "classify m.skyfill t.parquet -o o.parquet",
    "next": "next m.skyfill t.parquet -o o.parquet",
    "candidates": "candidates c.parquet --class QSO --compare t.parquet -o o.parquet",
    "report": "report m.skyfill t.parquet -o o.html",
    "publish": "publish s.parquet -o o.parquet",
    "show": "show m.skyfill",
    "data": "data list",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Small files for every command."""
    folder = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    columns = labelled(60)
    place = {"ra": rng.uniform(80, 90, 60), "dec": rng.uniform(-70, -60, 60)}
    columns["b"][::6] = np.nan
    write_table(Table.from_columns({**place, **columns}), folder / "s.parquet")
    del columns["class"]
    write_table(Table.from_columns({**place, **columns}), folder / "t.parquet")
    curve = {"id": ["x"] * 20, "mjd": np.arange(20.0), "mag": rng.normal(17, 0.1, 20)}
    write_table(Table.from_columns(curve), folder / "lc.parquet")
    run("train", folder / "s.parquet", "--features", "a,b,c", *SMALL, "-o", folder / "m.skyfill")
    run("classify", folder / "m.skyfill", folder / "t.parquet", "-o", folder / "c.parquet")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_json_of_each_command_lists_what_was_said_of_the_input(shelf, monkeypatch, command):
    monkeypatch.chdir(shelf)
    found = said(run(*COMMANDS[command].split(), "--json"))
    assert list(found) == ["guessed", "declared", "converted", "warned"]
    guesses = {
        "inspect": "features (3): a, b, c",
        "match": "t: position ra, dec (no unit: degrees)",
        "features": "id: id; time: mjd (days); value: mag (magnitudes)",
        "candidates": "t: compared by name",
        "report": "position ra, dec (no unit: degrees)",
        "publish": "ra: Right ascension; dec: Declination; name: Identifier",
    }
    assert guesses.get(command, "") in ["", *found["guessed"]]


def test_features_that_are_no_numbers_are_named_together(tmp_path):
    (tmp_path / "t.csv").write_text("S,note,V\n<4.0,a,17\n5.1,b,18\n")
    words = ("train", tmp_path / "t.csv", "--features", "S,V,note", "-o", tmp_path / "m.skyfill")
    text = " ".join(run(*words, code=2).stderr.split())
    assert "'<4.0' is not a number; correct it, or declare it as limits (columns.S.limits" in text
    assert "column 'note', row 1: 'a' is not a number" in text


def colors(n=400, seed=0):
    rng = np.random.default_rng(seed)
    G, color = rng.uniform(15, 19, n), rng.normal(1, 0.4, n)
    noise = rng.normal(0, 0.05, (2, n))
    kind = np.where(color > 1, "red", "blue")
    return {"G": G, "J": G - color + noise[0], "K": G - 1.4 * color + noise[1], "kind": kind}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    write_table(Table.from_columns(colors()), folder / "t.parquet")
    words = ("--features", "G,J,K", "--label", "kind", "--method", "forest", "--trees", "5")
    run("train", folder / "t.parquet", *words, *QUICK, "-o", folder / "m.skyfill")
    return folder / "m.skyfill"


def warned(known, tmp_path, command, **columns):
    table = colors(seed=1) | columns
    del table["kind"]
    write_table(Table.from_columns(table), tmp_path / "new.parquet")
    words = (command, known, tmp_path / "new.parquet", "--json", "-o", tmp_path / "o.parquet")
    return said(run(*words))["warned"]


@pytest.mark.parametrize("command", ["impute", "classify", "next"])
def test_another_zero_point_than_in_training_is_warned_about(known, tmp_path, command):
    assert warned(known, tmp_path, command) == []
    (warning,) = [
        text
        for text in warned(known, tmp_path, command, J=colors(seed=1)["J"] + 1)
        if "the range seen" not in text
    ]
    assert warning.startswith("J lies 1")
    assert "above what other columns say" in warning
    assert "zero point" in warning


def test_scores_in_a_field_with_another_zero_point_are_warned_about(known, tmp_path):
    fields = {"like": colors(seed=1), "other": colors(seed=1)}
    fields["other"]["J"] = fields["other"]["J"] + 1
    words = ("evaluate", known.parent / "t.parquet", "--columns", "G,J,K", "--label", "kind")
    words += ("--methods", "nan-forest", "--folds", "2", "--field")
    for name, table in fields.items():
        write_table(Table.from_columns(table), tmp_path / f"{name}.parquet")
        told = " ".join(run(*words, tmp_path / f"{name}.parquet").stderr.split())
        assert ("other.parquet: J lies 1" in told) == (name == "other")
        assert ("zero point" in told) == (name == "other")


def test_a_reversed_sign_is_warned_about(known, tmp_path):
    J = colors(seed=1)["J"]
    (warning,) = warned(known, tmp_path, "impute", J=2 * J.mean() - J)
    assert warning.startswith("J ")
    assert "what other columns say" in warning


@pytest.mark.parametrize("command", ["impute", "next"])
def test_associations_of_wrong_counterparts_are_no_alarm(known, tmp_path, command):
    J = np.random.default_rng(2).permutation(colors(seed=1)["J"])
    assert len(warned(known, tmp_path, command, J=J)) == 1
    every = {"base_row": np.arange(400) // 2, "prob_association": np.full(400, 0.5)}
    assert warned(known, tmp_path, command, J=J, **every) == []


def test_gaps_that_were_filled_with_one_value_are_warned_about(known, tmp_path):
    lost, K = np.arange(400) % 3 == 0, colors(seed=1)["K"]
    mean = float(K.mean())
    warning, unlike = warned(known, tmp_path, "classify", K=np.where(lost, mean, K))
    assert "probabilities hold less than they say" in unlike
    assert warning.startswith(f"{mean!r} × 134 in K may stand for no value")
    assert "were gaps filled with it?" in warning
    table = colors() | {"K": np.where(lost, mean, colors()["K"])}
    write_table(Table.from_columns(table), tmp_path / "t.parquet")
    words = ("train", tmp_path / "t.parquet", "--features", "G,J,K", *QUICK, "--json")
    (warning,) = said(run(*words, "-o", tmp_path / "m.skyfill"))["warned"]
    assert f"columns.K.sentinels = [{mean!r}]" in warning
    # What is frequent in training, and was not declared as a gap, is so elsewhere.
    words = ("impute", tmp_path / "m.skyfill", tmp_path / "t.parquet", "--json")
    assert said(run(*words, "-o", tmp_path / "o.parquet"))["warned"] == []


def test_columns_of_one_value_or_none_are_warned_about(known, tmp_path):
    (warning,) = warned(known, tmp_path, "impute", K=np.full(400, np.nan))
    assert warning == "K: no value in 400 rows; taken as gaps"
    (warning,) = warned(known, tmp_path, "impute", K=np.full(400, 16.0))
    assert warning.startswith("16.0 × 400 in K may stand for no value (the only value)")


def test_limits_of_a_magnitude_without_a_unit_are_warned_about(tmp_path):
    columns = magnitudes()
    faint = columns["J"] > 17.5
    columns |= {"J": np.where(faint, np.nan, columns["J"]), "l_J": np.where(faint, 17.5, np.nan)}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    words = ("train", tmp_path / "t.csv", "--features", "G,J", "--role", "l_J=limit:J", *QUICK,
             "--json", "-o", tmp_path / "m.skyfill")  # fmt: skip
    (warning,) = said(run(*words))["warned"]
    assert warning.startswith("limits say that missing values are smaller, but")
    assert ": J (17.5 beside " in warning
    assert 'columns.J.unit = "mag"' in warning
    assert said(run(*words, "--declare", 'columns.J.unit="mag"'))["warned"] == []


def test_errors_that_are_none_are_warned_about(tmp_path):
    columns = magnitudes() | {"e_J": np.where(np.arange(300) < 7, -1.0, 0.1)}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    words = ("train", tmp_path / "t.csv", "--features", "G,J", "--role", "e_J=error:J", *QUICK)
    (warning,) = said(run(*words, "--json", "-o", tmp_path / "m.skyfill"))["warned"]
    assert warning.startswith("e_J: 7 errors of J are 0 or negative and count as none")


def test_a_column_that_is_nearly_the_class_is_warned_about(tmp_path):
    columns = colors()
    columns["grade"] = np.where(columns["kind"] == "red", 1.0, 2.0)
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    words = ("--label", "kind", "--method", "forest", "--trees", "5", *QUICK, "--json")
    words = (*words, "-o", tmp_path / "m.skyfill")
    done = run("train", tmp_path / "t.csv", "--features", "G,J,K,grade", *words)
    (warning,) = said(done)["warned"]
    assert warning.startswith("classes that a column gives away nearly alone: grade (all)")
    assert said(run("train", tmp_path / "t.csv", "--features", "G,J,K", *words))["warned"] == []
    # Where nothing is asked for, it is left out.
    done = run("train", tmp_path / "t.csv", *words)
    assert (said(done)["warned"], said(done)["guessed"]) == (
        [],
        ["features (3): G, J, K", "left out: the class again: grade"],
    )
