"""The cost to expect before long work, and the time left while it runs."""

import re
import threading

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

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
    """The line with the expected cost, and the shares that later lines give."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    (first,) = [line for line in done.stderr.splitlines() if " expected on " in line]
    shares = re.findall(r": (\d+)% done, about \S+ \S+ left", done.stderr)
    return first, [int(share) for share in shares]


def check_shares(shares):
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 100


def test_training_states_its_cost_and_how_far_it_is(stars, tmp_path):
    words = ("--features", "a,b,c", "--components", "2", "--fits", "2", "-o", tmp_path / "m")
    first, shares = told("train", stars, *words)
    assert first.startswith("learning: 13 fits of the network; about ")
    check_shares(shares)
    more = ("--label", "class", "--method", "forest", "--trees", "3")
    first, shares = told("train", stars, *words, *more)
    assert "15 fits of the network, 12 ensembles of trees; about " in first
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
    assert first.startswith("comparing: 2 methods, 4 fits each; about ")
    check_shares(shares)


def test_learning_from_large_tables_states_its_cost(stars, tmp_path):
    words = ("--features", "a,b,c", "--components", "1", "--fits", "1", "--out-of-core")
    first, shares = told("train", stars, *words, "-o", tmp_path / "m")
    assert first.startswith("learning: some 30 passes over 80 rows; about ")
    check_shares(shares)


@given(st.floats(1e-3, 1e6), st.lists(st.floats(1e-3, 1e6), min_size=1))
def test_work_is_never_finished_before_its_end_and_never_shrinks(expected, parts):
    work, shares = WorkProgress(expected), [0.0]
    for part in parts:
        work.add(part)
        shares.append(work.share)
        assert 0 < work.left(1.0) < np.inf
    assert max(shares) < 1
    assert work.left(10.0) == pytest.approx(10 * work.left(1.0))


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
