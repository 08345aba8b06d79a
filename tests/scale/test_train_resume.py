"""Learning that was killed at any step of EM and taken up again: the same model, fewer passes."""

import os

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.model import load_model
from skyfill.network.moments import Moments
from skyfill.scale import Steps
from skyfill.scale.job_folder import folder_of
from skyfill.scale.train_disk import expect_columns, train_file

WORDS = ["--out-of-core", "--components", "2", "--fits", "2", "--refine", "off"]


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, nothing is tidied up."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    rng = np.random.default_rng(1)
    v = np.where(rng.random(3000) < 0.5, rng.normal(17, 1, 3000), rng.normal(20, 0.5, 3000))
    i = np.where(rng.random(3000) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.3, 3000))
    info = {name: ColumnInfo(role=Role.FEATURE) for name in ("V", "I")}
    path = tmp_path_factory.mktemp("steps") / "in.parquet"
    kinds = np.where(v < 18.5, "QSO", "RRL")
    write_table(Table.from_columns({"V": v, "I": i, "kind": kinds}, info=info), path)
    return path


@pytest.fixture(autouse=True)
def _small_sample_and_a_fixed_date(monkeypatch):
    monkeypatch.setitem(train_file.__kwdefaults__, "sample_rows", 500)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")


def train(monkeypatch, catalog, output, *words, most=10**6):
    """Run the command; count the passes over the rows, die before one too many."""
    passes = []

    def watched(columns, mixture):
        if len(passes) == most:
            raise KilledError
        passes.append(mixture)
        return expect_columns(columns, mixture)

    monkeypatch.setattr("skyfill.scale.train_disk.expect_columns", watched)
    said = CliRunner().invoke(main, ["train", str(catalog), *WORDS, *words, "-o", str(output)])
    return len(passes), said


def test_a_run_that_was_killed_goes_on_with_the_next_step(monkeypatch, catalog, tmp_path):
    whole, output = tmp_path / "whole.skyfill", tmp_path / "m.skyfill"
    passes, _ = train(monkeypatch, catalog, whole)
    for most in (0, 7, passes - 1):
        with pytest.raises(KilledError):
            train(monkeypatch, catalog, output, most=most)
        left, said = train(monkeypatch, catalog, output, "--resume")
        assert said.exit_code == 0, said.output
        assert left == passes - most
        assert load_model(output).identifier == load_model(whole).identifier
        assert "--resume" not in load_model(output).provenance["command"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.skyfill", "whole.skyfill"]


def test_the_model_says_when_the_first_run_began(monkeypatch, catalog, tmp_path):
    output = tmp_path / "m.skyfill"
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=3)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    train(monkeypatch, catalog, output, "--resume")
    assert load_model(output).provenance["time"] == "1970-01-01T00:00:00Z"


def test_steps_of_another_job_are_refused_and_a_new_start_drops_them(
    monkeypatch, catalog, tmp_path
):
    output = tmp_path / "m.skyfill"
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=3)
    passes, said = train(monkeypatch, catalog, output, "--resume", "--seed", "1")
    assert (passes, said.exit_code) == (0, 2)
    assert "another run (it differs in: --seed)" in said.stderr
    assert len([*(folder_of(output) / "parts").glob("*.safetensors")]) == 3
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=0)
    assert [*(folder_of(output) / "parts").glob("*.safetensors")] == []


@pytest.mark.parametrize(
    ("words", "differs"),
    [
        (["--label", "kind"], "--label"),
        (["--quick"], "--quick"),
        (["--label", "kind", "--trees", "7", "--group", "V"], "--group, --label, --trees"),
        (["--features", "V"], "features"),
        (["--declare", "sentinels = [-9]"], "schema"),
        (["--force", "V"], "--force"),
    ],
)
def test_a_job_goes_on_with_the_same_options_alone(monkeypatch, catalog, tmp_path, words, differs):
    """In both directions: with an option that the first run had not, and without one it had."""
    for first, then in ((words, []), ([], words)):
        output = tmp_path / f"{len(first)}.skyfill"
        with pytest.raises(KilledError):
            train(monkeypatch, catalog, output, *first, most=2)
        passes, said = train(monkeypatch, catalog, output, *then, "--resume")
        assert (passes, said.exit_code) == (0, 2)
        assert f"these parts belong to another run (it differs in: {differs});" in said.stderr
        assert not output.exists()


