"""How good filled values are, as training says: truths on paper, and fresh rows."""

import numpy as np
import pytest

from skyfill.catalog import Role, Table
from skyfill.impute import NetworkImputer
from skyfill.model import train

FEW = {"n_components": 1, "n_fits": 1, "refine": "auto"}


def curved(n, seed):
    """b is nearly a, which mixtures see; c is a rule of d that forests see; e is noise."""
    rng = np.random.default_rng(seed)
    a, noise, d, other, e = rng.normal(size=(5, n))
    X = np.column_stack([a, 0.8 * a + 0.6 * noise, np.abs(d) + 0.2 * other, d, e])
    return np.where(rng.random(X.shape) < 0.15, np.nan, X)


def hidden_again(model, new, j):
    """Error of fresh rows whose j-th value is hidden, and the share within 90 % intervals."""
    rows = new[~np.isnan(new[:, j])]
    lost = rows.copy()
    lost[:, j] = np.nan
    error = rows[:, j] - model.posterior(lost).mean[:, j]
    low, high = model.quantiles(lost, [0.05, 0.95])[:, :, j]
    return error, (rows[:, j] >= low) & (rows[:, j] <= high)


def test_what_is_stated_holds_for_fresh_rows_with_and_without_forests():
    found = NetworkImputer(1, n_fits=1, random_state=0).fit(curved(1500, 0))
    assert 2 in found.refinement_.columns  # a forest
    assert 1 not in found.refinement_.columns  # mixtures alone
    quality, new = found.fill_quality_, curved(6000, 1)
    for j in range(5):
        error, inside = hidden_again(found, new, j)
        mse, n = np.mean(error**2), quality.cells[j]
        spread = np.std(error**2) * np.sqrt(1 / n + 1 / len(error))
        assert abs(quality.error[j] ** 2 - mse) < 3 * spread, j
        share = inside.mean()
        spread = np.sqrt(share * (1 - share) * (1 / n + 1 / len(inside)))
        assert abs(quality.inside[j] - share) < 3 * spread, j


def test_a_line_with_noise_on_paper():
    rng, n = np.random.default_rng(0), 2000
    V = rng.normal(18, 1, n)
    table = Table.from_columns({"V": V, "I": V - 0.8 + rng.normal(0, 0.1, n)})
    model, _ = train(table, ["V", "I"], **FEW)
    band = model.quality["filling"]["features"][1]
    assert (band["name"], band["cells"]) == ("I", n)
    assert band["error"] == pytest.approx(0.1, abs=3 * 0.1 / np.sqrt(2 * n))
    assert band["mean_error"] == pytest.approx(np.sqrt(1.01), abs=3 / np.sqrt(2 * n))
    assert band["inside_90"] == pytest.approx(0.9, abs=3 * np.sqrt(0.09 / n))


@pytest.mark.parametrize(
    ("n", "names", "refine", "why"),
    [
        (150, ["V", "I"], "auto", "fewer than 200 rows"),
        (300, ["V"], "auto", "one feature"),
        (300, ["V", "I"], None, "no cells are hidden"),
    ],
)
def test_what_was_not_measured_is_said(n, names, refine, why):
    rng = np.random.default_rng(0)
    table = Table.from_columns(dict(zip(names, rng.normal(size=(len(names), n)), strict=True)))
    model, _ = train(table, names, **FEW | {"refine": refine})
    assert why in model.quality["filling"]["not_measured"]


def test_columns_that_were_not_measured_are_named():
    rng, n = np.random.default_rng(0), 400
    V, noise, K = rng.normal(size=(3, n))
    K[:320] = np.nan
    columns = {"V": V, "I": V + 0.1 * noise, "K": K, "e_V": np.full(n, 0.5)}
    table = Table.from_columns(columns).with_info("e_V", role=Role.ERROR, of="V")
    model, _ = train(table, ["V", "I", "K"], errors="on", **FEW)
    found = model.quality["filling"]
    assert [each["name"] for each in found["features"]] == ["I"]
    assert found["unmeasured"] == {"V": "values with errors", "K": "fewer than 100 values"}
