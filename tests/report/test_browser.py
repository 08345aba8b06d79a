"""The page in real Chromium: what a reader sees and does."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skyfill.classify.class_quality import class_quality
from skyfill.evaluate import ClassComparison, OutOfFold, compare_imputers
from skyfill.impute import GaussianMixtureImputer, MeanImputer
from skyfill.model import cells_of
from skyfill.network import Cells
from skyfill.network.summary import summarize_network
from skyfill.report import Report, read_evaluations, read_results, write_page

from .conftest import CLASSES, GROUPS, HOSTILE, PATIENCE
from .test_page import random_model

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def evaluations(catalog, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations")
    methods = {"mean": MeanImputer, "mixture": GaussianMixtureImputer}
    filled = compare_imputers(catalog.select(["V", "I", "J"]), methods, rates=[0.1], repeats=2)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    sure = np.eye(3)[truth] * 3 + rng.random((60, 3))
    runs = [OutOfFold("a", 0, rng.dirichlet(np.ones(3), 60), 1.0, 1.0)]
    runs += [OutOfFold("b", 0, sure / sure.sum(axis=1, keepdims=True), 1.0, 1.0)]
    classes = ClassComparison(CLASSES, truth, tuple(runs), np.arange(60))
    paths = [folder / "errors.json", folder / "classes.json"]
    for path, found in zip(paths, (filled, classes), strict=True):
        path.write_text(found.to_json())
    return read_evaluations(paths)


@pytest.fixture(scope="module")
def page_file(model, results_file, evaluations, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    results = read_results(results_file, model.features)
    write_page(Report(model, results, evaluations, GROUPS, "A field"), path)
    return path


class Window:
    """A window of the browser, and what its pages complain of or ask from elsewhere."""

    def __init__(self, browser, **options):
        self.context, self.faults = browser.new_context(**options), []
        self.context.set_default_timeout(PATIENCE)
        self.page, note = self.context.new_page(), self.faults.append
        self.page.on("console", lambda message: note(message.text))
        self.page.on("pageerror", lambda error: note(str(error)))
        self.page.on("request", lambda r: r.url.startswith(("file:", "data:")) or note(r.url))

    def show(self, address):
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")  # a page that differs in its hash alone would not be loaded
        self.page.goto(address)
        self.page.wait_for_selector("#provenance dl")
        settle(self.page)  # charts are drawn when their width is known
        return self.page


@pytest.fixture(scope="module")
def desk(browser):
    """Keep one window for the tests that need no other: a page that is loaded anew is as new."""
    window = Window(browser, viewport=DESK)
    yield window
    window.context.close()


@pytest.fixture
def open_page(browser, page_file, desk):
    """Open the page; afterwards, nothing may have been complained of or asked from elsewhere."""
    others = []
    desk.faults.clear()

    def open_it(path=page_file, *, viewport=DESK, hash_="", **options):
        window = desk
        if options or viewport != DESK:
            window = Window(browser, viewport=viewport, **options)
            others.append(window)
        return window.show(path.as_uri() + hash_)

    yield open_it
    for window in others:
        window.context.close()
    assert [*desk.faults, *(fault for window in others for fault in window.faults)] == []


def settle(page):
    """Wait for two pictures: updates are made once per picture."""
    page.evaluate("() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")


def give(page, name, value, kind=None):
    if kind is not None:
        page.locator(f"[data-kind='{name}']").select_option(label=kind)
    field = page.locator(f"[data-number='{name}']")
    field.fill(str(value))
    field.press("Enter")
    settle(page)


def shown(page, name):
    cell = page.locator(f"data[data-feature='{name}']")
    return float(cell.get_attribute("value")), float(cell.get_attribute("data-sd"))


def given_row(model, given):
    return np.array([[given.get(name, np.nan) for name in model.names]])


def check_shown(page, model, given, network=None, **limits):
    beside = {side: given_row(model, limit) for side, limit in limits.items()}
    post = (network or model.network).posterior(Cells(given_row(model, given), **beside))
    for j, name in enumerate(model.names):
        mean, sd = shown(page, name)
        assert mean == pytest.approx(post.mean[0, j], abs=1e-6), name
        assert sd == pytest.approx(post.sd[0, j], abs=1e-6), name


def test_the_page_opens_with_all_its_sections_and_asks_for_nothing(open_page):
    page = open_page()
    titles = page.locator("main > section > h2").all_inner_texts()
    assert titles == [
        "Gaps", "Network", "What if", "Two features", "Filled values", "Classes",
        "Which features matter", "Objects", "Sky map", "Provenance",
    ]  # fmt: skip
    assert page.title() == "A field"


def test_a_page_of_a_model_alone_says_what_is_missing(open_page, model, tmp_path):
    write_page(Report(model), tmp_path / "bare.html")
    page = open_page(tmp_path / "bare.html")
    notes = " ".join(page.locator(".note").all_inner_texts())
    assert "skyfill evaluate CATALOG --json" in notes
    assert "skyfill report MODEL RESULTS" in notes


def test_a_page_shows_the_quality_that_its_model_knows(open_page, model, tmp_path):
    scores = {"cells": 90, "error": 0.2, "mean_error": 1.0, "inside_90": 0.9}
    hidden = [{"name": "V", **scores, "inside_90_error": 0.03}]
    filling = {"rows": 120, "features": hidden, "unmeasured": {HOSTILE: "values with errors"}}
    P, truth = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [np.nan] * 2]), np.array([0, 1, 1, 1])
    classes = class_quality(P, truth, ["QSO", "RRL"], apart="bags")
    known = replace(model, quality={"filling": filling, "classes": classes})
    write_page(Report(known), tmp_path / "known.html")
    page = open_page(tmp_path / "known.html")
    cells = page.locator("#hidden-cells tbody tr").locator("th, td").all_inner_texts()
    assert cells == ["V", "90", "0.200", "1.000", "90.0 % ± 3.0"]
    assert HOSTILE in page.locator("#filling .note").inner_text()
    rows = page.locator("#per-class tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [
        ["QSO", "1", "0.500", "1.000", "0.667"], ["RRL", "2", "1.000", "0.500", "0.667"],
    ]  # fmt: skip
    assert "out of bag" in page.locator("#classes p").first.inner_text()
    assert "in no fold: RRL (1)" in page.locator("#classes .note").inner_text()


def test_a_hostile_name_stays_text(open_page):
    page = open_page()
    page.locator("#object-search").fill("alert")
    link = page.locator("#object-table tbody a")
    assert link.all_inner_texts() == [HOSTILE]
    link.click()
    assert page.locator("#panel-title").inner_text() == HOSTILE


def test_missing_shares_are_those_of_the_table(open_page, results, model):
    page = open_page()
    cells = page.locator("#gaps table").first.locator("tbody tr:not(.group)")
    lost = np.isnan(results.numbers(*model.names)).mean(axis=0)
    for row in cells.all():
        name = row.locator("th").inner_text()
        text = row.locator("td.n").first.inner_text()
        assert text == f"{100 * lost[model.names.index(name)]:.0f} %"


def test_a_node_can_be_dragged_and_its_arrows_follow(open_page):
    page = open_page()
    node = page.locator(".node[data-name='V']")
    node.scroll_into_view_if_needed()
    arrows = "() => [...document.querySelectorAll('.arc line')].map((l) => l.outerHTML)"
    before, lines = node.bounding_box(), page.evaluate(arrows)
    x, y = before["x"] + before["width"] / 2, before["y"] + before["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 45, steps=5)
    page.mouse.up()
    after = node.bounding_box()
    moved = [abs(after[k] - before[k]) for k in "xy"]
    assert max(moved) > 40
    assert page.evaluate(arrows) != lines


def test_a_node_tells_its_regression(open_page, model):
    page = open_page()
    child = next(r for r in summarize_network(model.network).regressions if r.parents)
    page.locator(f".node[data-name='{child.child}']").hover()
    story = page.locator("#story").inner_text()
    assert f"{child.child} =" in story
    assert all(f"× {parent}" in story for parent in child.parents)
    assert f"{abs(child.weights[0]):.2f}" in story
    assert f"{100 * child.explained:.0f} %" in story


def test_the_shown_means_equal_the_librarys(open_page, model):
    page = open_page()
    settle(page)
    check_shown(page, model, {})
    given = {}
    for name, value in {"V": 17.25, "spots": 0.0, "period": 3e3, "I": 99.0}.items():
        given[name] = value
        give(page, name, value)
        check_shown(page, model, given)
    page.locator("[data-lever='spots'] button").click()
    settle(page)
    del given["spots"]
    check_shown(page, model, given)
    page.locator("#whatif-clear").click()
    settle(page)
    check_shown(page, model, {})


def test_what_if_takes_limits(open_page, model):
    page = open_page()
    give(page, "V", 19.0)
    give(page, "K", 15.5, "fainter than")
    check_shown(page, model, {"V": 19.0}, lower={"K": 15.5})
    assert shown(page, "K")[0] > 15.5
    give(page, "period", 30.0, "smaller than")
    give(page, "J", 17.5, "brighter than")
    upper = {"period": 30.0, "J": 17.5}
    check_shown(page, model, {"V": 19.0}, lower={"K": 15.5}, upper=upper)
    story = page.locator("#whatif-story").inner_text()
    assert "V = 19.00, J brighter than 17.50 mag, K fainter than 15.50 mag" in story
    assert "period smaller than 30.00" in story
    # Another kind takes the number over; clearing takes the limit away.
    page.locator("[data-kind='period']").select_option(label="larger than")
    settle(page)
    lower = {"K": 15.5, "period": 30.0}
    check_shown(page, model, {"V": 19.0}, lower=lower, upper={"J": 17.5})
    page.locator("[data-kind='J']").select_option(label="is")
    page.locator("[data-lever='K'] button").click()
    settle(page)
    check_shown(page, model, {"V": 19.0, "J": 17.5}, lower={"period": 30.0})
    page.locator("#whatif-clear").click()
    settle(page)
    check_shown(page, model, {})
    assert page.locator("[data-kind='period']").input_value() == "values"


# Bins of a lever's outline that lie in its plot left of its limit, and how high they are.
HEIGHTS = """() => {
  const row = document.querySelector("[data-lever='K']"), [shape, arrow] = [1, 2].map(
    (k) => row.querySelectorAll("svg path")[k].getAttribute("d"));
  const bar = Number(arrow.match(/^M([^,]+)/)[1]), tip = Number(arrow.match(/H([^M]+)/)[1]);
  const points = shape.slice(1, -1).split("L").map((pair) => pair.split(",").map(Number));
  return { bar, tip, beyond: points.filter(([x]) => x < bar - 4).map(([, y]) => 40 - y),
    within: points.filter(([x]) => x > bar).map(([, y]) => 40 - y) };
}"""


def test_a_limit_is_drawn_as_an_arrow_and_nothing_lies_beyond_it(open_page):
    page = open_page()
    give(page, "V", 18.0)
    give(page, "K", 15.5, "fainter than")
    drawn = page.evaluate(HEIGHTS)
    assert drawn["tip"] > drawn["bar"]
    assert max(drawn["beyond"]) == 0
    assert max(drawn["within"]) == pytest.approx(40)


def test_the_number_that_is_read_is_the_rounded_mean(open_page):
    page = open_page()
    give(page, "V", 17.0)
    mean, sd = shown(page, "K")
    value, spread = page.locator("data[data-feature='K']").inner_text().split(" ± ")
    assert float(value) == pytest.approx(mean, abs=0.051 * sd)
    assert float(spread) == pytest.approx(sd, rel=0.051)


def test_without_hints_a_value_that_is_not_given_is_merely_unknown(open_page, model):
    page = open_page()
    give(page, "V", 17.0)
    page.locator("#whatif-hints").uncheck()
    settle(page)
    fits = tuple(fit._replace(gap_rates=None) for fit in model.network.fits)
    check_shown(page, model, {"V": 17.0}, replace(model.network, fits=fits))


def test_two_features_show_the_conditional_mean(open_page, model):
    page = open_page()
    names = list(model.names)
    page.locator("#pair-x").select_option(label="V")
    page.locator("#pair-y").select_option(label="K")
    page.locator("#pair-at").evaluate(
        "(s) => { s.value = 400; s.dispatchEvent(new Event('input')); }"
    )
    text = page.locator("#pair-story").inner_text()
    mean = float(page.locator("#pair-mean").get_attribute("value"))
    fits = tuple(fit._replace(gap_rates=None) for fit in model.network.fits)
    network = replace(model.network, fits=fits)
    at = float(text.split("V = ")[1].split(" ")[0])
    about = network.condition({"V": at}, of=["K"]).mean[0]
    assert mean == pytest.approx(about, abs=0.01)  # the text rounds the given value
    assert page.locator("#pair svg path").count() >= 5
    assert "K" in names


def column(page, name):
    """Texts of a column of the table of objects."""
    heads = page.locator("#object-table thead th").all()
    place = [head.get_attribute("data-column") for head in heads].index(name)
    return page.locator(f"#object-table tbody tr > :nth-child({place + 1})").all_inner_texts()


def test_the_table_is_sorted_by_its_headings(open_page, results):
    page = open_page()
    entropy = np.sort(results.numbers("entropy")[:, 0])
    head = page.locator("#object-table th[data-column='entropy (bit)']")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "entropy (bit)") == [f"{v:.2f}" for v in entropy[::-1][:25]]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, "entropy (bit)") == [f"{v:.2f}" for v in entropy[:25]]


def test_names_are_sorted_as_people_count(open_page):
    page = open_page()
    page.locator("#object-table th[data-column='object'] button").click()
    names = [name for name in column(page, "object") if name != HOSTILE]
    assert names[:4] == ["star 0", "star 1", "star 2", "star 3"]


def test_the_table_is_filtered_and_paged(open_page, results):
    page = open_page()
    P = results.numbers(*(f"p_{name}" for name in CLASSES))
    page.locator("#object-class").select_option(label="star & more")
    assert set(column(page, "class")) == {"star & more"}
    page.locator("#object-least").fill("0.6")
    said = page.locator("#objects-said")
    assert said.inner_text().endswith(f"of {(P[:, 2] >= 0.6).sum()} objects")
    page.locator("#object-class").select_option(label="all classes")
    page.locator("#object-least").fill("0")
    page.get_by_role("button", name="Next").click()
    assert said.inner_text() == "26 to 50 of 60 objects"
    page.locator("#object-search").fill("star 59")
    assert column(page, "object") == ["star 59"]
    page.locator("#object-search").fill("nobody")
    assert said.inner_text() == "No object passes the filters."


def check_panel(page, model, results, row):
    cells = cells_of(model, results)[0].take([row])
    X, limited, post = cells.values, cells.is_limited, model.network.posterior(cells)
    for j, name in enumerate(model.names):
        cell = page.locator(f"#panel-values tr[data-feature='{name}']")
        value = float(cell.locator("data").get_attribute("value"))
        assert value == pytest.approx(post.mean[0, j], abs=1e-6)
        seen = not np.isnan(X[0, j])
        assert ("measured" if seen else "filled") in cell.inner_text()
        assert cell.locator("path.limit").count() == limited[0, j]
    return post


def test_an_objects_panel_shows_measured_and_filled_values(open_page, model, results):
    page = open_page()
    row = int(np.flatnonzero(np.isnan(results.numbers("J")[:, 0]))[0])
    page.locator("#object-search").fill(f"star {row}")
    page.locator("#object-table tbody a").first.click()
    assert page.locator("#panel-title").inner_text() == f"star {row}"
    post = check_panel(page, model, results, row)
    words = page.locator("#panel-values tr[data-feature='J']").inner_text()
    assert "undetected: fainter than 16.25 mag; filled " in words
    value, spread = words.split("; filled ")[1].split(" ± ")
    j = model.names.index("J")
    assert float(value) == pytest.approx(post.mean[0, j], abs=0.051 * post.sd[0, j])
    assert float(spread) == pytest.approx(post.sd[0, j], rel=0.051)
    assert float(value) > 16.25
    top = max(results.numbers(*(f"p_{name}" for name in CLASSES))[row])
    assert f"{top:.3f}" in page.locator("#panel-classes").inner_text()
    page.get_by_role("button", name="Use its values under What if").click()
    settle(page)
    given = dict(zip(model.names, results.numbers(*model.names)[row], strict=True))
    check_shown(page, model, given, lower={"J": 16.25, "K": 15.75}, errors={"K": 0.1})


def test_a_limit_that_the_model_does_not_use_is_named(open_page, model, results_file, tmp_path):
    plain = replace(model, detections=())
    write_page(Report(plain, read_results(results_file, plain.features)), tmp_path / "plain.html")
    row = np.flatnonzero(np.isnan(read_results(results_file, plain.features).table.numbers("J")))[0]
    page = open_page(tmp_path / "plain.html", hash_=f"#object=star%20{row}")
    words = page.locator("#panel-values tr[data-feature='J']").inner_text()
    assert "filled: undetected, limit 16.25 not used by this model" in words
    assert page.locator("path.limit").count() == 0


@pytest.mark.parametrize("hash_", ["#object=%", "#object=%E0%A4%A", "#object=", "#object=nobody"])
def test_an_address_that_names_no_object_opens_nothing(open_page, hash_):
    page = open_page(hash_=hash_)
    assert not page.evaluate("() => document.getElementById('panel').open")


def test_a_panel_has_an_address(open_page, model, results):
    page = open_page(hash_="#object=star%203")
    assert page.locator("#panel-title").inner_text() == "star 3"
    check_panel(page, model, results, 3)


def test_the_best_of_each_class_is_bold(open_page):
    page = open_page()
    bold = page.locator("#per-class tbody tr").first.locator("td b").all_inner_texts()
    assert len(bold) >= 3
    assert float(bold[-1]) == pytest.approx(1.0)  # method b is always right


def test_a_mark_on_the_sky_opens_its_object(open_page):
    page = open_page()
    page.locator("#sky canvas").scroll_into_view_if_needed()
    box = page.locator("#sky canvas").bounding_box()
    xs, ys = range(60, int(box["width"]) - 20, 25), range(30, int(box["height"]) - 60, 25)
    for x, y in itertools.product(xs, ys):
        page.mouse.click(box["x"] + x, box["y"] + y)
        if page.evaluate("() => location.hash"):
            break
    page.wait_for_selector("#panel[open]")
    assert page.locator("#panel-title").inner_text() != ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_follow_the_system_and_the_button(open_page, scheme):
    page = open_page(color_scheme=scheme)
    brightness = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    is_dark = [max(page.evaluate(brightness)) < 60]
    page.locator("#theme").click()
    is_dark.append(max(page.evaluate(brightness)) < 60)
    assert is_dark == ([True, False] if scheme == "dark" else [False, True])


def test_nothing_is_wider_than_a_phone(open_page):
    page = open_page(viewport=PHONE)
    widths = "() => [document.documentElement.scrollWidth, innerWidth]"
    assert page.evaluate(widths) == [360, 360]
    page.locator("#object-table tbody a").first.click()
    page.wait_for_selector("#panel[open]")
    inside = "(d) => [d.scrollWidth <= d.clientWidth, d.getBoundingClientRect().width <= 360]"
    assert page.locator("#panel").evaluate(inside) == [True, True]


# The browser's own controls count as the body.
INSIDE = """() => document.activeElement === document.body
  || document.getElementById("panel").contains(document.activeElement)"""


def tab_to(page, condition, most=400):
    """Press Tab until the focused element meets a condition in JavaScript."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(
            f"() => {{ const e = document.activeElement; return Boolean({condition}); }}"
        ):
            return
    raise AssertionError(f"no element with {condition} can be reached by Tab")


