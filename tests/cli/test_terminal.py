"""Progress: a bar on a terminal, lines in a log, nothing for those who want quiet."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, write_table
from skyfill.cli import main, terminal
from skyfill.cli.terminal import log_lines
from skyfill.model import save_model, train

COLOR = re.compile(r"\x1b\[[\d;]*3[1-7]")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("progress")
    V = np.linspace(15, 19, 200)
    K = np.where(np.arange(200) % 5, V - 2, np.nan)
    table = Table.from_columns({"V": V, "K": K})
    write_table(table, folder / "stars.parquet")
    save_model(train(table, ["V", "K"], n_components=1, n_fits=1)[0], folder / "m.skyfill")
    return [
        "impute", str(folder / "m.skyfill"), str(folder / "stars.parquet"),
        "-o", str(folder / "filled.parquet"),
    ]  # fmt: skip


def on_terminal(words, **environment):
    """What a terminal of 120 columns gets to see on stderr."""
    ours, theirs = os.openpty()
    code = "from skyfill.cli import main; main(prog_name='skyfill')"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    for name in {"NO_COLOR", "FORCE_COLOR"} - {*environment}:
        environment.pop(name, None)
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=theirs, stdout=subprocess.PIPE, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        while part := _read(ours):
            seen += part
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode()


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_a_terminal_shows_a_bar_with_rows_in_color(words):
    seen = on_terminal(words)
    assert "200/200" in seen
    assert COLOR.search(seen)
    assert "40 gaps in 200 rows filled" in seen


def test_no_color_is_respected(words):
    seen = on_terminal(words, NO_COLOR="1")
    assert "200/200" in seen
    assert not COLOR.search(seen)


def test_quiet_means_no_bar_either(words):
    assert on_terminal([*words, "-q"]) == ""


def test_a_log_gets_plain_lines(words, monkeypatch):
    monkeypatch.setattr(terminal, "SECONDS_PER_LINE", 0.0)
    said = CliRunner().invoke(main, words)
    assert re.search(r"^filling: 200 rows, [\d,]+/s$", said.stderr, re.MULTILINE)
    assert "\x1b" not in said.stderr


def test_a_log_gets_a_line_every_thirty_seconds_not_for_every_part(capsys, monkeypatch):
    seconds = [0]
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    report = log_lines("filling", "rows", 1000)
    for _ in range(100):
        seconds[0] += 1
        report(10)
    assert capsys.readouterr().err.splitlines() == [
        "filling: 300 of 1,000 rows, 10/s",
        "filling: 600 of 1,000 rows, 10/s",
        "filling: 900 of 1,000 rows, 10/s",
    ]


def test_a_command_that_would_be_silent_says_what_it_reads(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "SILENT_SECONDS", 0.0)
    with main.make_context("skyfill", ["data"]), terminal.never_silent("reading t.csv") as timer:
        timer.join()
    assert capsys.readouterr().err == "reading t.csv\n"
    monkeypatch.setattr(terminal, "SILENT_SECONDS", 1e4)
    with main.make_context("skyfill", ["data"]), terminal.never_silent("reading t.csv") as timer:
        assert timer.is_alive()
        terminal.note("read")
        timer.join()
    assert capsys.readouterr().err == "read\n"


def test_lines_are_cut_in_the_middle_but_for_names_of_files():
    path = f"{os.sep}{'folder' * 90}{os.sep}t.csv"
    assert terminal.within_line(f"{path}: is empty") == f"{path}: is empty"
    cut = terminal.within_line(f"{path}: no column {'x' * 400}; did you mean 'y'?")
    assert cut.startswith(f"{path}: no column xxx")
    assert cut.endswith("xxx; did you mean 'y'?")
    assert len(cut) <= len(path) + 1 + terminal.LONGEST
