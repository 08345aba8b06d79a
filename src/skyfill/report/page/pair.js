/* Two features: joint distribution as contours, marginals dashed, the conditional solid. */

const CELLS = 64;
const CONTOURS = [0.2, 0.4, 0.6, 0.8, 0.95];

function pairSection() {
  const place = section("pair", "Two features");
  const names = DATA.features.map((feature, j) => [j, feature.name]);
  const [x, y] = DATA.pair,
    state = { x, y, at: ENGINE.moments(ENGINE.nothing, x).mean, useEvidence: false };
  place.append(
    para(
      "Why not simply fill a gap with the typical value? Because features depend on one another. The contours contain 20, 40, 60, 80 and 95 % of all objects. The dashed curves are the distributions of each feature alone; the solid curve is the distribution of the second feature when the first has the marked value. Gaps are filled from the solid curve.",
    ),
  );
  const figure = make("div"),
    story = make("p", { "aria-live": "polite", id: "pair-story" });
  const slider = make("input", {
    type: "range",
    min: 0,
    max: 1000,
    id: "pair-at",
    "aria-label": "Value of the first feature",
    oninput: () => {
      state.at = axisOf(DATA.features[state.x]).value(slider.value / 1000);
      again();
    },
  });
  const turn = (key) => (value) => {
    state[key] = Number(value);
    if (key === "x") state.at = ENGINE.moments(ENGINE.nothing, state.x).mean;
    again();
  };
  const first = chooser("first (known)", names, turn("x"), x),
    second = chooser("second (to fill)", names, turn("y"), y);
  first.select.id = "pair-x";
  second.select.id = "pair-y";
  const check = make("input", {
    type: "checkbox",
    onchange: () => {
      state.useEvidence = check.checked;
      again();
    },
  });
  const view = responsive(figure, (width) => pairFigure(width, state, story));
  const again = () => {
    slider.value = String(1000 * axisOf(DATA.features[state.x]).at(state.at));
    slider.setAttribute("aria-valuetext", show(state.at));
    view.redraw();
  };
  const controls = make(
    "div.controls",
    {},
    first.label,
    second.label,
    make("label", { style: "flex:1 1 100%" }, "value of the first", slider),
    make("label.check", {}, check, "also use what is given under What if"),
  );
  place.append(make("div.beside", {}, make("div.card", {}, figure), make("div", {}, controls, story)));
  WATCHERS.push(() => state.useEvidence && view.redraw());
  REPAINT.push(() => view.redraw());
  again();
}

/* Evidence for the figure: what is given elsewhere, except for these two features. */
function pairEvidence(state, at = NaN) {
  const cells = state.useEvidence ? copyCells(EVIDENCE) : emptyCells(ENGINE.p);
  for (const array of Object.values(cells)) array[state.x] = array[state.y] = NaN;
  cells.values[state.x] = at;
  return ENGINE.condition(cells, false);
}

function pairFigure(width, state, story) {
  const fx = DATA.features[state.x],
    fy = DATA.features[state.y],
    ax = axisOf(fx),
    ay = axisOf(fy);
  if (state.x === state.y) {
    story.textContent = "Choose two different features.";
    return draw("svg", { width: 1, height: 1 });
  }
  const size = Math.min(width, 760),
    strip = Math.max(64, size * 0.16),
    left = 52,
    bottom = 42;
  const w = size - left - strip - 8,
    h = Math.min(w, 460),
    top = strip * 0.8 + 6;
  const before = pairEvidence(state),
    given = pairEvidence(state, state.at);
  const posterior = ENGINE.moments(given, state.y),
    alone = ENGINE.moments(before, state.y);
  const svg = draw("svg", {
    width: size,
    height: top + h + bottom,
    role: "img",
    "aria-label": `Joint distribution of ${fx.name} and ${fy.name}`,
  });
  const px = (v) => left + w * ax.at(v),
    py = (v) => top + h * (1 - ay.at(v));
  svg.append(...pairAxes({ ax, ay, px, py, fx, fy, left, top, w, h }));
  svg.append(...pairContours(before, state, { ax, ay, left, top, w, h }));
  const zy = ENGINE.scores(state.y, ay.edges(BINS));
  const mx = smooth(ENGINE.masses(before, state.x, ENGINE.scores(state.x, ax.edges(BINS)))),
    my = smooth(ENGINE.masses(before, state.y, zy)),
    cy = smooth(ENGINE.masses(given, state.y, zy));
  const dashed = { fill: "none", stroke: "var(--soft)", "stroke-width": 1.6, "stroke-dasharray": "5 4" };
  svg.append(
    draw("path", {
      ...dashed,
      d: outline(mx, { width: w, height: strip * 0.7 }, false),
      transform: `translate(${left} ${top - 6 - strip * 0.7})`,
    }),
  );
  const side = `translate(${left + w + 6} ${top + h}) rotate(-90) scale(1 -1) translate(0 ${-strip})`;
  const most = Math.max(...my, ...cy);
  svg.append(
    draw(
      "g",
      { transform: side },
      draw("path", {
        d: outline(cy, { width: h, height: strip, top: most }),
        fill: color(fy.group),
        "fill-opacity": 0.3,
        stroke: color(fy.group),
        "stroke-width": 1.8,
      }),
      draw("path", { ...dashed, d: outline(my, { width: h, height: strip, top: most }, false) }),
    ),
  );
  svg.append(
    draw("line", {
      x1: px(state.at),
      x2: px(state.at),
      y1: top - strip * 0.7,
      y2: top + h,
      stroke: "var(--mark)",
      "stroke-width": 2,
    }),
  );
  story.replaceChildren(
    `Without knowing ${fx.name}, ${fy.name} is ${plusMinus(alone.mean, alone.sd)}${unitOf(fy)}. With ${fx.name} = ${show(state.at)}${unitOf(fx)} it is `,
    make("data", { value: posterior.mean, id: "pair-mean" }, `${plusMinus(posterior.mean, posterior.sd)}${unitOf(fy)}`),
    ".",
  );
  return svg;
}

