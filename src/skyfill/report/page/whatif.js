/* What if: values given for some features, and the distributions of all others. */

const EVIDENCE = emptyCells(DATA.features.length);
const LEVERS = [];
const WATCHERS = [];
const BOX = { width: 300, height: 40 };
let useHints = true;

function whatifSection() {
  const place = section("whatif", "What if");
  place.append(
    para(
      "Suppose an object has these values: what would its other features be? Move a slider or type a number, and the page recomputes every other distribution from the model. The gray outline is the distribution of all objects; the colored one is that of this object.",
    ),
    para(
      "If a feature was not detected, only a limit is known. Choose “fainter than”, “larger than” or the opposite instead of “is”: the number is then the limit, and the arrow points to where the value lies.",
    ),
  );
  const story = make("p", { "aria-live": "polite", id: "whatif-story" });
  const clear = make(
    "button.quiet",
    {
      type: "button",
      id: "whatif-clear",
      onclick: () => {
        for (const lever of LEVERS) lever.clearGiven();
      },
    },
    "Clear all",
  );
  const rows = make(
    "div.levers.card",
    {},
    make(
      "div.lever.head",
      { "aria-hidden": "true" },
      make("span", {}, "feature"),
      make("span", {}, "distribution"),
      make("span", {}, "set a value or a limit"),
      make("span", {}, ""),
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
        "treat features without a value or limit as gaps, which are evidence (as when the model fills a catalogue)",
      )
    : null;
  place.append(make("div.controls", {}, ...[clear, label].filter(Boolean)), story, rows);
  WATCHERS.push((posterior) => {
    story.textContent = describeEvidence(posterior);
    clear.disabled = !posterior.seen.length && !posterior.limited.length;
  });
  update();
}

/* Give a number for a feature: kind is "values", "lower" or "upper". */
function give(j, kind, number) {
  for (const array of Object.values(EVIDENCE)) array[j] = NaN;
  if (Number.isFinite(number)) EVIDENCE[kind][j] = number;
  update();
}

/* In which way a feature is given; undefined if it is not. */
function kindOf(cells, j) {
  return ["values", "lower", "upper"].find((kind) => !Number.isNaN(cells[kind][j]));
}

let waiting = false;
/* At most one update per frame, however fast a slider moves. */
function update() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const posterior = ENGINE.condition(copyCells(EVIDENCE), useHints);
    for (const lever of LEVERS) lever.show(posterior);
    for (const watcher of WATCHERS) watcher(posterior);
  });
}

function describeEvidence(posterior) {
  const { cells, seen, limited, lost } = posterior;
  if (!seen.length && !limited.length)
    return ENGINE.hints && useHints
      ? "No values are given: these are the distributions of objects without any measurement. To this model a gap is evidence: faint objects, for example, have more gaps."
      : "No values are given: these are the distributions of all objects together.";
  const name = (j) => DATA.features[j].name,
    given = [
      ...seen.map((j) => `${name(j)} = ${show(cells.values[j])}`),
      ...limited.map((j) => `${name(j)} ${describeLimits(cells, j)}`),
    ].join(", "),
    others = lost.filter((j) => !limited.includes(j));
  if (!others.length) return `Given ${given}: no other feature is left to fill.`;
  const kept = others
    .filter((j) => LEVERS[j].before.sd > 0)
    .map((j) => [j, LEVERS[j].posterior.sd / LEVERS[j].before.sd])
    .filter(([, share]) => Number.isFinite(share));
  const mean = Math.exp(
    kept.reduce((sum, [, share]) => sum + Math.log(Math.max(share, 1e-6)), 0) / (kept.length || 1),
  );
  const [best, share] = kept.reduce((a, b) => (b[1] < a[1] ? b : a), [others[0], 1]);
  return `Given ${given}: the spread of the other features is ${percent(mean)} of the usual value on average; ${name(best)} is best constrained, at ${percent(share)}.`;
}

