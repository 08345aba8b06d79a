/* The objects as a table that can be sorted, filtered and paged. */

const PAGE_ROWS = 25;
/* "star 2" comes before "star 10". */
const COLLATOR = new Intl.Collator("en", { numeric: true });
const OBJECTS = DATA.objects && readObjects(DATA.objects);

function readObjects(facts) {
  const n = facts.shown,
    read = {};
  for (const [name, packed] of Object.entries(facts.facts)) read[name] = unpack(packed);
  const sparse = ({ cells, values }) => {
    const numbers = unpack(values);
    return new Map(Array.from(unpack(cells), (cell, k) => [cell, numbers[k]]));
  };
  return {
    ...facts,
    n,
    values: unpack(facts.values),
    reasons: unpack(facts.reasons),
    predicted: unpack(facts.predicted),
    probabilities: unpack(facts.probabilities),
    facts: read,
    outlier: unpack(facts.outlier),
    lower: sparse(facts.lower),
    upper: sparse(facts.upper),
    errors: sparse(facts.errors),
    unused: sparse(facts.unused),
    ra: facts.position && unpack(facts.position.ra),
    dec: facts.position && unpack(facts.position.dec),
    label: facts.label && { ...facts.label, codes: unpack(facts.label.codes) },
  };
}

/* What is known of an object. */
function cellsOf(i) {
  const p = DATA.features.length,
    cells = emptyCells(p);
  cells.values.set(OBJECTS.values.subarray(i * p, (i + 1) * p));
  for (const name of ["lower", "upper", "errors"])
    for (let j = 0; j < p; j++) cells[name][j] = OBJECTS[name].get(i * p + j) ?? NaN;
  return cells;
}

function classOf(i) {
  return OBJECTS.predicted ? OBJECTS.classes[OBJECTS.predicted[i]] || "" : "";
}
function labelOf(i) {
  return OBJECTS.label ? OBJECTS.label.words[OBJECTS.label.codes[i]] || "" : "";
}
function topProbability(i) {
  const c = OBJECTS.classes.length;
  let most = 0;
  for (let k = 0; k < c; k++) most = Math.max(most, OBJECTS.probabilities[i * c + k]);
  return most;
}
function seenCount(i) {
  const p = DATA.features.length;
  let seen = 0;
  for (let j = 0; j < p; j++) if (!Number.isNaN(OBJECTS.values[i * p + j])) seen++;
  return seen;
}
function objectLink(i) {
  return `#object=${encodeURIComponent(OBJECTS.ids[i])}`;
}

/* Columns: name, value for sorting, text, and whether it is a number. */
function objectColumns() {
  const columns = [{ name: "object", get: (i) => OBJECTS.ids[i], link: true }];
  if (OBJECTS.predicted) {
    columns.push({ name: "class", get: classOf });
    columns.push({ name: "probability", get: topProbability, text: (v) => fixed(v, 3), number: true });
    columns.push({
      name: "p of chosen",
      get: (i, state) =>
        state.kind < 0 ? NaN : OBJECTS.probabilities[i * OBJECTS.classes.length + state.kind],
      text: (v) => fixed(v, 3),
      number: true,
      hidden: (state) => state.kind < 0,
    });
  }
  if (OBJECTS.label) columns.push({ name: OBJECTS.label.name, get: labelOf });
  for (const extra of OBJECTS.extras)
    columns.push({
      name: extra.name,
      get: (i) => extra.values[i] ?? (extra.number ? NaN : ""),
      text: extra.number ? (v) => (Number.isInteger(v) ? count(v) : show(v)) : String,
      number: extra.number,
    });
  const texts = {
    entropy: ["entropy (bit)", (v) => fixed(v, 2)],
    gap_share: ["of it due to gaps", (v) => percent(v)],
    outlier_score: ["outlier score", (v) => show(v, 3)],
  };
  for (const [name, values] of Object.entries(OBJECTS.facts))
    columns.push({ name: texts[name][0], get: (i) => values[i], text: texts[name][1], number: true });
  const measured = (v) => `${v} of ${DATA.features.length}`;
  columns.push({ name: "measured", get: seenCount, text: measured, number: true });
  if (OBJECTS.ra)
    columns.push(
      { name: "RA (°)", get: (i) => OBJECTS.ra[i], text: (v) => fixed(v, 5), number: true },
      { name: "Dec (°)", get: (i) => OBJECTS.dec[i], text: (v) => fixed(v, 5), number: true },
    );
  /* The rank of a candidate comes first. */
  return columns.sort((a, b) => (b.name === "rank") - (a.name === "rank"));
}

function objectsSection() {
  const place = section("objects", "Objects");
  if (!OBJECTS) {
    place.append(
      note("To list objects, add a results table: ", code("skyfill report MODEL RESULTS -o report.html")),
    );
    return;
  }
  const part =
    OBJECTS.n < OBJECTS.rows
      ? ` ${count(OBJECTS.n)} of ${count(OBJECTS.rows)} objects, chosen at random, are on this page; use a candidate list (skyfill candidates) to keep the ones that matter.`
      : "";
  place.append(
    para(
      `Click a column heading to sort; filter below; follow an object's name to its panel with measured values, filled values with error bars, and class probabilities.${part}`,
    ),
  );
  const state = { text: "", kind: -1, least: 0, flagged: false, page: 0, by: null, down: false };
  place.append(new ObjectTable(state, objectColumns()).element);
}

