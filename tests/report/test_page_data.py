"""Data for the page: packed arrays come back; its own inference against the library's."""

import json
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.special import log_ndtr, ndtr
from scipy.stats import truncnorm

from skyfill.errors import LimitWarning
from skyfill.network import Cells, MixtureNetwork, learn_mixture, learn_one_network
from skyfill.network.mixture.margin import Identity
from skyfill.network.mixture.mixture import Mixture
from skyfill.report.page_data import axes_of, export_network, pack, to_script, unpack

LEVELS = [0.05, 0.5, 0.95]
RUN = """([tables, levels]) => {
  const engine = new Engine(DATA.engine);
  return tables.values.map((_, r) => {
    const cells = Object.fromEntries(Object.entries(tables).map(
      ([name, rows]) => [name, Float64Array.from(rows[r], (v) => v === null ? NaN : v)]));
    const told = engine.condition(cells);
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


@pytest.fixture(scope="module")
def load(browser):
    """Load the page's engine, alone, with a network; all tests share a window."""
    page = browser.new_page()
    folder = files("skyfill.report") / "page"
    names = ("base", "limits", "moments", "mixture", "engine")
    scripts = "".join((folder / f"{name}.js").read_text() for name in names)

    def loaded(engine):
        page.goto("about:blank")  # or else the scripts would find what they define defined
        page.set_content(
            f'<script type="application/json" id="payload">{to_script({"engine": engine})}</script>'
            f"<script>{scripts}</script>"
        )
        return page

    yield loaded
    page.close()


def plain(table):
    return [[None if np.isnan(v) else v for v in row] for row in table]


def check_engine(load, network, cells):
    """The page's posteriors of all cells without a value are those of the library."""
    post, quantiles = network.posterior(cells), network.quantiles(cells, LEVELS)
    nothing = np.full(cells.values.shape, np.nan)
    tables = {"values": cells.values, "lower": cells.lower, "upper": cells.upper}
    tables = {k: plain(nothing if v is None else v) for k, v in tables.items()}
    tables["errors"] = plain(nothing if cells.errors is None else cells.errors)
    page = load(export_network(network))
    for r, told in enumerate(page.evaluate(RUN, [tables, LEVELS])):
        assert [int(cell[0]) for cell in told] == np.flatnonzero(np.isnan(cells.values[r])).tolist()
        for cell in told:
            j = int(cell[0])
            scale = max(1.0, abs(post.mean[r, j]))
            assert cell[1] == pytest.approx(post.mean[r, j], abs=1e-6 * scale)
            assert cell[2] == pytest.approx(post.sd[r, j], abs=1e-6 * scale)
            reach = max(np.ptp(quantiles[:, r, j]), 1.0)
            np.testing.assert_allclose(cell[3:], quantiles[:, r, j], atol=1e-6 * reach)


def some_rows(table, rng):
    """Rows with gaps; nothing seen, everything seen, and values far beyond all that was learned."""
    rows = [with_gaps(table[:40], rng), np.full((1, 7), np.nan)]
    rows += [np.nan_to_num(table[:1], nan=1.0), with_gaps(table[:5] * 3 - 40, rng)]
    return np.vstack(rows)


PLANS = {
    "full": plan(),
    "informative": plan(gaps="informative", n_components=3),
    "linear": plan(margins=False),
    "gaussian": plan(n_components=1, n_fits=1),
    "arcs": plan(arcs="own"),
    "one network": {"score": "bic"},
}


@pytest.fixture(scope="module")
def learn(table):
    def learned(name):
        how = learn_one_network if name == "one network" else learn_mixture
        return how(table, **PLANS[name]).network

    return cache(learned)


@pytest.mark.parametrize("name", PLANS)
def test_posteriors_in_the_page_are_those_of_the_library(load, table, learn, name):
    check_engine(load, learn(name), Cells(some_rows(table, np.random.default_rng(3))))


