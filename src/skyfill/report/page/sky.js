/* The sky: every object at its place, by class. */

function skySection() {
  if (!OBJECTS || !OBJECTS.ra) return;
  const place = section("sky", "Sky map");
  const { kinds, codes } = skyKinds();
  const shown = new Set(kinds.keys());
  const numbers = kinds.map((_, k) => codes.reduce((sum, code) => sum + (code === k), 0));
  place.append(
    para(
      "North is up, east is left. Rare classes are drawn last, so that they are visible. Click a mark to open the object's panel; with the keyboard, use the table above, which lists the same objects.",
    ),
  );
  const canvas = make("canvas", {
      role: "img",
      "aria-label": `Map of ${plural(OBJECTS.n, "object")} on the sky, by class`,
    }),
    box = make("div.card", {}, canvas);
  const toggles = make(
    "div.controls",
    {},
    ...kinds.map((name, k) =>
      make(
        "label.check",
        {},
        make("input", {
          type: "checkbox",
          checked: true,
          onchange: (event) => {
            if (event.target.checked) shown.add(k);
            else shown.delete(k);
            paint();
          },
        }),
        draw(
          "svg",
          { width: 14, height: 12, "aria-hidden": "true" },
          draw("path", { d: markPath(k, 7, 6, 4.2), fill: skyColor(k, numbers) }),
        ),
        `${name} (${count(numbers[k])})`,
      ),
    ),
  );
  place.append(toggles, box);
  const map = project(OBJECTS.ra, OBJECTS.dec),
    order = [...Array(OBJECTS.n).keys()].sort((a, b) => (numbers[codes[b]] || 0) - (numbers[codes[a]] || 0));
  let drawn = [];
  const paint = () => {
    drawn = paintSky(canvas, box, map, { codes, order, shown, numbers });
  };
  new ResizeObserver(paint).observe(box);
  REPAINT.push(paint);
  canvas.addEventListener("click", (event) => {
    const rect = canvas.getBoundingClientRect(),
      i = nearestMark(drawn, event.clientX - rect.left, event.clientY - rect.top);
    if (i >= 0) location.hash = objectLink(i);
  });
}

/* Marks show the predicted class, otherwise the label; objects without one come last. */
function skyKinds() {
  const words = OBJECTS.predicted ? OBJECTS.classes : OBJECTS.label ? OBJECTS.label.words : ["object"];
  const known = OBJECTS.predicted || OBJECTS.label?.codes || new Uint8Array(OBJECTS.n);
  const codes = known.map((code) => Math.min(code, words.length));
  return { codes, kinds: codes.includes(words.length) ? [...words, "none"] : words };
}

/* The most common class is the background, in gray. */
function skyColor(k, numbers) {
  const total = numbers.reduce((a, b) => a + b, 0),
    main = numbers.findIndex((number) => number > total / 2);
  return numbers.length === 1
    ? color(0)
    : k === main
      ? color(6)
      : color(main >= 0 && k > main ? spare(k - 1) : spare(k));
}

function spare(k) {
  return [0, 1, 2, 3, 4, 5, 7][k % 7];
}

function classColor(k) {
  const numbers = OBJECTS.classes.map((_, c) =>
    OBJECTS.predicted.reduce((sum, code) => sum + (code === c), 0),
  );
  return skyColor(k, numbers);
}

/* A small field: a plane that touches it. A large one: the Hammer projection, which preserves areas. */
function project(ra, dec) {
  const known = [...ra.keys()].filter((i) => !Number.isNaN(ra[i])),
    mean = (f) => known.reduce((sum, i) => sum + f(i), 0) / (known.length || 1),
    rad = Math.PI / 180;
  const center =
      Math.atan2(
        mean((i) => Math.sin(ra[i] * rad)),
        mean((i) => Math.cos(ra[i] * rad)),
      ) / rad,
    level = mean((i) => dec[i]);
  const away = (i) => ((ra[i] - center + 540) % 360) - 180;
  const wide = known.some(
    (i) => Math.abs(away(i)) * Math.cos(dec[i] * rad) > 30 || Math.abs(dec[i] - level) > 30,
  );
  const x = new Float64Array(ra.length).fill(NaN),
    y = new Float64Array(ra.length).fill(NaN);
  for (const i of known) {
    const a = away(i) * rad,
      d = dec[i] * rad;
    if (wide) {
      const z = Math.sqrt(1 + Math.cos(d) * Math.cos(a / 2));
      x[i] = (-2 * Math.SQRT2 * Math.cos(d) * Math.sin(a / 2)) / z;
      y[i] = (Math.SQRT2 * Math.sin(d)) / z;
    } else {
      x[i] = -away(i) * Math.cos(level * rad);
      y[i] = dec[i] - level;
    }
  }
  return { x, y, known, wide, center, level };
}

