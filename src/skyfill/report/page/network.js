/* The network: nodes can be dragged or moved by the arrow keys; a selected node shows its regression. */

function networkSection() {
  const graph = DATA.graph;
  const place = section("network", "Network");
  place.append(
    para(
      "The model has learned which features vary together. An arrow from A to B means that B is predicted from A (and from B's other parents). The wider the arrow, the more B changes with A. Hover over, tap or tab to a feature to read its equation; drag it, or move it with the arrow keys.",
    ),
  );
  const story = make(
    "div.story",
    { "aria-live": "polite", id: "story" },
    make(
      "p.soft",
      {},
      "No feature is selected. Blue arrows lead into the selected feature, orange arrows out of it.",
    ),
  );
  const drawing = new Drawing(graph, (j) => story.replaceChildren(...equation(graph, j)));
  place.append(
    make(
      "div.card.network",
      {},
      drawing.svg,
      DATA.groups.length > 1
        ? make("ul.legend", {}, ...DATA.groups.map((group, g) => make("li", {}, dot(g), group.name)))
        : null,
      story,
    ),
  );
  place.append(
    make(
      "p.hint",
      {},
      graph.one
        ? `The model is one Gaussian network; these are its arrows. Their width is ${graph.stability ? "the fraction of resamples of the training set in which the two features are linked" : "the size of the regression coefficient, in standard deviations"}.`
        : graph.learned
          ? "These are the arrows that the model learned; their width is the fraction of the mixture's components that have the arrow."
          : "The model is a mixture of Gaussians with full covariances; the arrows show the sparse network that best describes the mixture as a whole (BIC, at most three parents). Their width is the size of the regression coefficient.",
    ),
  );
}

function equation(graph, j) {
  const { child, parents, weights, noise, explained } = graph.regressions[j];
  const out = graph.arcs.filter((arc) => arc.from === j).map((arc) => DATA.features[arc.to].name);
  const title = make(
    "p",
    {},
    make("strong", {}, child),
    DATA.features[j].description ? ` – ${DATA.features[j].description}` : "",
  );
  const uses = make(
    "p.soft",
    {},
    out.length ? `It helps to predict ${out.join(", ")}.` : "No other feature is predicted from it directly.",
  );
  if (!parents.length)
    return [
      title,
      para("No arrows lead into it: it is described by its own distribution alone."),
      uses,
    ];
  const terms = parents
    .map(
      (name, k) =>
        `${weights[k] < 0 ? (k ? " − " : "−") : k ? " + " : ""}${show(Math.abs(weights[k]), 3)} × ${name}`,
    )
    .join("");
  return [
    title,
    make(
      "p",
      {},
      code(`${child} = ${terms} ± ${show(noise, 3)}`),
      ` in ${graph.linear ? "standard deviations" : "normal scores (ranks turned into standard deviations)"}. These parents explain ${percent(explained)} of its variance.`,
    ),
    uses,
  ];
}

