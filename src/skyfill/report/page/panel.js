/* An object's own panel: what was measured, what is filled, and what it may be. */

function openObject(i) {
  const dialog = document.getElementById("panel"),
    p = DATA.features.length;
  const cells = cellsOf(i),
    posterior = ENGINE.condition(cells);
  const close = make("button.quiet", { type: "button", onclick: () => dialog.close() }, "Close");
  const use = make(
    "button",
    {
      type: "button",
      onclick: () => {
        for (const [name, array] of Object.entries(cells)) EVIDENCE[name].set(array);
        update();
        dialog.close();
        document.getElementById("whatif").scrollIntoView();
      },
    },
    "Use its values under What if",
  );
  dialog.replaceChildren(
    ...[
      make("div.head", {}, make("h2", { id: "panel-title", tabindex: "-1" }, OBJECTS.ids[i]), close),
      objectFacts(i),
      classBars(i),
      nextBlock(i),
      make("h3", {}, "Measured and filled"),
      para(
        `${posterior.seen.length} of ${p} features were measured (filled circles); the others are filled (open circles with their 90 % interval). The gray line is the range that contains nearly all objects.`,
      ),
      posterior.limited.length
        ? para(
            "Where a feature was not detected, a bar marks the limit, its arrow points to where the value lies, and the shaded curve is the distribution of the value.",
          )
        : null,
      make(
        "div.scroll",
        { tabindex: "0", role: "region", "aria-label": "Values of the object" },
        valueTable(i, posterior),
      ),
      make("p", {}, use),
    ].filter(Boolean),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("panel-title").focus();
}

function objectFacts(i) {
  const facts = make("dl.facts"),
    add = (name, text) => facts.append(make("dt", {}, name), make("dd", {}, text));
  if (OBJECTS.ra && !Number.isNaN(OBJECTS.ra[i]))
    add("position", `RA ${OBJECTS.ra[i].toFixed(6)}°, Dec ${OBJECTS.dec[i].toFixed(6).replace("-", "−")}°`);
  if (OBJECTS.label && labelOf(i)) add(OBJECTS.label.name, labelOf(i));
  if (OBJECTS.facts.entropy)
    add("uncertainty of the class", `${fixed(OBJECTS.facts.entropy[i], 2)} bit (0 is certain)`);
  if (OBJECTS.facts.gap_share && OBJECTS.facts.gap_share[i] > 0)
    add("part due to gaps", `${percent(OBJECTS.facts.gap_share[i])} would vanish if the gaps were measured`);
  if (OBJECTS.outlier)
    add("like the training set", OBJECTS.outlier[i] ? "no: treat its class with care" : "yes");
  for (const extra of OBJECTS.extras)
    if (extra.values[i] !== null && extra.values[i] !== "")
      add(extra.name, extra.number ? show(extra.values[i]) : String(extra.values[i]));
  return facts;
}

function classBars(i) {
  if (!OBJECTS.predicted) return null;
  const c = OBJECTS.classes.length,
    order = OBJECTS.classes
      .map((name, k) => [OBJECTS.probabilities[i * c + k], name, k])
      .sort((a, b) => b[0] - a[0]),
    bars = make("div.bars", { id: "panel-classes" });
  for (const [probability, name, k] of order)
    bars.append(
      make("span", {}, name),
      make("i", { style: `width:${100 * probability}%;background:${classColor(k)}`, "aria-hidden": "true" }),
      make("span", {}, fixed(probability, 3)),
    );
  return make("div", {}, make("h3", {}, "Class probabilities"), bars);
}

function nextBlock(i) {
  const found = OBJECTS.next && OBJECTS.next[i];
  return found ? make("div", {}, make("h3", {}, "Next best measurement"), para(found)) : null;
}

function valueTable(i, posterior) {
  const body = make("tbody"),
    { values } = posterior.cells;
  DATA.features.forEach((feature, j) => {
    const seen = !Number.isNaN(values[j]),
      { mean, sd } = seen ? { mean: values[j], sd: 0 } : ENGINE.moments(posterior, j);
    const ends = seen ? null : [ENGINE.quantile(posterior, j, 0.05), ENGINE.quantile(posterior, j, 0.95)];
    body.append(
      make(
        "tr",
        { "data-feature": feature.name },
        make("th", { scope: "row", title: feature.description || "" }, dot(feature.group), feature.name),
        make("td.n", {}, make("data", { value: mean }, seen ? show(mean, 5) : showWith(mean, sd)[0])),
        make("td.n", {}, seen ? "" : `± ${showWith(mean, sd)[1]}`),
        make("td", {}, feature.unit || ""),
        make("td", { style: "width:36%" }, errorBar(posterior, j, mean, ends)),
        make("td.soft.origin", {}, originOf(i, j, posterior, plusMinus(mean, sd))),
      ),
    );
  });
  return make(
    "table",
    { id: "panel-values" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...[
          ["feature", ""],
          ["value", ".n"],
          ["sd", ".n"],
          ["unit", ""],
          ["among all objects", ""],
          ["", ""],
        ].map(([name, kind]) =>
          make(`th${kind}`, { scope: "col" }, name || make("span.hidden", {}, "origin")),
        ),
      ),
    ),
    body,
  );
}

