/* The gaps: how much of each feature is missing, and why. */

const REASON_TEXTS = {
  unmatched: "no counterpart, although the survey covers the position",
  uncovered: "outside the survey's footprint",
  undetected: "fainter than the survey's limit",
  rejected: "flagged, or a placeholder such as 99.999",
  unknown: "no reason recorded",
};
const REASON_COLORS = ["var(--c0)", "var(--c6)", "var(--c1)", "var(--c4)", "var(--c3)"];

function gapsSection() {
  const gaps = DATA.gaps;
  const place = section("gaps", "Gaps");
  if (!gaps) {
    place.append(
      note(
        "No catalogue was given with the model, so there are no gaps to count. To add one: ",
        code("skyfill report MODEL RESULTS -o report.html"),
      ),
    );
    return;
  }
  const lost = gaps.counts.map((row) => row.reduce((a, b) => a + b, 0));
  const share = lost.reduce((a, b) => a + b, 0) / (gaps.rows * lost.length || 1);
  place.append(
    para(
      `Of the ${count(gaps.rows)} objects × ${lost.length} features, ${percent(share)} of the values are missing. The reason for a gap matters: being outside a survey's footprint says nothing about an object, whereas being below its limit means that the object is faint.`,
    ),
  );
  const used = gaps.reasons.map((_, r) => r).filter((r) => gaps.counts.some((row) => row[r] > 0));
  place.append(
    make(
      "ul.legend",
      {},
      ...used.map((r) =>
        make(
          "li",
          {},
          draw(
            "svg",
            { width: 12, height: 12, "aria-hidden": "true" },
            draw("rect", { width: 12, height: 12, fill: REASON_COLORS[r] }),
          ),
          make("strong", {}, gaps.reasons[r]),
          `: ${REASON_TEXTS[gaps.reasons[r]]}`,
        ),
      ),
    ),
  );
  place.append(
    make(
      "div.card.scroll",
      { tabindex: "0", role: "region", "aria-label": "Gaps by feature and reason" },
      gapTable(gaps, lost, used),
    ),
  );
  if (DATA.objects && DATA.groups.length > 1) place.append(...patternTable());
}

function gapTable(gaps, lost, used) {
  const bodies = [];
  DATA.groups.forEach((group, g) => {
    const members = group.members.map((name) => DATA.features.findIndex((f) => f.name === name));
    const body = make("tbody");
    bodies.push(body);
    body.append(
      make("tr.group", {}, make("th", { scope: "rowgroup", colspan: used.length + 3 }, dot(g), group.name)),
    );
    for (const j of members)
      body.append(
        make(
          "tr",
          {},
          make("th", { scope: "row", title: DATA.features[j].description || "" }, DATA.features[j].name),
          make("td", { style: "width:34%" }, stackBar(gaps, j, used)),
          make("td.n", {}, make("b", {}, percent(lost[j] / gaps.rows))),
          ...used.map((r) =>
            make(
              "td.n",
              { style: `background:rgba(var(--shade),${(0.32 * gaps.counts[j][r]) / (gaps.rows || 1)})` },
              gaps.counts[j][r] ? percent(gaps.counts[j][r] / gaps.rows) : "·",
            ),
          ),
        ),
      );
  });
  return make(
    "table",
    {},
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        make("th", { scope: "col" }, "feature"),
        make("th", { scope: "col" }, "fraction of objects without a value"),
        make("th.n", { scope: "col" }, "missing"),
        ...used.map((r) => make("th.n", { scope: "col" }, gaps.reasons[r])),
      ),
    ),
    ...bodies,
  );
}

function stackBar(gaps, j, used) {
  const bar = make("div.stack", { "aria-hidden": "true" });
  for (const r of used)
    bar.append(
      make("i", {
        style: `width:${(100 * gaps.counts[j][r]) / (gaps.rows || 1)}%;background:${REASON_COLORS[r]}`,
      }),
    );
  return bar;
}

/* Which groups detect an object: the most frequent combinations. */
function patternTable() {
  const p = DATA.features.length,
    values = OBJECTS.values,
    n = OBJECTS.n,
    found = new Map();
  const members = DATA.groups.map((group) =>
    group.members.map((name) => DATA.features.findIndex((f) => f.name === name)),
  );
  for (let i = 0; i < n; i++) {
    const key = members
      .map((list) => {
        const seen = list.filter((j) => !Number.isNaN(values[i * p + j])).length;
        return seen === 0 ? 0 : seen === list.length ? 2 : 1;
      })
      .join("");
    found.set(key, (found.get(key) || 0) + 1);
  }
  const top = [...found].sort((a, b) => b[1] - a[1]).slice(0, 8);
  const words = ["none", "some", "all"],
    marks = ["–", "◐", "●"];
  const rows = top.map(([key, number]) =>
    make(
      "tr",
      {},
      ...[...key].map((k) =>
        make("td", {}, make("span", { "aria-hidden": "true" }, `${marks[k]} `), words[k]),
      ),
      make("td.n", {}, percent(number / n)),
      make("td.n", {}, count(number)),
    ),
  );
  return [
    make("h3", {}, "Which surveys detect an object"),
    make(
      "div.card.scroll",
      { tabindex: "0", role: "region", "aria-label": "Combinations of surveys" },
      make(
        "table",
        {},
        make(
          "caption",
          {},
          `The ${top.length} most frequent of ${found.size} combinations: all, some or none of a group's features measured.`,
        ),
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            ...DATA.groups.map((group, g) => make("th", { scope: "col" }, dot(g), group.name)),
            make("th.n", { scope: "col" }, "share"),
            make("th.n", { scope: "col" }, "objects"),
          ),
        ),
        make("tbody", {}, ...rows),
      ),
    ),
  ];
}
