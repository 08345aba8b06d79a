/* How good the filled values are: errors and calibration on values that were hidden on purpose. */

const SCORE_NAMES = {
  nrmse: "error (NRMSE)",
  crps: "CRPS",
  coverage_50: "in the 50 % interval",
  coverage_90: "in the 90 % interval",
};

function fillingSection() {
  const found = DATA.imputation,
    place = section("filling", "Filled values");
  if (!found && DATA.filling.features && DATA.filling.features.length) {
    hiddenCells(place, DATA.filling);
    return;
  }
  if (!found) {
    place.append(
      note(
        `Not measured${DATA.filling.not_measured ? `: ${DATA.filling.not_measured}` : " yet"}. `,
        code("skyfill evaluate CATALOG --json > errors.json"),
        " hides values that are known and compares how well methods fill them; add ",
        code("--evaluation errors.json"),
        " to see it here.",
      ),
    );
    return;
  }
  place.append(
    para(
      "Known values were hidden and filled again, so that the error can be measured. An error of 1 is as bad as filling with the column's mean; smaller is better. A good method also gives realistic uncertainties: half of the hidden values should lie inside its 50 % interval, and nine in ten inside its 90 % interval." +
        (found.inSample ? " Each method learned from the very table that it filled, so its errors may be larger on new rows." : ""),
    ),
  );
  const chart = make("div"),
    pit = make("div"),
    choice = chooser(
      "method",
      found.pits.map((one, k) => [k, one.method]),
      () => pitView.redraw(),
    );
  const pitView = found.pits.length
    ? responsive(pit, (width) => pitChart(width, found.pits[Number(choice.select.value)].counts))
    : null;
  place.append(
    make(
      "div.columns",
      {},
      make(
        "figure.card",
        {},
        make("h3", { style: "margin-top:0" }, "Error against fraction hidden"),
        chart,
        legend(found.methods),
        make(
          "figcaption",
          {},
          "Root-mean-square error in standard deviations, averaged over features; bars are standard errors over repeats.",
        ),
      ),
      found.pits.length
        ? make(
            "figure.card",
            {},
            make("h3", { style: "margin-top:0" }, "Is the uncertainty realistic?"),
            make("div.controls", {}, choice.label),
            pit,
            make(
              "figcaption",
              {},
              "Position of the true value within its predicted distribution. A flat histogram is ideal; a dip in the middle means overconfident, a bump underconfident. The gray band contains 95 % of the bars of a calibrated method.",
            ),
          )
        : null,
    ),
  );
  responsive(chart, (width) => errorChart(width, found));
  place.append(
    make(
      "div.columns",
      { style: "margin-top:1.2rem" },
      ...Object.keys(SCORE_NAMES)
        .filter((score) => found.scores[score])
        .map((score) => scoreTable(found, score)),
    ),
  );
  if (found.byFeature) place.append(make("h3", {}, "Error by feature"), featureBars(found));
}

/* What training found out by hiding known values, feature by feature. */
function hiddenCells(place, found) {
  const head = ["values", "error", "error of the mean", "in the 90 % interval"];
  const rows = found.features.map((one) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, one.name),
      make("td.n", {}, count(one.cells)),
      make("td.n", {}, show(one.error)),
      make("td.n", {}, show(one.mean_error)),
      make(
        "td.n",
        {},
        percent(one.inside_90, 1),
        make("span.soft", {}, ` ± ${(100 * one.inside_90_error).toFixed(1)}`),
      ),
    ),
  );
  const unmeasured = Object.entries(found.unmeasured).map(([name, why]) => `${name} (${why})`);
  place.append(
    para(
      `While the model was trained, known values of ${plural(found.rows, "row")} were hidden and filled by what other rows teach. The error is the root mean square difference, in the unit of the feature; beside it that of filling with the column's mean. Nine in ten of the values should lie inside their 90 % interval.`,
    ),
    make(
      "div.card.scroll",
      { tabindex: "0", role: "region", "aria-label": "Errors of hidden values" },
      make(
        "table",
        { id: "hidden-cells" },
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("th", { scope: "col" }, "feature"),
            ...head.map((name) => make("th.n", { scope: "col" }, name)),
          ),
        ),
        make("tbody", {}, ...rows),
      ),
    ),
    unmeasured.length ? note(`Not measured: ${unmeasured.join(", ")}.`) : "",
  );
}

