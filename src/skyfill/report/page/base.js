/* Elements, numbers, packed arrays: what every part of the page uses. */

const DATA = JSON.parse(document.getElementById("payload").textContent);
const ARRAYS = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u1: Uint8Array };
const SVG = "http://www.w3.org/2000/svg";
const FILLS = DATA.fills;
/* Pictures with colors inside are redrawn when the colors change. */
const REPAINT = [];

function unpack(packed) {
  if (!packed) return null;
  const text = atob(packed.data),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[packed.kind](bytes.buffer);
}

/* make("td.n", {title: "..."}, child, ...): an element with attributes and children. */
function make(tag, facts = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return finish(document.createElement(name), classes, facts, children);
}

function draw(tag, facts = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return finish(document.createElementNS(SVG, name), classes, facts, children);
}

function finish(element, classes, facts, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(facts)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function section(id, title, ...children) {
  const place = make(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    make("h2", { id: `${id}-title` }, title),
    ...children,
  );
  document.getElementById("main").append(place);
  document
    .getElementById("sections")
    .append(make("li", {}, make("a", { href: `#${id}` }, place.dataset.short || title)));
  return place;
}

function para(text) {
  return make("p", {}, text);
}
function note(...children) {
  return make("p.note", {}, ...children);
}
function code(text) {
  return make("code", {}, text);
}

/* A true minus sign, and none before a zero. */
function signed(text) {
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/* A number with about four digits, as tables want it. */
function show(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) text = value.toExponential(2);
  else text = value.toFixed(Math.max(0, digits - 1 - Math.max(0, Math.floor(Math.log10(size || 1)))));
  return signed(text);
}

/* A value and its standard deviation, both with as many places as the latter has two digits. */
function showWith(value, sd) {
  const extreme = Math.max(Math.abs(value), sd) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3);
  if (!(sd > 0) || extreme) return [show(value), show(sd, 2)];
  const places = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(sd) + 1e-9)));
  return [signed(value.toFixed(places)), sd.toFixed(places)];
}

function plusMinus(value, sd) {
  return showWith(value, sd).join(" ± ");
}

/* A fixed number of places, for columns that line up. */
function fixed(value, places) {
  return value === null || Number.isNaN(value) ? "–" : signed(value.toFixed(places));
}

function percent(share, places = 0) {
  if (share === null || Number.isNaN(share)) return "–";
  const value = 100 * share;
  if (places === 0 && share > 0 && value < 0.5) return "<1 %";
  return `${value.toFixed(places)} %`;
}

function count(number) {
  return number.toLocaleString("en-US").replace(/,/g, " ");
}
function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
function unitOf(feature) {
  return feature.unit ? ` ${feature.unit}` : "";
}

/* How a limit of a feature is called: of a magnitude, larger is fainter. */
function limitWords(feature) {
  return feature.magnitude
    ? { lower: "fainter than", upper: "brighter than" }
    : { lower: "larger than", upper: "smaller than" };
}

/* Limits of a feature in words, such as "fainter than 16.2 mag"; empty where there is none. */
function describeLimits(cells, j) {
  const feature = DATA.features[j],
    words = limitWords(feature);
  return ["lower", "upper"]
    .filter((side) => !Number.isNaN(cells[side][j]))
    .map((side) => `${words[side]} ${show(cells[side][j])}${unitOf(feature)}`)
    .join(" and ");
}

function color(k) {
  return `var(--c${k % 8})`;
}

/* A selection with a label: options are [value, text] pairs. */
function chooser(label, options, change, chosen) {
  const select = make(
    "select",
    { onchange: () => change(select.value) },
    ...options.map(([value, text]) =>
      make("option", { value, selected: String(value) === String(chosen) }, text),
    ),
  );
  return { select, label: make("label", {}, label, select) };
}

/* Draw now, and again whenever the width of the place changes. */
function responsive(place, render) {
  let last = 0;
  const again = () => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      place.replaceChildren(render(width));
    }
  };
  new ResizeObserver(again).observe(place);
  return {
    place,
    redraw() {
      last = 0;
      again();
    },
  };
}

function dot(k) {
  return make("span.dot", { style: `background:${FILLS[k % FILLS.length]}`, "aria-hidden": "true" });
}
