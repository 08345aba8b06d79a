/* Axes, bins and small charts. */

const BINS = 80;

/* The axis of a feature: place of a value between 0 and 1, and the value at a place. */
function axisOf(feature) {
  const { low, high, log } = feature.axis;
  const to = log ? Math.log : (v) => v,
    back = log ? Math.exp : (v) => v,
    start = to(low),
    reach = to(high) - start;
  return {
    low,
    high,
    log,
    at: (value) => (log && value <= 0 ? -1 : (to(value) - start) / reach),
    value: (place) => back(start + place * reach),
    edges: (n) => Array.from({ length: n + 1 }, (_, i) => back(start + (reach * i) / n)),
  };
}

/* Some round numbers inside an interval. */
function ticks(low, high, wanted = 5, log = false) {
  if (log) {
    const first = Math.ceil(Math.log10(low)),
      last = Math.floor(Math.log10(high)),
      step = Math.max(1, Math.ceil((last - first) / wanted));
    const found = [];
    for (let k = first; k <= last; k += step) found.push(10 ** k);
    return found;
  }
  const rough = (high - low) / wanted,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    found.push(Number((k * step).toPrecision(12)));
  return found;
}

/* Ranks are known at some knots only: bins are smoothed a little, so that knots do not show. */
function smooth(masses) {
  const kernel = [1, 4, 6, 4, 1],
    n = masses.length;
  const once = (list) =>
    list.map(
      (_, i) => kernel.reduce((sum, w, h) => sum + w * list[Math.min(Math.max(i + h - 2, 0), n - 1)], 0) / 16,
    );
  return once(once(masses));
}

/* Distribution of a gap over bins, smoothed; the edge at a limit stays sharp. */
function distribution(posterior, j, scores) {
  const masses = ENGINE.masses(posterior, j, scores),
    first = masses.findIndex((mass) => mass > 0);
  if (!posterior.windows.has(j) || first < 0) return smooth(masses);
  const end = masses.length - [...masses].reverse().findIndex((mass) => mass > 0);
  const within = smooth(masses.slice(first, end));
  return masses.map((_, i) => (i >= first && i < end ? within[i - first] : 0));
}

/* A limit at x in a box: a bar, and an arrow to the side on which the value lies (1 or -1). */
function limitMark(x, side, { width, height }, y = height / 2) {
  const tip = Math.min(Math.max(x + 16 * side, 1), width - 1),
    back = tip - 5 * side;
  return `M${x},1V${height - 1}M${x},${y}H${tip}M${back},${y - 4}L${tip},${y}L${back},${y + 4}`;
}

/* Outline of a distribution over bins of even width, as a path in a box. */
function outline(masses, { width, height, top }, closed = true) {
  const most = top || Math.max(...masses, 1e-12),
    step = width / masses.length;
  const points = masses.map(
    (m, i) => `${((i + 0.5) * step).toFixed(1)},${(height - (height * m) / most).toFixed(1)}`,
  );
  return closed ? `M0,${height}L${points.join("L")}L${width},${height}Z` : `M${points.join("L")}`;
}

function tickText(value) {
  return show(value, 3)
    .replace(/\.0+$/, "")
    .replace(/(\.\d*?)0+$/, "$1");
}

/* A frame with two axes; `scales` hold at(value) in 0..1. Returns the svg, the inner group and places. */
function frame(width, height, x, y, label) {
  const left = 48,
    right = 12,
    top = 10,
    bottom = 40,
    w = width - left - right,
    h = height - top - bottom;
  const svg = draw("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
  });
  const px = (value) => left + w * x.at(value),
    py = (value) => top + h * (1 - y.at(value));
  for (const value of x.ticks)
    svg.append(
      draw(
        "g.tick",
        {},
        draw("line.axis", { x1: px(value), x2: px(value), y1: top, y2: top + h }),
        draw(
          "text",
          { x: px(value), y: top + h + 16, "text-anchor": "middle" },
          x.text ? x.text(value) : tickText(value),
        ),
      ),
    );
  for (const value of y.ticks)
    svg.append(
      draw(
        "g.tick",
        {},
        draw("line.axis", { x1: left, x2: left + w, y1: py(value), y2: py(value) }),
        draw(
          "text",
          { x: left - 6, y: py(value) + 4, "text-anchor": "end" },
          y.text ? y.text(value) : tickText(value),
        ),
      ),
    );
  svg.append(draw("text.label", { x: left + w / 2, y: height - 6, "text-anchor": "middle" }, x.label));
  svg.append(
    draw(
      "text.label",
      { transform: `translate(12 ${top + h / 2}) rotate(-90)`, "text-anchor": "middle" },
      y.label,
    ),
  );
  return { svg, px, py, box: { left, top, w, h } };
}

