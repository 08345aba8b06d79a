"""A small model with every kind of column, results of it, and a browser."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.model import Detection, train

GROUPS = {"optical": ("V", "I", "depth"), "infrared": ("J", "K"), "curve": ("period", "spots")}
CLASSES = ("QSO", "RRL", "star & more")
HOSTILE = "</script><script>alert(1)</script>"
# Milliseconds. A wait ends when the page is ready; this only ends a test that hangs.
PATIENCE = 600_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def catalog():
    """Two kinds of objects; a skewed, a zero-inflated and a constant column; gaps with reasons."""
    rng = np.random.default_rng(0)
    n = 300
    kind = rng.random(n) < 0.4
    V = rng.normal(18, 1, n) - 2 * kind
    X = {
        "V": V,
        "I": V - np.where(kind, 2, 0.5) + rng.normal(0, 0.2, n),
        "depth": np.full(n, 3.5),
        "J": V - 2 + rng.normal(0, 0.4, n),
        "K": V - 2.5 - 0.5 * kind + rng.normal(0, 0.3, n),
        "period": 10 ** (rng.normal(0, 0.4, n) + 2 * kind),
        "spots": np.where(rng.random(n) < 0.4, 0.0, rng.gamma(2, 1, n)),
    }
    faint = rng.random(n) < 1 / (1 + np.exp(-(V - 18)))
    for name in ("J", "K"):
        X[name] = np.where(faint, np.nan, X[name])
    X["period"][rng.random(n) < 0.2] = np.nan
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I", "J", "K")}
    info |= {name: ColumnInfo(role=Role.FEATURE) for name in ("depth", "period", "spots")}
    info["V"] = ColumnInfo("mag", "phot.mag;em.opt.V", "Mean <V> & more", Role.FEATURE)
    table = Table.from_columns(X, info=info)
    reasons = np.where(faint, "undetected", None).tolist()
    return table.with_reasons("J", reasons).with_reasons("K", reasons)


@pytest.fixture(scope="session")
def model(catalog):
    names = catalog.names_with(Role.FEATURE)
    options = {"n_components": 2, "n_fits": 2, "gaps": "informative"}
    plain = train(catalog, names, provenance={"command": "skyfill train"}, **options)[0]
    # A limit of its own for each object in J, the depth of a survey with a soft edge in K.
    known = {"J": Detection("lower"), "K": Detection("lower", depth=15.75, width=0.1)}
    return replace(plain, detections=tuple(known.get(name, Detection()) for name in names))


@pytest.fixture(scope="session")
def results(catalog):
    """What classifying the catalog would give: 60 objects, one with a hostile name."""
    rng = np.random.default_rng(1)
    n = 60
    P = rng.dirichlet([1, 1, 3], n)
    table = Table(catalog.arrow.slice(0, n))
    ids = [f"star {i}" for i in range(n)]
    ids[7] = HOSTILE
    table = table.with_column("id", ids, ColumnInfo(role=Role.IDENTIFIER))
    table = table.with_column("ra", rng.uniform(359, 361, n) % 360, ColumnInfo("deg"))
    table = table.with_column("dec", rng.uniform(-70, -69, n), ColumnInfo("deg"))
    table = table.with_column("class", [CLASSES[k] for k in P.argmax(axis=1)])
    for k, name in enumerate(CLASSES):
        table = table.with_column(f"p_{name}", P[:, k])
    table = table.with_column("entropy", -(P * np.log2(P)).sum(axis=1))
    table = table.with_column("outlier", (rng.random(n) < 0.1).tolist())
    limit = ColumnInfo("mag", role=Role.LIMIT, of="J")
    table = table.with_column("J_limit", np.full(n, 16.25), limit)
    known = ["QSO" if i % 2 else None for i in range(n)]
    return table.with_column("class_was", known, ColumnInfo(role=Role.LABEL))


@pytest.fixture(scope="session")
def results_file(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "results.parquet"
    write_table(results, path)
    return path


@pytest.fixture(scope="session")
def browser():
    """Real Chromium, driven by Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine; install the package chromium")
    with api.sync_playwright() as running:
        # A container has no user namespaces for the sandbox; the pages are our own.
        browser = running.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield browser
        browser.close()
