/* How good the classes are: confusion, scores by class, reliability, with and without a survey. */

/* How the objects were kept apart from what classified them, where training itself did so. */
const APART = {
  folds:
    "Every labelled object of the training table was classified by trees, and calibrated by a map, that were made from the other folds.",
  bags: "Every labelled object of the training table was classified by the trees that did not learn from it (out of bag). Only a third of them vote for each, so that the log loss is too high.",
};

function classesSection() {
  const found = DATA.classification,
    place = section("classes", "Classes");
  if (!found) {
    place.append(
      note(
        `Not measured${DATA.unclassified ? `: ${DATA.unclassified}` : " yet"}. Cross-validate the classes of a labelled catalogue with `,
        code("skyfill evaluate CATALOG --label class --json > classes.json"),
        " and add ",
        code("--evaluation classes.json"),
        " to see it here.",
      ),
    );
    return;
  }
  const methods = found.methods,
    best = methods.reduce((a, b) => (b.log_loss.value < a.log_loss.value ? b : a));
  place.append(
    para(
      (APART[found.apart] || "Every labelled object was classified by a model that had not seen it.") +
        " Precision is the fraction of the objects assigned to a class that belong to it. Recall is the fraction of the objects of a class that were found. F is their harmonic mean." +
        (methods.length > 1 ? " The best value in each row is in bold." : ""),
    ),
  );
  const lost = Object.entries(found.unmeasured || {}).map(([name, n]) => `${name} (${n})`);
  if (lost.length) place.append(note(`Objects that were not measured, being in no fold: ${lost.join(", ")}.`));
  place.append(methodTable(methods), make("h3", {}, "By class"), perClassTable(found));
  const confusion = make("div.scroll", { tabindex: "0", role: "region", "aria-label": "Confusion matrix" }),
    curve = make("div");
  const choice = chooser(
    "method",
    methods.map((one, k) => [k, one.method]),
    () => fill(),
    methods.indexOf(best),
  );
  choice.select.id = "confusion-method";
  const fill = () => confusion.replaceChildren(confusionTable(found, methods[Number(choice.select.value)]));
  fill();
  place.append(
    make(
      "div.columns",
      {},
      make(
        "figure.card",
        {},
        make("h3", { style: "margin-top:0" }, "Which classes are confused"),
        ...(methods.length > 1 ? [make("div.controls", {}, choice.label)] : []),
        confusion,
        make("figcaption", {}, "Rows are true classes, columns are predicted classes; shading shows the fraction of each row."),
      ),
      make(
        "figure.card",
        {},
        make("h3", { style: "margin-top:0" }, "Are the probabilities reliable?"),
        curve,
        legend(methods.map((one) => one.method)),
        make(
          "figcaption",
          {},
          "Of all objects classified with a probability near p, a fraction p should be correct (dashed line).",
        ),
      ),
    ),
  );
  responsive(curve, (width) =>
    lineChart(
      width,
      methods.map(({ method, reliability }) => ({
        name: method,
        points: reliability.probability.map((p, i) => [p, reliability.share[i]]),
      })),
      {
        x: linear(0, 1, "stated probability"),
        y: linear(0, 1, "fraction correct"),
        label: "Reliability of the stated probabilities",
        diagonal: true,
      },
    ),
  );
  if (found.surveys.length)
    place.append(
      make("h3", {}, "With and without a survey"),
      para(
        "The same objects in the same folds, classified once with all features and once without those of a survey, to show what the survey adds. The better of the two is in bold.",
      ),
      ...found.surveys.flatMap((survey) => surveyTables(survey, found.classes)),
    );
}

