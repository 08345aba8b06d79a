"""`skyfill candidates` and `skyfill publish`: files in, files out, counts, mistakes."""

import json
import re

import numpy as np
import pytest
from astropy.io import fits
from astropy.io.votable import parse_single_table
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Provenance, Role, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main, options
from skyfill.impute import NetworkImputer
from skyfill.model import classify_table, save_model, train_classifier
from skyfill.model.results import PREFIX
from skyfill.report.page_data import unpack


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and results that it made of a catalog with gaps."""
    folder = tmp_path_factory.mktemp("lmc")
    rng = np.random.default_rng(0)
    y = np.repeat(["QSO", "RRL", "LPV"], 60)
    X = rng.normal(size=(180, 3)) + 4 * np.eye(3)[np.repeat([0, 1, 2], 60)]
    X[rng.random(X.shape) < 0.15] = np.nan
    columns = {
        "ID": [f"s{i}" for i in range(180)],
        "ra": 80 + 0.01 * np.arange(180),
        "dec": np.full(180, -69.0),
        "V": X[:, 0],
        "J": X[:, 1],
        "tau": X[:, 2],
        "known": y,
    }
    info = {"V": ColumnInfo("mag", "phot.mag;em.opt.V", "Mean V", Role.FEATURE)}
    info |= {n: ColumnInfo(role=Role.FEATURE) for n in ("J", "tau")}
    table = Table.from_columns(columns, info=info).with_meta(citation_sage="Meixner 2006")
    small = CatalogClassifier(
        "forest", n_trees=30, n_folds=2, imputer=NetworkImputer(3, n_fits=1), random_state=0
    )
    model, _ = train_classifier(table, ["V", "J", "tau"], "known", classifier=small)
    save_model(model, folder / "lmc.skyfill")
    made = Provenance("skyfill classify lmc.skyfill all.parquet", model=model.identifier)
    write_table(classify_table(model, table), folder / "classified.parquet", provenance=made)
    old = {"ID": ["s0", "s1", "s100", "gone"]}
    write_table(Table.from_columns(old), folder / "kim.csv")
    by_place = {"RAJ2000": [80.0, 80.01, 10.0], "DEJ2000": [-69.0, -69.0, 5.0]}
    write_table(Table.from_columns(by_place), folder / "sky.vot")
    return folder


def test_candidates_are_ranked_explained_and_compared(run, folder, tmp_path):
    done = run(
        "candidates", folder / "classified.parquet", "--class", "QSO", "--min-probability", 0.7,
        "--compare", folder / "kim.csv", "--compare", folder / "sky.vot",
        "--model", folder / "lmc.skyfill", "--missing", tmp_path / "missing.csv",
        "-o", tmp_path / "quasars.fits",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    table = read_table(tmp_path / "quasars.fits")
    p = table.numbers("sf_probability")[:, 0]
    assert (np.diff(p) <= 0).all()
    assert p.min() >= 0.7
    assert len(p) > 30
    assert set(table.column("known").to_pylist()[:20]) == {"QSO"}
    # V tells quasars here.
    assert sum("V +" in words for words in table.column("sf_evidence_for").to_pylist()) > len(p) / 2
    kim, sky = done.stdout.splitlines()
    assert kim.startswith("kim: 4 entries, by ID: ")
    assert "1 of another class, 1 not in the results" in kim
    assert sky.startswith("sky: 3 entries, by position within 1.5 arcsec: ")
    held = table.column("sf_in_kim").to_pylist()
    assert sum(held) == sum(name in ("s0", "s1") for name in table.column("ID").to_pylist())
    missing = read_table(tmp_path / "missing.csv")
    reasons = dict(zip(missing.column("identifier").to_pylist(),
                       missing.column("reason").to_pylist(), strict=True))  # fmt: skip
    assert (reasons["gone"], reasons["s100"]) == ("absent", "other class")
    assert json.loads(table.meta["provenance"])["model"]


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Two classes that K alone tells apart, which is seen down to 17 mag; and their results."""
    folder, rng, n = tmp_path_factory.mktemp("limited"), np.random.default_rng(0), 600
    is_red = rng.random(n) < 0.5
    v = rng.normal(17.5, 0.7, n)
    k = v - 0.2 - 1.2 * is_red + rng.normal(0, 0.2, n)
    columns = {"V": v, "K": np.where(k < 17, k, np.nan), "e_K": np.where(k < 17, 0.2, np.nan)}
    columns |= {"K_limit": np.where(k < 17, np.nan, 17.0), "kind": np.where(is_red, "red", "blue")}
    info = {name: ColumnInfo("mag", role=Role.FEATURE) for name in ("V", "K")}
    info["e_K"] = ColumnInfo("mag", role=Role.ERROR, of="K")
    info["K_limit"] = ColumnInfo("mag", role=Role.LIMIT, of="K")
    table = Table.from_columns(columns, info=info)
    table = table.with_reasons("K", np.where(k < 17, None, "undetected").tolist())
    small = CatalogClassifier(
        "forest", n_trees=30, n_folds=2, imputer=NetworkImputer(2, n_fits=1), random_state=0
    )
    model, _ = train_classifier(table, ["V", "K"], "kind", classifier=small)
    save_model(model, folder / "m.skyfill")
    write_table(table, folder / "stars.parquet")
    return folder