def test_everything_can_be_done_by_the_keyboard(open_page, model):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the report"
    tab_to(page, "e.dataset.name === 'V'")
    before = page.locator(".node[data-name='V']").get_attribute("transform")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".node[data-name='V']").get_attribute("transform") != before
    tab_to(page, "e.type === 'range' && e.closest('[data-lever=V]')")
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert page.locator("data[data-feature='V']").inner_text() == "given"
    check_shown(page, model, {"V": shown(page, "V")[0]})
    tab_to(page, "e.closest('th') && e.closest('th').dataset.column === 'entropy (bit)'")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.closest('th').ariaSort") == "descending"
    tab_to(page, "e.closest('#object-table tbody')")
    name = page.evaluate("() => document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel[open]")
    assert page.locator("#panel-title").inner_text() == name
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(INSIDE)
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement.textContent") == name


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", PHONE)])
def test_axe_finds_no_fault_with_contrast_and_labels(open_page, results, scheme, viewport):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    give(page, "V", 17.0)
    give(page, "K", 15.5, "fainter than")
    row = int(np.flatnonzero(np.isnan(results.numbers("J")[:, 0]))[0])
    page.locator("#object-search").fill(f"star {row}")
    for step in ("page", "panel"):
        if step == "panel":
            page.locator("#object-table tbody a").first.click()
            page.wait_for_selector("#panel[open]")
        found = axe.run(page).response["violations"]
        told = [(fault["id"], [node["html"][:120] for node in fault["nodes"]]) for fault in found]
        assert told == [], step