function methodTable(methods) {
  const scores = {
    macro_f: ["macro F", 1],
    accuracy: ["accuracy", 1],
    log_loss: ["log loss", -1],
    brier: ["Brier score", -1],
    ece: ["calibration error", -1],
  };
  const rows = Object.entries(scores).map(([key, [name, sign]]) => {
    const most = Math.max(...methods.map((one) => sign * one[key].value));
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      make("td.soft", {}, sign > 0 ? "high" : "low"),
      ...methods.map((one) =>
        make(
          "td.n",
          {},
          methods.length > 1 && sign * one[key].value === most
            ? make("b", {}, one[key].value.toFixed(3))
            : one[key].value.toFixed(3),
          make("span.soft", {}, one[key].error === null ? "" : ` ± ${one[key].error.toFixed(3)}`),
        ),
      ),
    );
  });
  return make(
    "div.card.scroll",
    { tabindex: "0", role: "region", "aria-label": "Scores of all methods" },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, "score"),
          make("th", { scope: "col" }, "best is"),
          ...methods.map((one) => make("th.n", { scope: "col" }, one.method)),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}

function perClassTable(found) {
  const parts = [
    ["precision", "precision"],
    ["recall", "recall"],
    ["f", "F"],
  ];
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "class"),
    make("th.n", { scope: "col" }, "objects"),
    ...found.methods.flatMap(({ method }) =>
      parts.map(([, name]) =>
        make("th.n", { scope: "col" }, make("span.soft", {}, method), make("br"), name),
      ),
    ),
  );
  const rows = found.classes.map((name, k) => {
    const best = parts.map(([key]) => Math.max(...found.methods.map((one) => one.by_class[k][key])));
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      make("td.n", {}, count(found.support[k])),
      ...found.methods.flatMap((one) =>
        parts.map(([key], i) => {
          const text = one.by_class[k][key].toFixed(3);
          const isBest = found.methods.length > 1 && one.by_class[k][key] === best[i];
          return make("td.n", {}, isBest ? make("b", {}, text) : text);
        }),
      ),
    );
  });
  return make(
    "div.card.scroll",
    { tabindex: "0", role: "region", "aria-label": "Scores by class" },
    make("table", { id: "per-class" }, make("thead", {}, head), make("tbody", {}, ...rows)),
  );
}

function confusionTable(found, method) {
  const rows = method.confusion.map((row, k) => {
    const total = row.reduce((a, b) => a + b, 0) || 1;
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, found.classes[k]),
      ...row.map((value, c) =>
        make(
          c === k ? "td.diagonal" : "td",
          {
            style: `background:rgba(var(--shade),${(0.45 * value) / total})`,
            title: percent(value / total, 1),
          },
          value ? String(+value.toFixed(1)) : "·",
        ),
      ),
    );
  });
  return make(
    "table.heat",
    {},
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        make("th", { scope: "col" }, "true ↓ predicted →"),
        ...found.classes.map((name) => make("th.n", { scope: "col" }, name)),
      ),
    ),
    make("tbody", {}, ...rows),
  );
}

function surveyTables({ title, parts }, classes) {
  const columns = [
    ["macro F", (one) => one.macro_f.value, 1],
    ["log loss", (one) => one.log_loss.value, -1],
    ...classes.map((name, k) => [`F of ${name}`, (one) => one.by_class[k].f, 1]),
  ];
  const names = {
    all: "all objects",
    matched: "objects detected by the survey",
    unmatched: "objects it did not detect",
  };
  return parts.map(({ part, methods }) =>
    make(
      "div.card.scroll",
      { tabindex: "0", role: "region", "aria-label": `${title}: ${part}` },
      make(
        "table",
        {},
        make("caption", {}, `${title}: ${names[part] || part}`),
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("th", { scope: "col" }, "method"),
            ...columns.map(([name]) => make("th.n", { scope: "col" }, name)),
          ),
        ),
        make(
          "tbody",
          {},
          ...methods.map((one) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, one.method),
              ...columns.map(([, get, sign]) => surveyCell(methods, one, get, sign)),
            ),
          ),
        ),
      ),
    ),
  );
}

/* Bold where a method is better than the same method with or without the survey. */
function surveyCell(methods, one, get, sign) {
  const bare = one.method.replace(/ without$/, ""),
    other = methods.find((m) => m !== one && m.method.replace(/ without$/, "") === bare);
  const text = get(one).toFixed(3),
    better = other && sign * get(one) > sign * get(other);
  return make("td.n", {}, better ? make("b", {}, text) : text);
}
