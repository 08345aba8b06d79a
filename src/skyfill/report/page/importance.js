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
        "Average change in an object's class probabilities, in bits, when the feature is removed from objects that have it. A feature that others can replace changes little.",
        (v) => `${v.toFixed(3)} bit`,
      ),
    );
  blocks.push(
    importanceBars(
      found.features,
      "For the other features",
      "Average fraction of the other features' variance that this feature explains by itself (in normal scores).",
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