function pairAxes({ ax, ay, px, py, fx, fy, left, top, w, h }) {
  const marks = ticks(ax.low, ax.high, 5, ax.log).map((v) =>
    draw(
      "g.tick",
      {},
      draw("line.axis", { x1: px(v), x2: px(v), y1: top, y2: top + h }),
      draw("text", { x: px(v), y: top + h + 16, "text-anchor": "middle" }, tickText(v)),
    ),
  );
  marks.push(
    ...ticks(ay.low, ay.high, 5, ay.log).map((v) =>
      draw(
        "g.tick",
        {},
        draw("line.axis", { x1: left, x2: left + w, y1: py(v), y2: py(v) }),
        draw("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, tickText(v)),
      ),
    ),
  );
  marks.push(
    draw(
      "text.label",
      { x: left + w / 2, y: top + h + 36, "text-anchor": "middle" },
      `${fx.name}${fx.unit ? ` (${fx.unit})` : ""}`,
    ),
  );
  marks.push(
    draw(
      "text.label",
      { transform: `translate(13 ${top + h / 2}) rotate(-90)`, "text-anchor": "middle" },
      `${fy.name}${fy.unit ? ` (${fy.unit})` : ""}`,
    ),
  );
  return marks;
}

function pairContours(posterior, state, { ax, ay, left, top, w, h }) {
  const masses = blur(
    ENGINE.jointMasses(posterior, [state.x, state.y], [ax.edges(CELLS), ay.edges(CELLS)]),
    CELLS,
  );
  const sorted = Float64Array.from(masses).sort().reverse(),
    total = sorted.reduce((a, b) => a + b, 0) || 1;
  const levels = CONTOURS.map((share) => {
    let sum = 0;
    for (const mass of sorted) {
      sum += mass;
      if (sum >= share * total) return mass;
    }
    return 0;
  });
  const heat = draw("image", {
    href: heatImage(masses, CELLS),
    x: left,
    y: top,
    width: w,
    height: h,
    preserveAspectRatio: "none",
  });
  return [
    heat,
    ...levels.map((level, k) =>
      draw("path", {
        d: isoline(masses, CELLS, level),
        transform: `translate(${left} ${top}) scale(${w / CELLS} ${h / CELLS})`,
        fill: "none",
        stroke: "var(--accent)",
        "stroke-opacity": (1 - 0.16 * k).toFixed(2),
        "stroke-width": 1.5,
        "vector-effect": "non-scaling-stroke",
      }),
    ),
  ];
}

/* The density as a picture, one pixel per cell, which the browser smooths. */
function heatImage(masses, n) {
  const canvas = make("canvas", { width: n, height: n }),
    pen = canvas.getContext("2d"),
    image = pen.createImageData(n, n),
    most = Math.max(...masses) || 1;
  const [r, g, b] = getComputedStyle(document.documentElement)
    .getPropertyValue("--shade")
    .split(",")
    .map(Number);
  for (let x = 0; x < n; x++)
    for (let y = 0; y < n; y++)
      image.data.set([r, g, b, 110 * Math.sqrt(masses[x * n + y] / most)], 4 * ((n - 1 - y) * n + x));
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function blur(masses, n) {
  const rows = Array.from({ length: n }, (_, a) => smooth([...masses.subarray(a * n, (a + 1) * n)]));
  const out = new Float64Array(n * n);
  for (let b = 0; b < n; b++)
    smooth(rows.map((row) => row[b])).forEach((value, a) => {
      out[a * n + b] = value;
    });
  return out;
}

/* Marching squares: pieces of the line where the values cross a level; y grows upwards. */
function isoline(masses, n, level) {
  const get = (a, b) => (a < 0 || b < 0 || a >= n || b >= n ? 0 : masses[a * n + b]),
    pieces = [];
  const cross = (a, b, c, d) => {
    const u = get(a, b),
      v = get(c, d),
      t = (level - u) / (v - u);
    return `${(a + 0.5 + t * (c - a)).toFixed(2)},${(n - b - 0.5 - t * (d - b)).toFixed(2)}`;
  };
  for (let a = -1; a < n; a++)
    for (let b = -1; b < n; b++) {
      const up = [
          get(a, b) >= level,
          get(a + 1, b) >= level,
          get(a + 1, b + 1) >= level,
          get(a, b + 1) >= level,
        ],
        ends = [];
      if (up[0] !== up[1]) ends.push(cross(a, b, a + 1, b));
      if (up[1] !== up[2]) ends.push(cross(a + 1, b, a + 1, b + 1));
      if (up[2] !== up[3]) ends.push(cross(a, b + 1, a + 1, b + 1));
      if (up[3] !== up[0]) ends.push(cross(a, b, a, b + 1));
      for (let e = 0; e + 1 < ends.length; e += 2) pieces.push(`M${ends[e]}L${ends[e + 1]}`);
    }
  return pieces.join("");
}