@pytest.mark.parametrize("more", [(), ("--prior", "red=0.9,blue=0.1")])
def test_evidence_is_the_change_of_the_probability_that_classify_gives(
    run, limited, tmp_path, more
):
    """With the limits, errors and shares that the probabilities in the table rest on."""

    def classified(name):
        done = run("classify", limited / "m.skyfill", tmp_path / f"{name}.parquet", *more,
                   "--draws", 0, "-o", tmp_path / f"{name}.out.parquet")  # fmt: skip
        assert done.exit_code == 0, done.output
        p = read_table(tmp_path / f"{name}.out.parquet").numbers("sf_p_blue")[:, 0]
        return np.log2(p) - np.log2(1 - p)

    table = read_table(limited / "stars.parquet")
    write_table(table, tmp_path / "whole.parquet")
    bare = table.with_column("V", np.full(len(table), np.nan), table.info("V"))
    write_table(bare, tmp_path / "bare.parquet")
    change = classified("whole") - classified("bare")
    done = run("candidates", tmp_path / "whole.out.parquet", "--class", "blue",
               "--min-probability", 0.5, "--model", limited / "m.skyfill",
               "-o", tmp_path / "o.parquet")  # fmt: skip
    assert done.exit_code == 0, done.output
    found, n_limited = read_table(tmp_path / "o.parquet"), 0
    places = {v: row for row, v in enumerate(table.column("V").to_pylist())}
    for row in found.arrow.to_pylist():
        said = f"{row['sf_evidence_for']}, {row['sf_evidence_against']}".replace(",", "").split()
        bits = float(said[said.index("V") + 1]) if "V" in said else 0.0
        assert bits == pytest.approx(change[places[row["V"]]], abs=0.051)
        n_limited += row["K"] is None
    assert n_limited > 100


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "ecsv", "csv"])
@pytest.mark.parametrize("prefix", [None, "my_"])
def test_results_are_those_that_the_file_remembers(run, limited, tmp_path, extension, prefix):
    """A published catalogue has columns of the names of results: its own classes."""
    table = read_table(limited / "stars.parquet")
    published = {"class": ["RRL"] * len(table), "Class": ["CEPH"] * len(table)}
    published |= {"p_blue": np.full(len(table), 0.99), "p_red": np.full(len(table), 0.01)}
    for name, values in published.items():
        table = table.with_column(name, values)
    write_table(table, tmp_path / "in.parquet")
    path = tmp_path / f"out.{extension}"
    done = run("classify", limited / "m.skyfill", tmp_path / "in.parquet", "-o", path)
    assert done.exit_code == 0, done.output
    ours = read_table(path).select(["sf_class", "sf_p_blue"])
    p, best = ours.numbers("sf_p_blue")[:, 0], ours.column("sf_class").to_pylist()
    more = ("--prefix", prefix) if prefix else ()
    done = run("candidates", path, "--class", "blue", *more, "--json", "-o", tmp_path / "o.fits")
    assert json.loads(done.stdout)["candidates"] == (p >= 0.8).sum()
    listed = read_table(tmp_path / "o.fits").numbers(f"{prefix or 'sf_'}probability")[:, 0]
    assert np.array_equal(listed, -np.sort(-p[p >= 0.8]))
    done = run("report", limited / "m.skyfill", path, *more, "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    payload = re.search(r'type="application/json"[^>]*>(.*?)</script>',
                        (tmp_path / "page.html").read_text(), re.DOTALL)[1]  # fmt: skip
    objects = json.loads(payload)["objects"]
    assert sorted(objects["classes"]) == ["blue", "red"]
    codes = unpack(objects["predicted"])
    assert [objects["classes"][code] for code in codes] == best
    if not prefix:
        done = run("publish", path, "-o", tmp_path / "p.fits")
        assert done.exit_code == 0, done.output
        words = (tmp_path / "p_ReadMe.txt").read_text()
        assert "RRL" not in words.partition("Description of the columns")[0]
        assert read_table(tmp_path / "p.fits").info("p_blue").description is None