@pytest.mark.parametrize("kind", ["lower", "upper", "window", "soft", "errors"])
@pytest.mark.parametrize("name", ["full", "informative", "linear", "one network"])
def test_limits_and_errors_in_the_page_are_those_of_the_library(load, table, learn, name, kind):
    rng = np.random.default_rng(4)
    rows = some_rows(table, rng)
    # Limits at values of other objects, so that atoms and the far ends are among them.
    at = np.nan_to_num(rng.permuted(np.nan_to_num(table[: len(rows)], nan=15.0), axis=0))
    at[::9] += 12.0
    some = np.where(rng.random(rows.shape) < 0.6, at, np.nan)
    wide = np.where(np.isnan(some), np.nan, rng.choice([0.02, 0.3, 2.0], rows.shape))
    cells = {
        "lower": {"lower": some},
        "upper": {"upper": some},
        "window": {"lower": some, "upper": some + wide},
        "soft": {"lower": some, "errors": wide},
        "errors": {"upper": some, "errors": rng.choice([0.0, 0.1, 1.0], rows.shape)},
    }[kind]
    check_engine(load, learn(name), Cells(rows, **cells))


def test_logarithms_in_the_page_are_those_of_the_library(load):
    rng = np.random.default_rng(5)
    true = np.exp(rng.normal(size=(300, 1)) + 0.5 * rng.normal(size=(300, 3)))
    faint = true < 0.5
    faint[:, 0] = False
    X, upper = np.where(faint, np.nan, true), np.where(faint, 0.5, np.nan)
    network = learn_mixture(Cells(X, upper=upper), **plan(), fluxes=[True] * 3).network
    assert network.logarithmic.all()
    rows = np.vstack([with_gaps(true[:30], rng), [[-0.2, np.nan, np.nan], [0.0, 1.0, np.nan]]])
    limits = np.where(
        rng.random(rows.shape) < 0.6, rng.choice([0.01, 0.5, 3.0], rows.shape), np.nan
    )
    for wide in (None, rng.choice([0.0, 0.1, 1.0, 40.0], rows.shape)):
        check_engine(load, network, Cells(rows, upper=limits, errors=wide))
    limits[0] = [-1.0, 0.0, -2.0]
    with pytest.warns(LimitWarning):
        check_engine(load, network, Cells(rows, upper=limits))


def test_levels_within_limits_are_calibrated_in_the_page(load, table):
    values = np.delete(table, 2, axis=1)
    lower = np.full(values.shape, np.nan)
    lower[:, 2:4] = np.where(np.isnan(values[:, 2:4]), 15.5, np.nan)
    network = learn_mixture(Cells(values, lower), **plan()).network
    assert network.within_limits is not None
    check_engine(load, network, Cells(values[:60], lower[:60]))


def test_tails_of_the_normal_are_exact(load, model):
    z = np.concatenate([np.linspace(-38, 8, 400), [-2.5, 2.5, 0.0, 1e-9]])
    page = load(export_network(model.network))
    found = np.array(
        page.evaluate("(z) => z.map((v) => [normalCdf(v), ...logTail(v)])", z.tolist())
    )
    hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    np.testing.assert_allclose(found[z > -37, 0], ndtr(z[z > -37]), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], log_ndtr(z), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[:, 2], hazard, rtol=1e-12)


COVARIANCE = """(limit) => {
  const engine = new Engine(DATA.engine), cells = emptyCells(3);
  cells.lower[2] = limit;
  const told = engine.condition(cells);
  return engine.covarianceOf(told, 0, 0, 1) - engine.tightening(told, 0, 0, 1);
}"""


def test_a_limit_tightens_the_covariance_of_the_others_as_on_paper(load):
    root = np.random.default_rng(0).normal(size=(3, 5))
    cov = root @ root.T
    margins = tuple(Identity(np.array([0.0, 1.0]), np.array([0.0, 1.0])) for _ in range(3))
    fit = Mixture(np.ones(1), np.zeros((1, 3)), cov[None], None, None)
    page = load(export_network(MixtureNetwork(("a", "b", "c"), margins, (fit,))))
    sd = np.sqrt(cov[2, 2])
    lost = cov[2, 2] - truncnorm.var(0.7 / sd, np.inf, scale=sd)
    expected = cov[0, 1] - cov[0, 2] * cov[1, 2] * lost / cov[2, 2] ** 2
    assert page.evaluate(COVARIANCE, 0.7) == pytest.approx(expected, rel=1e-9)


def test_axes_hold_nearly_all_values(model, table):
    axes = axes_of(model.network)
    for axis, values in zip(axes, table.T, strict=True):
        seen = values[~np.isnan(values)]
        assert np.mean((seen >= axis["low"]) & (seen <= axis["high"])) > 0.98
    assert axes[5]["log"]
    assert not axes[0]["log"]


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