def test_a_job_with_resamples_is_not_one_without(monkeypatch, catalog, tmp_path):
    monkeypatch.setattr(f"{__name__}.WORDS", ["--out-of-core", "--network", "k2"])
    output = tmp_path / "m.skyfill"
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=2)
    passes, said = train(monkeypatch, catalog, output, "--bootstrap", "2", "--resume")
    assert (passes, said.exit_code) == (0, 2)
    assert "(it differs in: --bootstrap)" in said.stderr


def test_groups_of_classes_are_told_apart_by_what_their_file_contains(
    monkeypatch, catalog, tmp_path
):
    tree, output = tmp_path / "tree.toml", tmp_path / "m.skyfill"
    tree.write_text('QSO = "all"\nRRL = "all"\n')
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, "--label", "kind", "--tree", str(tree), most=2)
    tree.write_text('QSO = "every"\nRRL = "every"\n')
    passes, said = train(
        monkeypatch, catalog, output, "--label", "kind", "--tree", str(tree), "--resume"
    )
    assert (passes, said.exit_code) == (0, 2)
    assert "(it differs in: --tree)" in said.stderr


def test_what_drives_the_machine_does_not_keep_a_job_from_going_on(monkeypatch, catalog, tmp_path):
    output = tmp_path / "m.skyfill"
    passes, _ = train(monkeypatch, catalog, tmp_path / "whole.skyfill")
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=3)
    monkeypatch.chdir(catalog.parent)
    words = ("--resume", "--json", "--verbose", "--device", "cpu", "--seed", "0")
    left, said = train(monkeypatch, catalog.name, output, *words)
    assert said.exit_code == 0, said.output
    assert left == passes - 3


def test_a_damaged_step_is_named(monkeypatch, catalog, tmp_path):
    output = tmp_path / "m.skyfill"
    with pytest.raises(KilledError):
        train(monkeypatch, catalog, output, most=3)
    os.truncate(folder_of(output) / "parts" / "0-1.safetensors", 20)
    _, said = train(monkeypatch, catalog, output, "--resume")
    assert said.exit_code == 2
    assert "0-1.safetensors: the step is damaged" in said.stderr
    assert "run without --resume" in said.stderr


def test_an_error_leaves_steps_only_where_they_were_asked_for(monkeypatch, catalog, tmp_path):
    output = tmp_path / "m.skyfill"

    def fail(columns, mixture):
        if len(passes) == 2:
            raise CatalogError("a fault")
        passes.append(mixture)
        return expect_columns(columns, mixture)

    monkeypatch.setattr("skyfill.scale.train_disk.expect_columns", fail)
    for words in ([], ["--resume"]):
        passes = []
        said = CliRunner().invoke(main, ["train", str(catalog), *WORDS, *words, "-o", str(output)])
        assert "a fault" in said.stderr
        assert folder_of(output).exists() == bool(words)
        assert not output.exists()


def test_nothing_is_learned_where_the_model_could_not_be_written(monkeypatch, catalog, tmp_path):
    passes, said = train(monkeypatch, catalog, tmp_path / "no" / "m.skyfill")
    assert (passes, said.exit_code) == (0, 2)
    assert "there is no directory" in said.stderr


def test_sums_come_back_as_they_were(tmp_path):
    """Also from arrays that do not lie in order in memory."""
    rng = np.random.default_rng(0)
    cross = rng.normal(size=(2, 3, 3)).transpose(2, 1, 0)[:2].copy(order="F")
    made = Moments(7, *rng.normal(size=(4, 2, 3))[:1], rng.normal(size=2),
                   rng.normal(size=(3, 2)).T, cross, np.zeros((2, 3)), -3.5)  # fmt: skip
    steps = Steps(folder=tmp_path)
    steps.watch(lambda mixture: made, 0, 1)(None)
    found = steps.watch(None, 0, 1)(None)
    assert (found.n, found.loglik) == (7, -3.5)
    for name in ("origin", "weight", "total", "cross", "gaps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
