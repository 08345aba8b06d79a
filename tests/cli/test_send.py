"""`skyfill send`: over a real SAMP hub to a program that loads tables."""

import json
import time

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli.main import LazyGroup
from skyfill.cli.main import main as skyfill
from skyfill.cli.send import command
from skyfill.report.samp import samp_library


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    monkeypatch.setattr("skyfill.report.samp.ANSWER_SECONDS", 600)  # a busy machine may be slow
    return lambda *words: CliRunner().invoke(skyfill, ["send", *map(str, words)])


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """The file by which clients find the hub: not that of the person who runs the tests."""
    path = tmp_path / "hub" / ".samp"
    path.parent.mkdir()
    monkeypatch.setenv("SAMP_HUB", f"std-lockurl:{path.as_uri()}")
    with samp_library().conf.set_temp("use_internet", False):
        yield path


@pytest.fixture
def hub(lock):
    hub = samp_library().SAMPHubServer(addr="127.0.0.1", web_profile=False, lockfile=str(lock))
    hub.start()
    yield hub
    hub.stop()


class Program:
    """A program on the hub that loads tables, or refuses them."""

    def __init__(self, hub, name, kinds, *, refuses=False):
        self.hub, self.tables, self.params, self.refuses = hub, [], [], refuses
        self.client = samp_library().SAMPIntegratedClient(name, addr="127.0.0.1")
        self.client.connect()
        for kind in kinds:
            self.client.bind_receive_call(kind, self.load)

    def load(self, key, sender, message, mtype, params, extra):
        # The hub loses an answer that comes before it has noted that one is expected.
        while message not in self.hub._sync_msg_ids_heap:
            time.sleep(0.001)
        if self.refuses:
            self.client.ereply(message, "samp.error", error={"samp.errortxt": "too large"})
            return
        self.params.append(params)
        self.tables.append(read_table(params["url"].removeprefix("file://")))
        self.client.reply(message, {"samp.status": "samp.ok", "samp.result": {}})


@pytest.fixture
def program(hub):
    started = []

    def start(name="TOPCAT", kinds=("table.load.fits", "table.load.votable"), **options):
        started.append(Program(hub, name, kinds, **options))
        return started[-1]

    yield start
    for each in started:
        each.client.disconnect()


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return Table.from_columns(
        {"id": ["a", "b", "c"], "J": rng.normal(size=3), "p_QSO": [0.9, None, 0.1]}
    )


@pytest.mark.parametrize("name", ["stars.fits", "stars.vot"])
def test_a_table_arrives_as_it_is(run, program, table, tmp_path, name):
    topcat, path = program(), tmp_path / name
    write_table(table, path)
    done = run(path)
    assert done.exit_code == 0, done.output
    assert done.stderr.strip() == f"{path} -> TOPCAT"
    assert topcat.tables[0].arrow.to_pydict() == table.arrow.to_pydict()
    assert topcat.params[0]["name"] == "stars"
    assert topcat.params[0]["url"] == path.as_uri()


def test_a_program_that_does_not_answer_is_named(run, program, table, tmp_path, monkeypatch):
    monkeypatch.setattr("skyfill.report.samp.ANSWER_SECONDS", 1)
    silent, path = program(), tmp_path / "stars.fits"
    silent.client.bind_receive_call("table.load.fits", lambda *message: None)
    write_table(table, path)
    done = run(path)
    assert done.exit_code == 2
    assert f"{path}: TOPCAT did not answer within 2 seconds" in done.stderr


def test_parquet_travels_as_fits(run, program, table, tmp_path):
    topcat, path = program(kinds=["table.load.fits"]), tmp_path / "stars.parquet"
    write_table(table, path)
    done = run(path, "--json", "--name", "my stars")
    assert json.loads(done.stdout)["receivers"] == ["TOPCAT"]
    assert topcat.params[0]["url"].endswith("stars.samp.fits")
    assert topcat.params[0]["name"] == "my stars"
    assert topcat.tables[0].arrow.to_pydict() == table.arrow.to_pydict()


def test_one_of_several_programs_can_be_chosen(run, program, table, tmp_path):
    topcat, aladin = program(), program("Aladin")
    write_table(table, tmp_path / "stars.fits")
    assert run(tmp_path / "stars.fits", "--to", "aladin").exit_code == 0
    assert (len(topcat.tables), len(aladin.tables)) == (0, 1)
    assert run(tmp_path / "stars.fits").stderr.strip().endswith("TOPCAT, Aladin")
    assert (len(topcat.tables), len(aladin.tables)) == (1, 2)


def test_without_a_hub_the_message_says_what_to_start(run, lock, table, tmp_path):
    write_table(table, tmp_path / "stars.fits")
    done = run(tmp_path / "stars.fits")
    assert done.exit_code == 2
    assert "no SAMP hub is running; start TOPCAT or Aladin" in done.stderr


def test_a_program_that_is_not_there_is_named_with_those_that_are(run, program, table, tmp_path):
    program()
    write_table(table, tmp_path / "stars.fits")
    done = run(tmp_path / "stars.fits", "--to", "Aladin")
    assert done.exit_code == 2
    assert "no program called 'Aladin'" in done.stderr
    assert "programs on it: TOPCAT" in done.stderr


def test_a_refusal_is_told_with_its_reason(run, program, table, tmp_path):
    program(refuses=True)
    write_table(table, tmp_path / "stars.fits")
    done = run(tmp_path / "stars.fits")
    assert done.exit_code == 2
    assert "TOPCAT could not load it: too large" in done.stderr


def test_what_is_no_table_is_not_sent(run, tmp_path):
    done = run(tmp_path / "none.fits")
    assert done.exit_code == 2
    assert "none.fits" in done.stderr