def test_the_page_can_be_printed(open_page):
    page = open_page(color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator("header.top").is_visible()
    assert page.locator("#whatif .levers").is_visible()
    assert page.locator("#object-table thead").get_by_text("probability").is_visible()


# Moves a slider many times before the next picture; counts what that picture then costs.
FAST_SLIDER = """async () => {
  const slider = document.querySelector("[data-lever='feature_3'] input[type=range]");
  const { exp } = Math, { setAttribute } = Element.prototype, work = { curves: 0, exponentials: 0 };
  Math.exp = (x) => (work.exponentials++, exp(x));
  Element.prototype.setAttribute = function (name, value) {
    work.curves += name === "d" && this.closest(".lever") !== null;
    setAttribute.call(this, name, value);
  };
  for (let step = 0; step < 15; step++) {
    slider.value = 200 + 30 * step;
    slider.dispatchEvent(new Event("input"));
  }
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return work;
}"""


def test_a_fast_slider_costs_one_update_of_each_distribution_per_picture(open_page, tmp_path):
    model = random_model()
    write_page(Report(model), tmp_path / "large.html")
    work = open_page(tmp_path / "large.html").evaluate(FAST_SLIDER)
    others = len(model.names) - 1
    assert work["curves"] == others
    components, bin_edges = sum(len(fit.weights) for fit in model.network.fits), 81
    assert 0 < work["exponentials"] <= components * (1 + others * bin_edges)
