"""How much of long work is done, and the time left once that can be known."""

import re
import threading

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from skyfill.catalog import Table, write_table
from skyfill.cli import main, terminal
from skyfill.cli.expected_cost import expect_train
from skyfill.cli.work_progress import WorkProgress
from skyfill.impute.refining import refinement_cost
from skyfill.progress import spent, watched


@pytest.fixture
def stars(tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "SECONDS_PER_LINE", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    columns = dict(zip("abc", X.T, strict=True)) | {"class": np.where(X[:, 0] > 0, "QSO", "RRL")}
    write_table(Table.from_columns(columns), tmp_path / "stars.parquet")
    return tmp_path / "stars.parquet"


def told(*words):
    """The line with the work, and the shares that later lines give."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith(("learn", "compar"))]
    shares = [int(share) for share in re.findall(r": (\d+)% done", done.stderr)]
    # No time is known at first, and none before a twentieth is done.
    timed = [int(share) for share in re.findall(r": (\d+)% done, about \S+ \S+ left", done.stderr)]
    assert min(timed) >= 5
    assert " left" not in lines[0]
    assert "expected" not in lines[0]
    return lines[0], shares


def check_shares(shares):
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 100


def test_training_states_its_cost_and_how_far_it_is(stars, tmp_path):
    words = ("--features", "a,b,c", "--components", "2", "--fits", "2", "-o", tmp_path / "m")
    first, shares = told("train", stars, *words)
    assert first == "learning: 13 fits of the network"
    check_shares(shares)
    more = ("--label", "class", "--method", "forest", "--trees", "3")
    first, shares = told("train", stars, *words, *more)
    assert first == "learning: 15 fits of the network, 12 ensembles of trees"
    check_shares(shares)


def test_forests_that_correct_mixtures_cost_more():
    options = {"network": "mixture", "components": "4", "fits": 2, "label": None}
    table = Table.from_columns({"a": np.arange(400.0), "b": np.arange(400.0)})
    plain, refined = (
        expect_train(table, ["a", "b"], options | {"refine": refine}) for refine in ("off", "auto")
    )
    assert refined.seconds == pytest.approx(plain.seconds + refinement_cost(400, 2, 4))
    assert refinement_cost(400, 2, 4) > 0 == refinement_cost(199, 2, 4)


def test_comparing_states_its_cost_and_how_far_it_is(stars):
    words = ("--features", "a,b,c", "--methods", "mean,knn", "--rates", "10,20", "--repeats", "2")
    first, shares = told("evaluate", stars, *words)
    assert first == "comparing: 2 methods, 4 fits each"
    check_shares(shares)


def test_learning_from_large_tables_states_its_cost(stars, tmp_path):
    words = ("--features", "a,b,c", "--components", "1", "--fits", "1", "--out-of-core")
    first, shares = told("train", stars, *words, "-o", tmp_path / "m")
    assert first == "learning: some 30 passes over 80 rows"
    check_shares(shares)


@given(st.floats(1e-3, 1e6), st.lists(st.floats(1e-3, 1e6), min_size=1))
def test_work_is_never_finished_before_its_end_and_never_shrinks(expected, parts):
    work, shares = WorkProgress(expected), [0.0]
    for part in parts:
        work.add(part)
        shares.append(work.share)
        left = work.left(1.0)
        assert (left is None) == (work.share < 0.05)
        assert left is None or 0 < left < np.inf
    assert max(shares) < 1


def test_the_pace_is_measured_once_kernels_are_compiled():
    work = WorkProgress(100.0)
    work.add(20.0)
    assert work.left(200.0) == 800.0
    work.restart()
    work.add(4.9)
    assert work.left(2.0) is None
    work.add(5.1)
    assert work.left(5.0) == 35.0


def test_compilation_is_announced_once_and_before_it_is_over(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "SOME_SECONDS", 0.0)
    ended = []

    with terminal.compiling("learning", "about 30 s", lambda: ended.append(1)):
        compiled = njit(lambda x: x + 1)
        assert capsys.readouterr().err == ""
        assert compiled(1) == 2
        assert njit(lambda x: compiled(x) + 1)(1) == 3
    assert capsys.readouterr().err == "learning: compiling, once, about 30 s\n"
    assert len(ended) == 2
    njit(lambda x: x - 1)(1)
    assert len(ended) == 2


def test_threads_are_watched_as_long_as_asked():
    seen = []
    with watched(seen.append):
        threads = [threading.Thread(target=spent, args=(1.0,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spent(1.0)
    assert seen == [1.0] * 4