def test_counts_as_json(run, folder, tmp_path):
    done = run(
        "candidates", folder / "classified.parquet", "--class", "RRL", "--json",
        "--compare", folder / "kim.csv", "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["rows"] == 180
    assert found["candidates"] == len(read_table(tmp_path / "out.parquet"))
    only = found["lists"][0]
    assert only["matched"] + only["below"] + only["other_class"] + only["absent"] == 4
    assert only["percent"] == 25 * only["matched"]


def test_the_list_says_how_pure_and_complete_it_is_expected_to_be(run, folder, tmp_path):
    words = ("candidates", folder / "classified.parquet", "--class", "QSO", "--json")
    done = run(*words, "--purity", 0.97, "-o", tmp_path / "pure.parquet")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    listed = read_table(tmp_path / "pure.parquet")
    p = listed.numbers("sf_probability")[:, 0]
    new = p[~listed.column("sf_trained_on").to_numpy()]
    assert 0 < len(new) < len(p)
    assert new.mean() >= 0.97
    assert facts["expected"]["purity"] == pytest.approx(new.mean())
    assert p.min() >= facts["min_probability"]
    assert facts["expected"]["purity_low"] < facts["expected"]["purity_high"]
    assert [row["threshold"] for row in facts["thresholds"]][:3] == [0.05, 0.1, 0.15]
    assert f"expected to be QSO: {new.mean():.2g} of the list" in done.stderr


def test_what_is_expected_is_of_objects_that_did_not_teach_the_model(run, folder, tmp_path):
    table = read_table(folder / "classified.parquet")
    is_known = np.arange(len(table)) % 3 > 0
    write_table(table.with_column("sf_trained_on", is_known), tmp_path / "some.parquet")
    words = ("candidates", tmp_path / "some.parquet", "--class", "QSO", "--json")
    done = run(*words, "--min-probability", 0.4, "-o", tmp_path / "o.parquet")
    p = table.numbers("sf_p_QSO")[:, 0]
    listed = p >= 0.4
    expected = json.loads(done.stdout)["expected"]
    assert expected["purity"] == pytest.approx(p[listed & ~is_known].mean())
    assert p[listed & ~is_known].mean() != pytest.approx(p[listed].mean())
    assert f"{(listed & is_known).sum()} of {listed.sum()} candidates were in" in done.stderr
    assert "(marked in the column sf_trained_on)" in done.stderr


def test_the_commands_and_the_results_have_one_prefix():
    assert options.RESULTS_PREFIX == PREFIX


def test_a_checked_sample_corrects_what_is_expected(run, folder, tmp_path):
    table = read_table(folder / "classified.parquet")
    rows = np.flatnonzero(table.numbers("sf_p_QSO")[:, 0] > 0.8)
    names = [table.column("ID").to_pylist()[i] for i in rows]
    checked = {"ID": names, "class": ["QSO" if i % 2 else "star" for i in range(len(rows))]}
    write_table(Table.from_columns(checked), tmp_path / "checked.csv")
    words = ("candidates", folder / "classified.parquet", "--class", "QSO", "--json")
    words += ("-o", tmp_path / "o.parquet", "--checked", tmp_path / "checked.csv")
    expected = json.loads(run(*words).stdout)["expected"]
    assert expected["purity_low"] < 0.5 < expected["purity_high"]
    assert run(*words, "--label", "kind").exit_code == 2
    odd = {"ID": ["nobody"], "class": ["QSO"]}
    write_table(Table.from_columns(odd), tmp_path / "checked.csv")
    done = run(*words)
    assert done.exit_code == 2
    assert "none of its objects is in" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--purity", "0.9", "--min-probability", "0.5"], "either --purity or --min-probability"),
        (["--purity", "1"], "no list has an expected purity of 1"),
        (["--label", "class"], "needs --checked FILE"),
        (["--checked", "{}/kim.csv"], "no column of classes; name one with --label"),
    ],
)
def test_mistakes_about_purity_are_named(run, folder, tmp_path, words, message):
    words = [word.format(folder) for word in words]
    first = ("candidates", folder / "classified.parquet", "--class", "QSO", *words)
    done = run(*first, "-o", tmp_path / "o.csv")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "o.csv").exists()


