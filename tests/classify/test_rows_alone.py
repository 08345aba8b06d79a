"""Law: a row's answer is its own, bit for bit, whatever rows stand beside it, and in what order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.classify import gap_draws, scorer
from skyfill.classify.next_measurement import expected_gains
from skyfill.network import Cells
from skyfill.network.mixture import on_processor
from tests.classify.test_classifier import quick

ROWS = 24
BLOCKS = {"one": [0], "pair": [1, 2], "never missing": [4]}


def table(n, seed, kind):
    """Three classes in five columns; some training rows lack each of the first four."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    X = rng.normal(size=(n, 5)) + 1.5 * codes[:, None] * np.array([1, -1, 0.5, 0, 1])
    lost = rng.random(X.shape) < 0.3
    lost[:, 4] = False
    beside = {}
    if kind == "limits and errors":
        limited = lost & (rng.random(X.shape) < 0.5)
        beside["lower"] = np.where(limited, X - rng.uniform(0, 1, X.shape), np.nan)
        beside["errors"] = np.where(rng.random(X.shape) < 0.5, rng.uniform(0.05, 0.4), np.nan)
    X[lost] = np.nan
    return X, np.array(["LPV", "QSO", "RRL"])[codes], beside


def new_rows(kind):
    """Rows with the gaps of the training set, with others, far from all, and with nothing."""
    X, _, beside = table(ROWS, 1, kind)
    X[::2, 4] = np.nan
    X[1::5] *= 4.0
    X[0] = np.nan
    return Cells(X, **beside)


class Known:
    """A scorer, rows, and the answers to each row alone."""

    def __init__(self, kind):
        X, y, beside = table(300, 0, kind)
        self.kind, self.judge, self.cells = (
            kind,
            quick("both").fit(X, y, **beside).scorer_,
            new_rows(kind),
        )
        self.alone = [answers(self.judge, self.cells.take([i]))[0] for i in range(ROWS)]

    def __repr__(self):
        return self.kind


@pytest.fixture(scope="module", params=["values", "limits and errors"])
def known(request):
    return Known(request.param)


def answers(judge, cells, **how):
    """All answers to some rows, as one list of bytes per row."""
    found = judge.score(cells, **how)
    gains = expected_gains(
        judge.probabilities, judge.network, cells, blocks=BLOCKS, n_points=2, n_draws=9
    )
    tables = (*found, judge.probabilities(cells, n_draws=2), gains.bits, gains.entropy)
    return [
        b"".join(np.ascontiguousarray(a[i]).tobytes() for a in tables) for i in range(len(cells))
    ]


@given(
    rows=st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS),
    size=st.integers(1, ROWS),
    threads=st.integers(1, 3),
)
@settings(max_examples=15)
def test_a_rows_answer_does_not_depend_on_its_neighbours(known, rows, size, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYFILL_THREADS", str(threads))
        patch.setattr(scorer, "ROWS_AT_ONCE", size)
        patch.setattr(on_processor, "ROWS_AT_ONCE", size)
        found = answers(known.judge, known.cells.take(rows))
    assert [i for i, row in enumerate(rows) if found[i] != known.alone[row]] == []


def test_the_law_is_put_to_rows_that_are_drawn_and_drawn_again(known):
    judge, cells = known.judge, known.cells
    new = cells.take(~judge.known(cells))
    few = judge._drawn(new.with_keys(np.arange(len(new), dtype=np.uint64)), gap_draws.N_DRAWS)
    unsure = gap_draws.error_of_means(few) > gap_draws.CLOSE
    assert 0 < unsure.sum() < len(new)


def test_a_column_that_the_table_lacks_is_a_gap_for_each_row_alone(known):
    judge, cells = known.judge, known.cells
    lacking = judge.without([3, 4])
    hidden = np.zeros(cells.values.shape, bool)
    hidden[:, 3:] = True
    cells = cells.hide(hidden)
    together = lacking.score(cells)
    for i in range(ROWS):
        for one, many in zip(lacking.score(cells.take([i])), together, strict=True):
            assert one[0].tobytes() == many[i].tobytes()


def test_zeros_and_gaps_are_the_same_whatever_their_bits():
    X, y, _ = table(300, 0, "values")
    judge = quick("both").fit(X, y).scorer_
    other = np.array([0xFFF8000000000003], np.uint64).view(np.float64)[0]
    rows = np.array([[0.0, np.nan, 1.0, 0.0, np.nan], [-0.0, other, 1.0, -0.0, other]])
    for answer in judge.score(rows):
        assert np.array_equal(answer[0], answer[1], equal_nan=True)


def test_another_seed_gives_other_draws(known):
    judge, cells = known.judge, known.cells
    one, other = (judge.score(cells, rng=seed).gap_share for seed in (0, 1))
    assert (one != other).any()
    generators = [np.random.default_rng(3) for _ in range(2)]
    first, second = (judge.score(cells, rng=dice).gap_share for dice in generators)
    assert np.array_equal(first, second)
    assert generators[0].random() == generators[1].random()