function linear(low, high, label, wanted = 5, text = null) {
  return { at: (v) => (v - low) / (high - low || 1), ticks: ticks(low, high, wanted), label, text };
}

/* Marks that differ in shape as well as in color. */
const SHAPES = [
  (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
  (x, y, r) => `M${x},${y - 1.2 * r}L${x + 1.2 * r},${y + r}H${x - 1.2 * r}Z`,
  (x, y, r) => `M${x},${y + 1.2 * r}L${x + 1.2 * r},${y - r}H${x - 1.2 * r}Z`,
  (x, y, r) =>
    `M${x - r},${y - r / 3}h${(2 * r) / 3}v${(-2 * r) / 3}h${(2 * r) / 3}v${(2 * r) / 3}h${(2 * r) / 3}v${(2 * r) / 3}h${(-2 * r) / 3}v${(2 * r) / 3}h${(-2 * r) / 3}v${(-2 * r) / 3}h${(-2 * r) / 3}Z`,
  (x, y, r) => {
    const a = 0.4 * r,
      b = 1.2 * r;
    return `M${x - b},${y - b + a}L${x - b + a},${y - b}L${x},${y - a}L${x + b - a},${y - b}L${x + b},${y - b + a}L${x + a},${y}L${x + b},${y + b - a}L${x + b - a},${y + b}L${x},${y + a}L${x - b + a},${y + b}L${x - b},${y + b - a}L${x - a},${y}Z`;
  },
  (x, y, r) =>
    `M${Array.from({ length: 10 }, (_, k) => {
      const s = (k % 2 ? 0.55 : 1.35) * r,
        t = (Math.PI * k) / 5;
      return `${x + s * Math.sin(t)},${y - s * Math.cos(t)}`;
    }).join("L")}Z`,
];

function markPath(k, x, y, r) {
  return SHAPES[k % SHAPES.length](x, y, r);
}

function legend(names, style = "mark") {
  return make(
    "ul.legend",
    {},
    ...names.map((name, k) =>
      make(
        "li",
        {},
        draw(
          "svg",
          { width: 14, height: 12, "aria-hidden": "true" },
          draw("path", { d: markPath(style === "mark" ? k : 1, 7, 6, 4.2), fill: color(k) }),
        ),
        name,
      ),
    ),
  );
}

/* Lines with error bars: series are {name, points: [[x, y, error], ...]}. */
function lineChart(width, series, { x, y, label, diagonal }) {
  const { svg, px, py } = frame(width, Math.min(300, Math.max(220, width * 0.62)), x, y, label);
  if (diagonal)
    svg.append(
      draw("line", {
        x1: px(0),
        y1: py(0),
        x2: px(1),
        y2: py(1),
        stroke: "var(--soft)",
        "stroke-dasharray": "4 4",
      }),
    );
  series.forEach(({ points }, k) => {
    svg.append(
      draw("path", {
        d: `M${points.map(([a, b]) => `${px(a)},${py(b)}`).join("L")}`,
        fill: "none",
        stroke: color(k),
        "stroke-width": 1.8,
      }),
    );
    for (const [a, b, error] of points) {
      if (error)
        svg.append(
          draw("line", {
            x1: px(a),
            x2: px(a),
            y1: py(b - error),
            y2: py(b + error),
            stroke: color(k),
            "stroke-width": 1.4,
          }),
        );
      svg.append(draw("path", { d: markPath(k, px(a), py(b), 4), fill: color(k) }));
    }
  });
  return svg;
}