/* Origin of a value: measured, or filled and why; with a limit, the limit and the value. */
function originOf(i, j, { cells, windows }, filled) {
  const cell = i * DATA.features.length + j,
    reason = DATA.reasons[OBJECTS.reasons[cell] - 1],
    word = reason === "unknown" ? "gap" : reason;
  if (reason === undefined) return "measured";
  if (windows.has(j)) return `${word}: ${describeLimits(cells, j)}; filled ${filled}`;
  const unused = OBJECTS.unused.get(cell);
  return `filled: ${word}${unused === undefined ? "" : `, limit ${show(unused)} not used by this model`}`;
}

/* A value among those of all objects: its interval if it is filled; above them its limits and the
   distribution within. */
function errorBar(posterior, j, mean, ends) {
  const feature = DATA.features[j],
    axis = axisOf(feature),
    box = { width: 240, height: posterior.windows.has(j) ? 34 : 22 },
    y = box.height - 11,
    at = (v) => 6 + 228 * Math.min(Math.max(axis.at(v), 0), 1);
  const svg = draw(
    "svg",
    { viewBox: `0 0 ${box.width} ${box.height}`, style: `height:${box.height}px`, "aria-hidden": "true" },
    draw("line", { x1: 6, x2: 234, y1: y, y2: y, stroke: "var(--line)", "stroke-width": 2 }),
  );
  if (posterior.windows.has(j)) svg.append(...drawLimits(posterior, j, axis, at, { ...box, y }));
  if (ends)
    svg.append(
      draw("line", {
        x1: at(ends[0]),
        x2: at(ends[1]),
        y1: y,
        y2: y,
        stroke: color(feature.group),
        "stroke-width": 4,
      }),
    );
  svg.append(
    draw("circle", {
      cx: at(mean),
      cy: y,
      r: 5,
      fill: ends ? "var(--paper)" : color(feature.group),
      stroke: color(feature.group),
      "stroke-width": 2,
    }),
  );
  return svg;
}

function drawLimits(posterior, j, axis, at, box) {
  const masses = distribution(posterior, j, ENGINE.scores(j, axis.edges(BINS))),
    shape = draw("path.within", {
      d: outline(masses, { width: 228, height: box.y - 1 }),
      transform: "translate(6 1)",
      fill: color(DATA.features[j].group),
      "fill-opacity": 0.3,
    });
  const marks = ["lower", "upper"]
    .filter((side) => !Number.isNaN(posterior.cells[side][j]))
    .map((side) =>
      draw("path.limit", {
        d: limitMark(at(posterior.cells[side][j]), side === "lower" ? 1 : -1, box, 6),
        fill: "none",
        stroke: "var(--ink)",
        "stroke-width": 1.6,
      }),
    );
  return [shape, ...marks];
}

/* The address names the object, so that a panel can be linked to. */
function followAddress() {
  const match = /^#object=(.+)$/.exec(location.hash);
  if (!match || !OBJECTS) return;
  let name;
  try {
    name = decodeURIComponent(match[1]);
  } catch {
    return; // somebody has typed an address that is none
  }
  const i = OBJECTS.ids.indexOf(name);
  if (i >= 0) openObject(i);
}

function watchAddress() {
  const dialog = document.getElementById("panel");
  let opener = null;
  addEventListener("hashchange", () => {
    if (!dialog.open) opener = document.activeElement;
    followAddress();
  });
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", location.pathname + location.search);
    opener?.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  followAddress();
}
