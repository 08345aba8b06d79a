"""The page as a file: whole, self-contained, small."""

import errno
import re
from importlib.resources import files

import numpy as np
import pytest

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.errors import CatalogError
from skyfill.model import Feature, Model
from skyfill.network import MixtureNetwork
from skyfill.network.mixture.maps import fit_margin
from skyfill.network.mixture.mixture import Mixture
from skyfill.report import Report, build_page, write_page
from skyfill.report.objects import gather_results
from skyfill.report.page import SCRIPTS


def random_model(p=25, n_fits=8, k=16, seed=0):
    """A model of the default size, with random numbers in it."""
    rng = np.random.default_rng(seed)
    names = tuple(f"feature_{j}" for j in range(p))
    fits = []
    for _ in range(n_fits):
        root = rng.normal(size=(k, p, 2 * p)) / np.sqrt(2 * p)
        covs = 0.5 * root @ root.transpose(0, 2, 1) + 0.3 * np.eye(p)
        fits.append(
            Mixture(rng.dirichlet(np.ones(k)), rng.normal(0, 0.6, (k, p)), covs, None, None)
        )
    margins = tuple(fit_margin(rng.gamma(2 + j, 1, 2000)) for j in range(p))
    network = MixtureNetwork(names, margins, tuple(fits))
    return Model(tuple(Feature(name, "mag") for name in names), network, {})


def many_objects(model, n=10_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(3, 1, (n, len(model.names)))
    X[rng.random(X.shape) < 0.3] = np.nan
    table = Table.from_columns(dict(zip(model.names, X.T, strict=True)))
    P = rng.dirichlet(np.ones(8), n)
    ids = [f"{i % 80}.{i * 7}.{i}" for i in range(n)]
    table = table.with_column("id", ids, ColumnInfo(role=Role.IDENTIFIER))
    table = table.with_column("ra", rng.uniform(70, 90, n)).with_column(
        "dec", rng.uniform(-71, -66, n)
    )
    table = table.with_column("class", [f"class{k}" for k in P.argmax(axis=1)])
    for k in range(8):
        table = table.with_column(f"p_class{k}", P[:, k])
    for name in ("entropy", "gap_share", "outlier_score"):
        table = table.with_column(name, rng.random(n))
    empty = Table(table.arrow.slice(0, 0))
    return gather_results([table], model.features, 10_000, empty=empty)


def test_ten_thousand_objects_and_a_model_of_default_size_stay_under_8_megabytes():
    model = random_model()
    page = build_page(Report(model, many_objects(model)))
    assert len(page.encode()) < 8e6


def test_nothing_is_loaded_from_anywhere(model):
    page = build_page(Report(model))
    code = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    addresses = set(re.findall(r"\w+://[^\s\"'`]+", code))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link)[^>]+(src|href)=.(?!data:)", code)


def test_a_title_cannot_become_markup(model):
    page = build_page(Report(model, title="<b>LMC</b> & more"))
    assert "<title>&lt;b&gt;LMC&lt;/b&gt; &amp; more</title>" in page


def test_the_same_report_gives_the_same_page(model):
    assert build_page(Report(model)) == build_page(Report(model))


def test_the_page_appears_whole_or_not_at_all(model, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def full(_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CatalogError, match=r"report\.html: no space left"):
        write_page(Report(model), path)
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "before"


def test_every_script_of_the_page_is_used_and_short():
    scripts = {
        p.name for p in (files("skyfill.report") / "page").iterdir() if p.name.endswith(".js")
    }
    assert scripts == {f"{name}.js" for name in SCRIPTS}
    for name in scripts:
        text = (files("skyfill.report") / "page" / name).read_text()
        assert len(text.splitlines()) <= 300, name


def test_no_two_scripts_of_the_page_define_the_same_name():
    folder = files("skyfill.report") / "page"
    text = "\n".join((folder / f"{name}.js").read_text() for name in SCRIPTS)
    names = re.findall(r"^(?:function|class|const|let) (\w+)", text, re.MULTILINE)
    assert len(names) > 100
    assert sorted(set(names)) == sorted(names)
