/* What if: values given for some features, and the distributions of all others. */

const EVIDENCE = new Float64Array(DATA.features.length).fill(NaN);
const LEVERS = [];
const WATCHERS = [];
let useHints = true;

function whatifSection() {
  const place = section("whatif", "What if");
  place.append(
    para(
      "Suppose an object has these values: what would its other features be? Move a slider or type a number, and the page recomputes every other distribution from the model. The gray outline is the distribution of all objects; the colored one is that of this object.",
    ),
  );
  const story = make("p", { "aria-live": "polite", id: "whatif-story" });
  const clear = make(
    "button.quiet",
    {
      type: "button",
      id: "whatif-clear",
      onclick: () => {
        EVIDENCE.fill(NaN);
        update();
      },
    },
    "Clear all values",
  );
  const rows = make(
    "div.levers.card",
    {},
    make(
      "div.lever.head",
      { "aria-hidden": "true" },
      make("span", {}, "feature"),
      make("span", {}, "distribution"),
      make("span", {}, "set a value"),
      make("span", {}, ""),
      make("span.posterior", {}, "mean ± sd"),
      make("span", {}, ""),
    ),
  );
  DATA.features.forEach((feature, j) => {
    LEVERS.push(new Lever(feature, j));
    rows.append(LEVERS[j].row);
  });
  const hints = make("input", {
    type: "checkbox",
    checked: true,
    id: "whatif-hints",
    onchange: () => {
      useHints = hints.checked;
      update();
    },
  });
  const label = ENGINE.hints
    ? make(
        "label.check",
        {},
        hints,
        "treat features without a value as gaps, which are evidence (as when the model fills a catalogue)",
      )
    : null;
  place.append(make("div.controls", {}, ...[clear, label].filter(Boolean)), story, rows);
  WATCHERS.push((posterior) => {
    story.textContent = describeEvidence(posterior);
    clear.disabled = !posterior.seen.length;
  });
  update();
}

function give(j, value) {
  EVIDENCE[j] = Number.isFinite(value) ? value : NaN;
  update();
}

let waiting = false;
/* At most one update per frame, however fast a slider moves. */
function update() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const posterior = ENGINE.condition(EVIDENCE.slice(), useHints);
    for (const lever of LEVERS) lever.show(posterior);
    for (const watcher of WATCHERS) watcher(posterior);
  });
}

function describeEvidence(posterior) {
  if (!posterior.seen.length)
    return ENGINE.hints && useHints
      ? "No values are given: these are the distributions of objects without any measurement. To this model a gap is evidence: faint objects, for example, have more gaps."
      : "No values are given: these are the distributions of all objects together.";
  const given = posterior.seen.map((j) => `${DATA.features[j].name} = ${show(EVIDENCE[j])}`).join(", ");
  if (!posterior.lost.length) return `Given ${given}: nothing is left to fill.`;
  const kept = posterior.lost
    .map((j) => [j, LEVERS[j].posterior.sd / (LEVERS[j].before.sd || 1)])
    .filter(([, share]) => Number.isFinite(share));
  const mean = Math.exp(
    kept.reduce((sum, [, share]) => sum + Math.log(Math.max(share, 1e-6)), 0) / (kept.length || 1),
  );
  const [best, share] = kept.reduce((a, b) => (b[1] < a[1] ? b : a), [posterior.lost[0], 1]);
  return `Given ${given}: the spread of the other features is ${percent(mean)} of the usual value on average; ${DATA.features[best].name} is best constrained, at ${percent(share)}.`;
}

class Lever {
  constructor(feature, j) {
    Object.assign(this, {
      feature,
      j,
      axis: axisOf(feature),
      scores: ENGINE.scores(j, axisOf(feature).edges(BINS)),
    });
    this.prior = smooth(ENGINE.masses(ENGINE.nothing, j, this.scores));
    this.before = ENGINE.moments(ENGINE.nothing, j);
    this.posterior = this.before;
    const unit = feature.unit ? ` in ${feature.unit}` : "",
      box = { width: 300, height: 40 };
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: 1000,
      step: 1,
      "aria-label": `Value of ${feature.name}${unit}`,
      oninput: () => give(j, this.round(this.axis.value(this.slider.value / 1000))),
    });
    this.number = make("input", {
      type: "number",
      step: "any",
      "aria-label": `Number for ${feature.name}${unit}`,
      "data-number": feature.name,
      onchange: () => give(j, this.number.value === "" ? NaN : Number(this.number.value)),
    });
    this.clear = make(
      "button.quiet",
      {
        type: "button",
        "aria-label": `Clear ${feature.name}`,
        onclick: () => {
          give(j, NaN);
          this.slider.focus();
        },
      },
      "×",
    );
    this.ghost = draw("path", {
      d: outline(this.prior, box),
      fill: "var(--faint)",
      stroke: "var(--soft)",
      "stroke-width": 1,
      "vector-effect": "non-scaling-stroke",
    });
    this.shape = draw("path", {
      fill: color(feature.group),
      "fill-opacity": 0.45,
      stroke: color(feature.group),
      "stroke-width": 1.6,
      "vector-effect": "non-scaling-stroke",
    });
    this.line = draw("line", {
      y1: 0,
      y2: 40,
      stroke: "var(--ink)",
      "stroke-width": 2,
      "vector-effect": "non-scaling-stroke",
    });
    this.output = make("data.posterior", { "data-feature": feature.name });
    this.row = make(
      "div.lever",
      { "data-lever": feature.name },
      make(
        "span.name",
        { title: feature.description || "" },
        feature.name,
        make("small", {}, unitOf(feature)),
      ),
      make(
        "span.plot",
        { "aria-hidden": "true" },
        draw(
          "svg",
          { viewBox: "0 0 300 42", preserveAspectRatio: "none" },
          this.ghost,
          this.shape,
          this.line,
        ),
      ),
      make("span.slide", {}, this.slider),
      make("span.type", {}, this.number),
      this.output,
      make("span.clear", {}, this.clear),
    );
  }

  /* Slider steps give values with no more digits than are meaningful. */
  round(value) {
    return Number(value.toPrecision(5));
  }

  show(posterior) {
    const given = !Number.isNaN(posterior.row[this.j]);
    this.posterior = given ? { mean: posterior.row[this.j], sd: 0 } : ENGINE.moments(posterior, this.j);
    const { mean, sd } = this.posterior,
      place = Math.min(Math.max(this.axis.at(mean), 0), 1);
    this.row.classList.toggle("given", given);
    this.output.value = String(mean);
    this.output.dataset.sd = String(sd);
    this.output.textContent = given ? "given" : plusMinus(mean, sd);
    this.slider.value = String(Math.round(1000 * place));
    this.slider.setAttribute(
      "aria-valuetext",
      given ? `given ${show(mean)}` : `not given; expected ${showWith(mean, sd).join(" plus or minus ")}`,
    );
    if (document.activeElement !== this.number || !given) this.number.value = given ? String(mean) : "";
    this.number.placeholder = given ? "" : showWith(mean, sd)[0].replace("−", "-");
    this.clear.style.visibility = given ? "visible" : "hidden";
    this.line.setAttribute("visibility", given ? "visible" : "hidden");
    this.shape.setAttribute("visibility", given ? "hidden" : "visible");
    if (given) for (const end of ["x1", "x2"]) this.line.setAttribute(end, 300 * place);
    else
      this.shape.setAttribute(
        "d",
        outline(smooth(ENGINE.masses(posterior, this.j, this.scores)), { width: 300, height: 40 }),
      );
  }
}