class ObjectTable {
  constructor(state, columns) {
    Object.assign(this, { state, columns });
    this.head = make("tr");
    this.body = make("tbody");
    this.said = make("span", { "aria-live": "polite", id: "objects-said" });
    this.back = make("button.quiet", { type: "button", onclick: () => this.turn(-1) }, "Previous");
    this.next = make("button.quiet", { type: "button", onclick: () => this.turn(1) }, "Next");
    this.element = make(
      "div",
      {},
      this.filters(),
      make(
        "div.card.scroll",
        { tabindex: "0", role: "region", "aria-label": "Table of objects" },
        make("table", { id: "object-table" }, make("thead", {}, this.head), this.body),
      ),
      make("div.pager", {}, this.back, this.next, this.said),
    );
    this.again();
  }

  filters() {
    const change = (key, read) => (event) => {
      this.state[key] = read(event.target);
      this.state.page = 0;
      this.again();
    };
    const search = make("input", {
      type: "search",
      id: "object-search",
      oninput: change("text", (e) => e.value.trim().toLowerCase()),
    });
    const controls = make("div.controls", {}, make("label", {}, "name contains", search));
    if (OBJECTS.predicted) {
      const kind = chooser(
        "class",
        [[-1, "all classes"], ...OBJECTS.classes.map((name, k) => [k, name])],
        (value) => {
          this.state.kind = Number(value);
          this.state.page = 0;
          this.again();
        },
      );
      kind.select.id = "object-class";
      const least = make("input", {
        type: "number",
        id: "object-least",
        min: 0,
        max: 1,
        step: 0.05,
        value: 0,
        oninput: change("least", (e) => Number(e.value) || 0),
      });
      controls.append(kind.label, make("label", {}, "probability at least", least));
    }
    if (OBJECTS.outlier)
      controls.append(
        make(
          "label.check",
          {},
          make("input", {
            type: "checkbox",
            id: "object-outliers",
            onchange: change("flagged", (e) => e.checked),
          }),
          "only unlike the training set",
        ),
      );
    return controls;
  }

  rows() {
    const { text, kind, least, flagged, by, down } = this.state,
      c = OBJECTS.classes.length,
      found = [];
    for (let i = 0; i < OBJECTS.n; i++) {
      if (text && !OBJECTS.ids[i].toLowerCase().includes(text)) continue;
      if (kind >= 0 && OBJECTS.probabilities[i * c + kind] < least) continue;
      if (kind >= 0 && !least && OBJECTS.predicted[i] !== kind) continue;
      if (kind < 0 && least && topProbability(i) < least) continue;
      if (flagged && !OBJECTS.outlier[i]) continue;
      found.push(i);
    }
    return by === null ? found : this.sorted(found, this.columns[by], down);
  }

  sorted(rows, column, down) {
    const keys = new Map(rows.map((i) => [i, column.get(i, this.state)])),
      sign = down ? -1 : 1;
    const compare = column.number ? (a, b) => a - b : COLLATOR.compare;
    const empty = (v) => (column.number ? Number.isNaN(v) : v === "");
    return rows.sort((i, j) => {
      const a = keys.get(i),
        b = keys.get(j);
      if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b));
      return sign * compare(a, b) || i - j;
    });
  }

  again() {
    const rows = this.rows(),
      pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS)),
      shown = this.columns.filter((column) => !column.hidden?.(this.state));
    this.state.page = Math.min(this.state.page, pages - 1);
    this.head.replaceChildren(...shown.map((column) => this.heading(column)));
    const start = this.state.page * PAGE_ROWS;
    this.body.replaceChildren(
      ...rows
        .slice(start, start + PAGE_ROWS)
        .map((i) => make("tr", {}, ...shown.map((column) => this.cell(column, i)))),
    );
    this.said.textContent = rows.length
      ? `${count(start + 1)} to ${count(Math.min(start + PAGE_ROWS, rows.length))} of ${plural(rows.length, "object")}`
      : "No object passes the filters.";
    this.back.disabled = this.state.page === 0;
    this.next.disabled = this.state.page >= pages - 1;
  }

  heading(column) {
    const k = this.columns.indexOf(column),
      mine = this.state.by === k;
    const name = column.hidden ? `p(${OBJECTS.classes[this.state.kind]})` : column.name;
    const press = () => {
      this.state.down = mine ? !this.state.down : Boolean(column.number);
      this.state.by = k;
      this.state.page = 0;
      this.again();
      this.head.children[
        [...this.head.children].findIndex((th) => th.dataset.column === name)
      ]?.firstChild.focus();
    };
    return make(
      column.number ? "th.n" : "th",
      {
        scope: "col",
        "data-column": name,
        "aria-sort": mine ? (this.state.down ? "descending" : "ascending") : "none",
      },
      make("button", { type: "button", onclick: press }, name),
    );
  }

  cell(column, i) {
    const value = column.get(i, this.state);
    if (column.link) return make("th", { scope: "row" }, make("a", { href: objectLink(i) }, value));
    return make(column.number ? "td.n" : "td", {}, column.text ? column.text(value) : value);
  }

  turn(step) {
    this.state.page += step;
    this.again();
  }
}
