"""Data for the page: packed arrays come back; its own inference against the library's."""

import json
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from skyfill.network import learn_mixture
from skyfill.report.page_data import axis_of, export_network, pack, to_script, unpack

LEVELS = [0.05, 0.5, 0.95]
RUN = """([rows, levels]) => {
  const engine = new Engine(DATA.engine);
  return rows.map((row) => {
    const told = engine.condition(Float64Array.from(row, (v) => v === null ? NaN : v));
    return told.lost.map((j) => {
      const { mean, sd } = engine.moments(told, j);
      return [j, mean, sd, ...levels.map((level) => engine.quantile(told, j, level))];
    });
  });
}"""


def with_gaps(X, rng, share=0.5):
    return np.where(rng.random(X.shape) < share, np.nan, X)


@pytest.fixture(scope="module")
def table(catalog):
    return catalog.numbers("V", "I", "depth", "J", "K", "period", "spots")


def plan(**options):
    return {"n_components": 2, "n_fits": 2, **options}


@pytest.fixture
def run(browser):
    """Run the page's engine, alone, on rows of a table."""
    page = browser.new_page()
    folder = files("skyfill.report") / "page"
    scripts = "".join((folder / f"{name}.js").read_text() for name in ("base", "engine"))

    def posterior(network, rows):
        payload = to_script({"engine": export_network(network)})
        page.set_content(
            f'<script type="application/json" id="payload">{payload}</script>'
            f"<script>{scripts}</script>"
        )
        plain = [[None if np.isnan(v) else v for v in row] for row in rows]
        return page.evaluate(RUN, [plain, LEVELS])

    yield posterior
    page.close()


@pytest.mark.parametrize(
    "options",
    [
        plan(),
        plan(gaps="informative", n_components=3),
        plan(margins=False),
        plan(n_components=1, n_fits=1),
        plan(arcs="own"),
    ],
    ids=["full", "informative", "linear", "gaussian", "arcs"],
)
def test_posteriors_in_the_page_are_those_of_the_library(run, table, options):
    network = learn_mixture(table, **options).network
    rng = np.random.default_rng(3)
    rows = with_gaps(table[:40], rng)
    # Nothing seen, everything seen, and values far beyond all that was learned.
    rows = np.vstack([rows, np.full((1, 7), np.nan), np.nan_to_num(table[:1], nan=1.0)])
    rows = np.vstack([rows, with_gaps(table[:5] * 3 - 40, rng)])
    post, quantiles = network.posterior(rows), network.quantiles(rows, LEVELS)
    for r, told in enumerate(run(network, rows)):
        assert [int(cell[0]) for cell in told] == np.flatnonzero(np.isnan(rows[r])).tolist()
        for cell in told:
            j = int(cell[0])
            scale = max(1.0, abs(post.mean[r, j]))
            assert cell[1] == pytest.approx(post.mean[r, j], abs=1e-6 * scale)
            assert cell[2] == pytest.approx(post.sd[r, j], abs=1e-6 * scale)
            reach = max(np.ptp(quantiles[:, r, j]), 1.0)
            np.testing.assert_allclose(cell[3:], quantiles[:, r, j], atol=1e-3 * reach)


def test_axes_hold_nearly_all_values(model, table):
    for margin, values in zip(model.network.margins, table.T, strict=True):
        axis, seen = axis_of(margin), values[~np.isnan(values)]
        assert np.mean((seen >= axis["low"]) & (seen <= axis["high"])) > 0.98
    assert axis_of(model.network.margins[5])["log"]
    assert not axis_of(model.network.margins[0])["log"]


@pytest.mark.parametrize("kind", ["f8", "f4", "u1"])
def test_packed_arrays_come_back(kind):
    values = np.arange(12).reshape(3, 4).astype(kind)
    np.testing.assert_array_equal(unpack(json.loads(json.dumps(pack(values, kind)))), values)


@given(arrays(np.float64, array_shapes(max_dims=2)))
def test_packing_keeps_every_bit(values):
    assert unpack(pack(values)).tobytes() == values.tobytes()


@given(st.recursive(st.text() | st.floats(allow_nan=False), st.lists))
def test_script_text_is_json_that_cannot_end_its_element(value):
    text = to_script(value)
    assert not set("<>&\u2028\u2029") & set(text)
    again = json.loads(text)
    assert json.dumps(again) == json.dumps(json.loads(json.dumps(again)))


def test_what_json_does_not_know_becomes_null():
    assert to_script({"a": [np.float64("nan"), float("inf"), np.int64(2)]}) == '{"a":[null,null,2]}'