def test_a_class_without_candidates_gives_an_empty_list(run, folder, tmp_path):
    write_table(Table.from_columns({"p_QSO": [0.1, 0.2]}), tmp_path / "none.parquet")
    done = run("candidates", tmp_path / "none.parquet", "--class", "QSO", "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output
    assert "0 of 2 objects are QSO" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class", "AGN"], "no class 'AGN' in the results; the classes are LPV, QSO, RRL"),
        (["--class", "QSO", "--min-probability", "1.5"], "least probability is 1.5"),
        (["--class", "QSO", "--compare", "{}/kim.csv", "--id", "star"], "no column 'star'"),
        (["--class", "QSO", "--compare", "{}/absent.csv"], "absent.csv"),
        (["--class", "QSO", "--model", "{}/kim.csv"], "not a skyfill model"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, folder, tmp_path, words, message):
    words = [word.format(folder) for word in words]
    done = run("candidates", folder / "classified.parquet", *words, "-o", tmp_path / "o.csv")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_list_with_neither_identifier_nor_position_is_refused(run, folder, tmp_path):
    write_table(Table.from_columns({"J": [1.0]}), tmp_path / "odd.csv")
    done = run(
        "candidates", folder / "classified.parquet", "--class", "QSO",
        "--compare", tmp_path / "odd.csv", "-o", tmp_path / "o.csv",
    )  # fmt: skip
    assert done.exit_code == 2
    assert "odd.csv" in done.stderr
    assert "no position columns" in done.stderr


def test_positions_may_have_any_names(run, folder, tmp_path):
    odd = Table.from_columns({"x": np.deg2rad([80.0]), "y": np.deg2rad([-69.0])})
    write_table(odd, tmp_path / "odd.csv")
    done = run(
        "candidates", folder / "classified.parquet", "--class", "QSO", "--json",
        "--compare", tmp_path / "odd.csv", "--position", "odd=x:y:rad", "-o", tmp_path / "o.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["lists"][0]["absent"] == 0


def test_mission_17_the_published_catalogue_says_what_it_is(run, folder, tmp_path):
    done = run(
        "publish", folder / "classified.parquet", "-o", tmp_path / "lmc.fits",
        "--title", "Variables in the LMC", "--license", "CC-BY-4.0",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    with fits.open(tmp_path / "lmc.fits") as opened:
        header = opened[1].header
        names = {header[f"TTYPE{k}"]: k for k in range(1, header["TFIELDS"] + 1)}
        assert header[f"TUNIT{names['V']}"] == "mag"
        assert "stat.probability" in str(header[f"TUCD{names['sf_p_QSO']}"])
        assert len(opened[1].data) == 180
    text = (tmp_path / "lmc_ReadMe.txt").read_text()
    assert text.startswith("Variables in the LMC\n")
    classes = read_table(folder / "classified.parquet").column("sf_class").to_pylist()
    assert any(line.split()[:2] == ["QSO", str(classes.count("QSO"))] for line in text.splitlines())
    assert "Probability of class QSO" in text
    assert "command: skyfill classify lmc.skyfill all.parquet" in text
    assert "model: " in text
    assert "Meixner 2006" in text
    assert "CC-BY-4.0" in text


@pytest.mark.parametrize("name", ["lmc.vot", "lmc.parquet"])
def test_other_formats_keep_values_and_metadata(run, folder, tmp_path, name):
    assert run("publish", folder / "classified.parquet", "-o", tmp_path / name).exit_code == 0
    source, table = read_table(folder / "classified.parquet"), read_table(tmp_path / name)
    assert table.arrow.select(["sf_p_QSO", "sf_class", "V"]).equals(
        source.arrow.select(["sf_p_QSO", "sf_class", "V"]), check_metadata=False
    )
    assert table.info("sf_p_QSO").description == "Probability of class QSO"
    assert "source_provenance" in table.meta
    if name.endswith(".vot"):
        field = parse_single_table(tmp_path / name).get_field_by_id_or_name("sf_class")
        assert field.ucd == "src.class"


def test_publish_describes_what_names_and_units_say_and_lists_the_rest(run, tmp_path):
    names = "star_id,gaia_ra,gaia_dec,Jmag,e_Jmag,l_Jmag,[4.5],n,class"
    (tmp_path / "t.csv").write_text(f"{names}\na,80.1,-69.2,14.1,0.1,15.0,13.2,7,RRL\n")
    declared = "columns.n.description='Number of epochs'"
    words = ("publish", tmp_path / "t.csv", "--declare", "columns.'[4.5]'.unit='mag'", "--json")
    done = run(*words, "-o", tmp_path / "o.parquet")
    facts = json.loads(done.stdout)
    assert facts["undescribed"] == ["n"]
    assert "no description is known of n; declare it" in facts["input"]["warned"][0]
    assert "; e_Jmag: Error of Jmag; " in facts["input"]["guessed"][0]
    table = read_table(tmp_path / "o.parquet")
    ucds = {name: table.info(name).ucd for name in table.names}
    assert ucds == {
        "star_id": "meta.id",
        "gaia_ra": "pos.eq.ra;meta.main",
        "gaia_dec": "pos.eq.dec;meta.main",
        "Jmag": "phot.mag;em.IR.J",
        "e_Jmag": "stat.error;phot.mag;em.IR.J",
        "l_Jmag": "phot.mag;em.IR.J;stat.min",
        "[4.5]": "phot.mag;em.IR.4-8um",
        "n": None,
        "class": "src.class",
    }
    done = run(*words, "--declare", declared, "-o", tmp_path / "o.parquet")
    assert json.loads(done.stdout)["input"]["warned"] == []
    assert read_table(tmp_path / "o.parquet").info("n").description == "Number of epochs"


def test_publish_fills_in_what_a_csv_has_lost(run, tmp_path):
    (tmp_path / "plain.csv").write_text("id,class,p_QSO,entropy\na,QSO,0.9,0.4\nb,RRL,0.1,\n")
    assert run("publish", tmp_path / "plain.csv", "-o", tmp_path / "out.parquet").exit_code == 0
    table = read_table(tmp_path / "out.parquet")
    assert table.info("entropy").unit == "bit"
    assert table.info("class").ucd == "src.class"
    text = (tmp_path / "out_ReadMe.txt").read_text()
    assert "does not say how it was made" in text
    assert "not stated" in text