class Drawing {
  constructor(graph, describe) {
    const narrow = innerWidth < 640,
      width = narrow ? 430 : graph.paper.width,
      height = narrow ? 720 : graph.paper.height;
    Object.assign(this, { graph, describe, width, height, active: -1 });
    this.at = graph.places.map(([x, y]) => [
      (x * width) / graph.paper.width,
      (y * height) / graph.paper.height,
    ]);
    this.at = this.at.map((xy, j) => this.inside(j, xy));
    if (narrow) this.spread();
    this.svg = draw("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": `Network of ${DATA.features.length} features and ${graph.arcs.length} arrows`,
    });
    const most = Math.max(...graph.arcs.map((arc) => arc.strength), 1e-9);
    this.arcs = graph.arcs.map((arc) => ({
      ...arc,
      share: arc.strength / most,
      line: draw("line", { stroke: "currentColor" }),
      head: draw("polygon", { fill: "currentColor" }),
    }));
    for (const arc of this.arcs)
      arc.group = draw("g.arc", { opacity: (0.35 + 0.6 * arc.share).toFixed(2) }, arc.line, arc.head);
    this.nodes = DATA.features.map((feature, j) => this.node(feature, j));
    this.svg.append(
      draw("g", { "aria-hidden": "true" }, ...this.arcs.map((arc) => arc.group)),
      ...this.nodes,
    );
    this.svg.addEventListener(
      "pointerleave",
      () => this.dragging === undefined && !this.svg.contains(document.activeElement) && this.light(-1),
    );
    this.place();
  }

  /* Push boxes apart where a narrow page has brought them together. */
  spread() {
    const { widths, paper } = this.graph;
    for (let step = 0; step < 80; step++)
      for (let i = 0; i < this.at.length; i++)
        for (let j = 0; j < i; j++) {
          const dx = this.at[i][0] - this.at[j][0],
            dy = this.at[i][1] - this.at[j][1];
          const overX = (widths[i] + widths[j]) / 2 + 10 - Math.abs(dx),
            overY = paper.node + 14 - Math.abs(dy);
          if (overX <= 0 || overY <= 0) continue;
          const axis = overX < overY ? 0 : 1,
            shift = (Math.min(overX, overY) / 2) * ((axis ? dy : dx) < 0 ? -1 : 1);
          this.at[i] = this.inside(
            i,
            this.at[i].map((v, k) => v + (k === axis ? shift : 0)),
          );
          this.at[j] = this.inside(
            j,
            this.at[j].map((v, k) => v - (k === axis ? shift : 0)),
          );
        }
  }

  inside(j, [x, y]) {
    const half = this.graph.widths[j] / 2 + 2,
      high = this.graph.paper.node / 2 + 2;
    return [Math.min(Math.max(x, half), this.width - half), Math.min(Math.max(y, high), this.height - high)];
  }

  node(feature, j) {
    const { parents, explained } = this.graph.regressions[j],
      width = this.graph.widths[j],
      high = this.graph.paper.node;
    const label = parents.length
      ? `${feature.name}: predicted from ${parents.join(", ")}, ${percent(explained)} explained`
      : `${feature.name}: no parents`;
    const group = draw(
      "g.node",
      { tabindex: "0", role: "button", "aria-label": label, "data-name": feature.name },
      draw("rect", {
        x: -width / 2,
        y: -high / 2,
        width,
        height: high,
        rx: high / 2,
        fill: FILLS[feature.group % FILLS.length],
      }),
      draw("text", { y: 5, "text-anchor": "middle" }, feature.name),
    );
    group.addEventListener("pointerenter", () => this.dragging === undefined && this.light(j));
    group.addEventListener("focus", () => this.light(j));
    group.addEventListener("pointerdown", (event) => this.grab(event, j));
    group.addEventListener("keydown", (event) => this.press(event, j));
    return group;
  }

  grab(event, j) {
    event.preventDefault();
    this.nodes[j].focus({ preventScroll: true });
    const scale = this.width / this.svg.getBoundingClientRect().width,
      start = [event.clientX, event.clientY],
      from = [...this.at[j]];
    this.dragging = j;
    this.nodes[j].classList.add("dragged");
    this.nodes[j].setPointerCapture(event.pointerId);
    const move = (e) =>
      this.move(j, from[0] + (e.clientX - start[0]) * scale, from[1] + (e.clientY - start[1]) * scale);
    const drop = () => {
      this.dragging = undefined;
      this.nodes[j].classList.remove("dragged");
      this.nodes[j].removeEventListener("pointermove", move);
    };
    this.nodes[j].addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"])
      this.nodes[j].addEventListener(name, drop, { once: true });
  }

  press(event, j) {
    const step = { ArrowLeft: [-12, 0], ArrowRight: [12, 0], ArrowUp: [0, -12], ArrowDown: [0, 12] }[
      event.key
    ];
    if (!step) return;
    event.preventDefault();
    this.move(j, this.at[j][0] + step[0], this.at[j][1] + step[1]);
  }

  move(j, x, y) {
    this.at[j] = this.inside(j, [x, y]);
    this.place();
  }

  place() {
    this.nodes.forEach((node, j) =>
      node.setAttribute("transform", `translate(${this.at[j][0].toFixed(1)} ${this.at[j][1].toFixed(1)})`),
    );
    for (const arc of this.arcs) this.point(arc);
  }

  /* A straight line that ends at the child's box, with a head. */
  point(arc) {
    const [x1, y1] = this.at[arc.from],
      [x2, y2] = this.at[arc.to],
      dx = x1 - x2,
      dy = y1 - y2,
      length = Math.hypot(dx, dy) || 1;
    const side = Math.min(
      (this.graph.widths[arc.to] / 2 + 3) / Math.abs(dx || 1e-9),
      (this.graph.paper.node / 2 + 3) / Math.abs(dy || 1e-9),
      0.9,
    );
    const tip = [x2 + dx * side, y2 + dy * side],
      ux = dx / length,
      uy = dy / length,
      size = 7 + 6 * arc.share,
      wing = 0.45 * size;
    const neck = [tip[0] + ux * size, tip[1] + uy * size];
    for (const [key, value] of Object.entries({
      x1,
      y1,
      x2: neck[0],
      y2: neck[1],
      "stroke-width": 1 + 5 * arc.share,
    }))
      arc.line.setAttribute(key, value.toFixed(1));
    arc.head.setAttribute(
      "points",
      `${tip.map((v) => v.toFixed(1))} ${(neck[0] - uy * wing).toFixed(1)},${(neck[1] + ux * wing).toFixed(1)} ${(neck[0] + uy * wing).toFixed(1)},${(neck[1] - ux * wing).toFixed(1)}`,
    );
  }

  light(j) {
    this.active = j;
    const near = new Set([j]);
    for (const arc of this.arcs) {
      const into = arc.to === j,
        out = arc.from === j;
      if (into) near.add(arc.from);
      if (out) near.add(arc.to);
      arc.group.classList.toggle("in", into);
      arc.group.classList.toggle("out", out);
      arc.group.classList.toggle("dim", j >= 0 && !into && !out);
    }
    this.nodes.forEach((node, k) => {
      node.classList.toggle("active", k === j);
      node.classList.toggle("dim", j >= 0 && !near.has(k));
    });
    if (j >= 0) this.describe(j);
  }
}
