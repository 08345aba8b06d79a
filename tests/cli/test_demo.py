"""The demo, run once as a user would; then every example of every help text in its folder."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from skyfill.catalog import read_table
from skyfill.cli import main
from skyfill.cli.demo import MANIFEST, claim_folder, steps
from skyfill.cli.main import COMMANDS
from skyfill.errors import SkyfillError

# Put behind an example so that it takes seconds; the rest of the line is run as it stands.
SMALLER = {
    "train": "--components 2 --fits 1 --refine off",
    "train --label": "--components 2 --fits 1 --refine off --trees 5 --method forest",
    "evaluate": "--methods mean --repeats 1",
    "evaluate --label": "--methods mean --repeats 1 --folds 2",
    # Magnitudes are learned on the command line in docs/counterparts.md.
    "match --probability": "--photometry none",
}
# Options that make a command another one.
KINDS = ("--label", "--probability")
# They need a hub, a network, or are the demo itself.
NOT_RUN = ("send", "data", "demo", "completion")


# One test: the demo takes half a minute, and workers that share the tests would each run it.
@pytest.mark.usefixtures("half_labelled")
def test_the_demo_and_then_every_example_of_every_help_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, ["demo", "--objects", "1000"])
    assert said.exit_code == 0, said.output
    folder = tmp_path / "skyfill-demo"
    check_words(said.stderr)
    check_files(folder)
    check_classes(folder)
    monkeypatch.chdir(folder)
    for line in examples():
        said = CliRunner().invoke(main, shlex.split(line)[1:])
        assert said.exit_code == 0, f"{line}: {said.output}"


def check_words(said):
    """Each step is a command that one could type; the end says what to do next."""
    typed = re.findall(r"^\$ skyfill (\w+)", said, re.MULTILINE)
    assert [*dict.fromkeys(typed)] == [
        "data", "features", "match", "train", "evaluate", "classify", "candidates", "report"
    ]  # fmt: skip
    for words in ("report.html", "skyfill train stars.csv", "skyfill report m.skyfill"):
        assert words in said.split("Look at")[1]


def check_files(folder):
    """All that was claimed is there, says how it was made, and the page is whole."""
    claimed = json.loads((folder / MANIFEST).read_text())["files"]
    assert all((folder / name).exists() for name in claimed if not name.endswith(".moc.fits"))
    made = json.loads(read_table(folder / "classified.parquet").meta["provenance"])
    assert made["command"].startswith("skyfill classify skyfill-demo/lmc.skyfill")
    text = (folder / "report.html").read_text()
    assert text.rstrip().endswith("</html>")
    assert "A simulated field of the LMC" in text
    assert "skyfill-quick" in text


def check_classes(folder):
    results = read_table(folder / "classified.parquet")
    truth = read_table(folder / "field/truth.parquet")
    assert results.column("id").to_pylist() == truth.column("id").to_pylist()
    kinds = truth.column("class").to_pylist()
    same = [a == b for a, b in zip(results.column("sf_class").to_pylist(), kinds, strict=True)]
    assert sum(same) / len(same) > 0.9
    known = dict(zip(truth.column("id").to_pylist(), kinds, strict=True))
    found = [known[name] for name in read_table(folder / "quasars.fits").column("id").to_pylist()]
    assert found.count("QSO") / len(found) > 0.8
    assert found.count("QSO") / kinds.count("QSO") > 0.6


def examples():
    for name in COMMANDS:
        text = CliRunner().invoke(main, [name, "--help"]).stdout
        for line in re.findall(r"^    (skyfill .*)$", text, re.MULTILINE):
            if name not in NOT_RUN:
                how = " ".join([name, *(kind for kind in KINDS if kind in line)])
                yield f"{line} {SMALLER.get(how, '')}".strip()


def test_the_demo_replaces_what_it_made_and_nothing_else(tmp_path):
    planned = steps(tmp_path / "d", 100, 0)
    claim_folder(tmp_path / "d", planned)
    (tmp_path / "d" / "report.html").write_text("of an earlier demo")
    (tmp_path / "d" / "thesis.tex").write_text("mine")
    claim_folder(tmp_path / "d", planned)
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "report.html").write_text("mine")
    with pytest.raises(SkyfillError, match=r"report\.html: was not made by skyfill demo"):
        claim_folder(tmp_path / "e", steps(tmp_path / "e", 100, 0))
    assert [path.name for path in (tmp_path / "e").iterdir()] == ["report.html"]


@pytest.mark.parametrize("text", ["{}", "[1]", "not json", '{"files": 3}'])
def test_a_file_that_only_looks_like_the_demos_list_is_left_alone(tmp_path, text):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(SkyfillError, match="was not made by skyfill demo"):
        claim_folder(tmp_path, steps(tmp_path, 100, 0))
    assert (tmp_path / MANIFEST).read_text() == text


def test_a_file_in_the_place_of_the_folder_is_a_users_mistake(tmp_path):
    (tmp_path / "d").write_text("mine")
    said = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "d")])
    assert said.exit_code == 2
    assert "is not a folder" in said.stderr
    assert (tmp_path / "d").read_text() == "mine"