class Lever {
  constructor(feature, j) {
    Object.assign(this, {
      feature,
      j,
      axis: axisOf(feature),
      scores: ENGINE.scores(j, axisOf(feature).edges(BINS)),
    });
    this.prior = distribution(ENGINE.nothing, j, this.scores);
    this.before = ENGINE.moments(ENGINE.nothing, j);
    this.posterior = this.before;
    const unit = feature.unit ? ` in ${feature.unit}` : "",
      words = limitWords(feature);
    const kinds = { values: "is", ...words };
    this.kind = make(
      "select",
      {
        "aria-label": `How ${feature.name} is given`,
        "data-kind": feature.name,
        onchange: () => {
          const given = kindOf(EVIDENCE, j);
          if (given) give(j, this.kind.value, EVIDENCE[given][j]);
        },
      },
      ...Object.entries(kinds).map(([value, text]) => make("option", { value }, text)),
    );
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: 1000,
      step: 1,
      "aria-label": `Value of ${feature.name}${unit}`,
      oninput: () => give(j, this.kind.value, this.round(this.axis.value(this.slider.value / 1000))),
    });
    this.number = make("input", {
      type: "number",
      step: "any",
      "aria-label": `Number for ${feature.name}${unit}`,
      "data-number": feature.name,
      onchange: () =>
        give(j, this.kind.value, this.number.value === "" ? NaN : Number(this.number.value)),
    });
    this.clear = make(
      "button.quiet",
      {
        type: "button",
        "aria-label": `Clear ${feature.name}`,
        onclick: () => {
          this.clearGiven();
          this.slider.focus();
        },
      },
      "×",
    );
    this.ghost = draw("path", {
      d: outline(this.prior, BOX),
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
    this.arrow = draw("path", {
      fill: "none",
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
          this.arrow,
        ),
      ),
      make("span.slide", {}, this.slider),
      make("span.kind", {}, this.kind),
      make("span.type", {}, this.number),
      this.output,
      make("span.clear", {}, this.clear),
    );
  }

  /* Slider steps give values with no more digits than are meaningful. */
  round(value) {
    return Number(value.toPrecision(5));
  }

  clearGiven() {
    this.kind.value = "values";
    give(this.j, "values", NaN);
  }

  show(posterior) {
    const { cells } = posterior,
      kind = kindOf(cells, this.j),
      isValue = kind === "values",
      number = kind ? cells[kind][this.j] : NaN;
    this.posterior = isValue ? { mean: number, sd: 0 } : ENGINE.moments(posterior, this.j);
    const { mean, sd } = this.posterior,
      place = Math.min(Math.max(this.axis.at(kind ? number : mean), 0), 1);
    this.row.classList.toggle("given", Boolean(kind));
    this.output.value = String(mean);
    this.output.dataset.sd = String(sd);
    this.output.textContent = isValue ? "given" : plusMinus(mean, sd);
    if (kind) this.kind.value = kind;
    this.slider.value = String(Math.round(1000 * place));
    this.slider.setAttribute("aria-valuetext", this.describe(cells, kind));
    if (document.activeElement !== this.number || !kind) this.number.value = kind ? String(number) : "";
    this.number.placeholder = kind ? "" : showWith(mean, sd)[0].replace("−", "-");
    this.clear.style.visibility = kind ? "visible" : "hidden";
    this.line.setAttribute("visibility", isValue ? "visible" : "hidden");
    this.arrow.setAttribute("visibility", kind && !isValue ? "visible" : "hidden");
    this.shape.setAttribute("visibility", isValue ? "hidden" : "visible");
    if (isValue) for (const end of ["x1", "x2"]) this.line.setAttribute(end, BOX.width * place);
    else this.shape.setAttribute("d", outline(distribution(posterior, this.j, this.scores), BOX));
    if (kind && !isValue)
      this.arrow.setAttribute("d", limitMark(BOX.width * place, kind === "lower" ? 1 : -1, BOX));
  }

  /* The state of the slider in words. */
  describe(cells, kind) {
    const { mean, sd } = this.posterior;
    if (kind === "values") return `given ${show(mean)}`;
    const given = kind ? describeLimits(cells, this.j) : "not given";
    return `${given}; expected ${showWith(mean, sd).join(" plus or minus ")}`;
  }
}