function errorChart(width, found) {
  const series = found.methods.map((name, m) => ({
    name,
    points: found.rates
      .map((rate, r) => [100 * rate, found.scores.nrmse[m][r].value, found.scores.nrmse[m][r].error])
      .filter(([, value]) => value !== null),
  }));
  const values = series.flatMap(({ points }) => points.map(([, value, error]) => value + (error || 0))),
    x = found.rates.map((rate) => 100 * rate);
  const low = Math.min(...x),
    high = Math.max(...x),
    air = (high - low || 1) * 0.08;
  return lineChart(width, series, {
    x: { ...linear(low - air, high + air, "hidden cells (%)"), ticks: x },
    y: linear(0, Math.max(...values, 0.1) * 1.08, "NRMSE"),
    label: "Error of each method against the fraction of hidden cells; the numbers are in the table below",
  });
}

function pitChart(width, counts) {
  const total = counts.reduce((a, b) => a + b, 0),
    n = counts.length,
    heights = counts.map((c) => (c * n) / total),
    most = Math.max(...heights, 1.5) * 1.05;
  const { svg, px, py } = frame(
    width,
    Math.min(280, Math.max(210, width * 0.55)),
    linear(0, 1, "position of the truth in its distribution"),
    linear(0, most, "density", 4),
    "Histogram of the probability integral transform",
  );
  heights.forEach((value, i) =>
    svg.append(
      draw("rect", {
        x: px(i / n) + 0.5,
        width: px(1 / n) - px(0) - 1,
        y: py(value),
        height: py(0) - py(value),
        fill: color(0),
        "fill-opacity": 0.75,
      }),
    ),
  );
  const reach = 1.96 * Math.sqrt((n - 1) / total);
  svg.append(
    draw("rect", {
      x: px(0),
      width: px(1) - px(0),
      y: py(1 + reach),
      height: py(1 - reach) - py(1 + reach),
      fill: "var(--soft)",
      "fill-opacity": 0.35,
    }),
  );
  svg.append(draw("line", { x1: px(0), x2: px(1), y1: py(1), y2: py(1), stroke: "var(--ink)" }));
  return svg;
}

/* A table of one score, methods by rates, the best in bold. */
function scoreTable(found, score) {
  const target = { coverage_50: 0.5, coverage_90: 0.9 }[score],
    rank = (cell) =>
      cell.value === null ? Infinity : target === undefined ? cell.value : Math.abs(cell.value - target);
  const best = found.rates.map((_, r) => Math.min(...found.scores[score].map((row) => rank(row[r]))));
  const cell = (one, r) => {
    if (one.value === null) return make("td.n", {}, "–");
    const text = target === undefined ? one.value.toFixed(3) : percent(one.value, 1),
      error =
        one.error === null
          ? ""
          : ` ± ${target === undefined ? one.error.toFixed(3) : (100 * one.error).toFixed(1)}`;
    return make("td.n", {}, rank(one) === best[r] ? make("b", {}, text) : text, make("span.soft", {}, error));
  };
  return make(
    "div.card.scroll",
    { tabindex: "0", role: "region", "aria-label": SCORE_NAMES[score] },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, SCORE_NAMES[score]),
          ...found.rates.map((rate) =>
            make("th.n", { scope: "col" }, `${+(100 * rate).toPrecision(3)} % hidden`),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        ...found.methods.map((name, m) =>
          make("tr", {}, make("th", { scope: "row" }, name), ...found.scores[score][m].map(cell)),
        ),
      ),
    ),
  );
}

function featureBars(found) {
  const { method, values } = found.byFeature,
    most = Math.max(...Object.values(values), 1);
  const bars = make("div.bars.card", {});
  for (const [name, value] of Object.entries(values).sort((a, b) => a[1] - b[1]))
    bars.append(
      make("span", {}, name),
      make("i", { style: `width:${(100 * value) / most}%`, "aria-hidden": "true" }),
      make("span", {}, value.toFixed(2)),
    );
  return make(
    "figure",
    {},
    bars,
    make(
      "figcaption",
      {},
      `NRMSE of ${method}, mean over all runs. Features at the top are well predicted by the others; those near 1 are nearly independent of them.`,
    ),
  );
}