function paintSky(canvas, box, map, { codes, order, shown, numbers }) {
  const style = getComputedStyle(document.documentElement),
    width = box.clientWidth - 36;
  if (width < 50) return [];
  const xs = map.known.map((i) => map.x[i]),
    ys = map.known.map((i) => map.y[i]),
    ends = (list) => list.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const [x0, x1] = map.wide ? [-2.83, 2.83] : ends(xs),
    [y0, y1] = map.wide ? [-1.415, 1.415] : ends(ys),
    margin = map.wide ? 4 : 44;
  const scale = Math.min((width - margin - 12) / (x1 - x0 || 1), 560 / (y1 - y0 || 1)),
    w = (x1 - x0) * scale,
    left = margin + (width - margin - 12 - w) / 2,
    height = Math.max((y1 - y0) * scale, 40) + 52;
  const dense = window.devicePixelRatio || 1,
    pen = canvas.getContext("2d");
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  canvas.style.height = `${height}px`;
  pen.scale(dense, dense);
  const px = (x) => left + (x - x0) * scale,
    py = (y) => 10 + (y1 - y) * scale;
  pen.strokeStyle = style.getPropertyValue("--line");
  pen.fillStyle = style.getPropertyValue("--soft");
  pen.font = "11.5px system-ui, sans-serif";
  if (map.wide) {
    pen.beginPath();
    pen.ellipse(px(0), py(0), 2.83 * scale, 1.415 * scale, 0, 0, 7);
    pen.stroke();
  } else skyAxes(pen, map, { px, py, x0, x1, y0, y1 });
  const drawn = [],
    inks = numbers.map((_, k) => style.getPropertyValue(skyColor(k, numbers).slice(4, -1)));
  for (const i of order) {
    const code = codes[i];
    if (!shown.has(code) || Number.isNaN(map.x[i])) continue;
    const many = numbers[code] > 2000,
      x = px(map.x[i]),
      y = py(map.y[i]);
    pen.globalAlpha = many ? 0.35 : 0.9;
    pen.fillStyle = inks[code];
    if (many) pen.fillRect(x - 1, y - 1, 2, 2);
    else pen.fill(new Path2D(markPath(code, x, y, width < 500 ? 2 : 3.1)));
    drawn.push([x, y, i]);
  }
  pen.globalAlpha = 1;
  return drawn;
}

function skyAxes(pen, map, { px, py, x0, x1, y0, y1 }) {
  const shrink = Math.cos((map.level * Math.PI) / 180);
  pen.textAlign = "center";
  for (const ra of ticks(map.center - x1 / shrink, map.center - x0 / shrink, 6)) {
    const x = px(-(ra - map.center) * shrink);
    pen.beginPath();
    pen.moveTo(x, py(y1));
    pen.lineTo(x, py(y0));
    pen.stroke();
    pen.fillText(`${tickText((ra + 360) % 360)}°`, x, py(y0) + 16);
  }
  pen.textAlign = "right";
  for (const dec of ticks(map.level + y0, map.level + y1, 5)) {
    const y = py(dec - map.level);
    pen.beginPath();
    pen.moveTo(px(x0), y);
    pen.lineTo(px(x1), y);
    pen.stroke();
    pen.fillText(`${tickText(dec)}°`, px(x0) - 5, y + 4);
  }
  pen.textAlign = "center";
  pen.fillText("right ascension", (px(x0) + px(x1)) / 2, py(y0) + 34);
}

function nearestMark(drawn, x, y) {
  let best = -1,
    least = 144;
  for (const [a, b, i] of drawn) {
    const d = (a - x) ** 2 + (b - y) ** 2;
    if (d <= least) {
      least = d;
      best = i;
    }
  }
  return best;
}
