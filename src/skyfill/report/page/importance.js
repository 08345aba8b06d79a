/* Which features matter, for the class and for one another. */

function importanceSection() {
  const found = DATA.importance,
    place = section("importance", "Which features matter");
  const blocks = [];
  if (found.classes)
    blocks.push(
      importanceBars(
        found.classes,
        "For the class",
        "Bits by which an object's class probabilities change, on average, when the feature is taken away from objects that have it. A feature that others can stand in for changes little.",
        (v) => `${v.toFixed(3)} bit`,
      ),
    );
  blocks.push(
    importanceBars(
      found.features,
      "For the other features",
      "Share of the other features' variance, on average, that this feature alone explains (in normal scores).",
      (v) => percent(v),
    ),
  );
  place.append(make("div.columns", {}, ...blocks));
}

function importanceBars(values, title, caption, text) {
  const order = values.map((value, j) => [value, j]).sort((a, b) => b[0] - a[0]),
    most = Math.max(...values, 1e-12),
    bars = make("div.bars");
  for (const [value, j] of order)
    bars.append(
      make("span", {}, DATA.features[j].name),
      make("i", {
        style: `width:${(100 * value) / most}%;background:${color(DATA.features[j].group)}`,
        "aria-hidden": "true",
      }),
      make("span", {}, text(value)),
    );
  return make(
    "figure.card",
    {},
    make("h3", { style: "margin-top:0" }, title),
    bars,
    make("figcaption", {}, caption),
  );
}
