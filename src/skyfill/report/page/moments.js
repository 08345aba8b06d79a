/* Mean and variance of a value whose normal score is normal: a margin, smoothed and tabulated as in the
   library (margin_moments.py). `facts` holds the spreads of the levels, how densely each is tabulated,
   and the nodes over the center of a normal that is wider than its level. */

/* Levels of a margin: lists of means and variances, about `middle` and over `scale`. `valueAt` maps a
   score to a value, linearly between the scores of the knots. */
function tabulateMoments(valueAt, { x, z, rises }, facts) {
  const { reach, spreads, halved } = facts,
    middle = valueAt(0);
  const scale = Math.max(...[-reach, reach].map((end) => Math.abs(valueAt(end) - middle))) || 1;
  const line = { z, y: x.map((value) => (value - middle) / scale), rises: rises.map((rise) => rise / scale) };
  const levels = [averageCells((score) => (valueAt(score) - middle) / scale, z, facts)];
  for (let base = 1; base < spreads.length; base++)
    if (base === 1 || halved[base] > halved[base - 1]) levels.push(...smoothSegments(line, base, facts));
  return { middle, scale, levels: levels.map((level, i) => (i ? unbiased(level) : level)) };
}

/* Moments of one level, in closed form from knot to knot, and of those with as many entries. */
function smoothSegments(line, base, { reach, spreads, halved, perScore, smoothing, far, narrow }) {
  const per = perScore[base],
    size = 2 * reach * per + 1,
    more = spreads.filter((_, i) => i >= base && halved[i] === halved[base])
      .map((spread) => (spread ** 2 - spreads[base] ** 2) * per ** 2);
  const wide = Math.ceil(smoothing * Math.sqrt(more[more.length - 1]));
  const known = Array.from({ length: size + 2 * wide }, (_, i) =>
    integrate(line, (i - wide) / per - reach, spreads[base], far, narrow),
  );
  return more.map((variance) => {
    const near = Math.ceil(smoothing * Math.sqrt(variance));
    const kernel = Float64Array.from({ length: 2 * near + 1 }, (_, i) =>
      Math.exp((-0.5 * (i - near) ** 2) / Math.max(variance, 1e-300)),
    );
    let total = 0;
    for (const weight of kernel) total += weight;
    const [mean, squares] = [0, 1].map((which) =>
      Float64Array.from({ length: size }, (_, i) => {
        let sum = 0;
        for (let a = 0; a < kernel.length; a++) sum += kernel[a] * known[i + wide - near + a][which];
        return sum / total;
      }),
    );
    return { mean, variance: squares.map((square, i) => Math.max(square - mean[i] ** 2, 0)) };
  });
}

/* Mean and mean square, for a normal, of a map with the values y at the scores z, linear between and,
   with its `rises`, beyond. */
function integrate({ y, z, rises }, center, spread, far, narrow) {
  const last = z.length - 1;
  let p = below(z, center - far * spread) + 1,
    [u, under, density, first, second] = [-far, 0, 0, 0, 0];
  for (;;) {
    /* Segment p ends at knot p; within it the value is `middle` and changes by `slope`. */
    let v = p <= last ? (z[p] - center) / spread : far;
    const isLast = v >= far;
    if (isLast) v = far;
    const upTo = isLast ? 1 : normalCdf(v),
      end = isLast ? 0 : Math.exp(-0.5 * v * v) / Math.sqrt(2 * Math.PI);
    if (v > u) {
      const at = Math.min(Math.max(p - 1, 0), last),
        rise = p === 0 ? rises[0] : p > last ? rises[1] : (y[p] - y[p - 1]) / (z[p] - z[p - 1]);
      const slope = rise * spread,
        half = 0.5 * (u + v),
        middle = y[at] + slope * (half - (z[at] - center) / spread),
        mass = upTo - under;
      let one = 0,
        two = (mass * (v - u) ** 2) / 12;
      if (v - u >= narrow) {
        one = density - end - half * mass;
        two = mass + u * density - v * end - half * (2 * one + half * mass);
      }
      first += middle * mass + slope * one;
      second += middle * middle * mass + 2 * middle * slope * one + slope * slope * two;
    }
    if (isLast) return [first, second];
    [u, under, density, p] = [v, upTo, end, p + 1];
  }
}

/* Moments of the values in narrow cells of scores. */
function averageCells(valueAt, z, { reach, perScore }) {
  const n = 2 * reach * perScore[0] + 1,
    width = 1 / perScore[0];
  const edges = Float64Array.from({ length: n + 1 }, (_, i) => -reach + width * (i - 0.5)),
    inner = z.filter((score) => score > edges[0] && score < edges[n]);
  const ends = Float64Array.from([...edges, ...inner]).sort();
  const mean = new Float64Array(n),
    variance = new Float64Array(n);
  let cell = 0;
  for (let i = 0; i + 1 < ends.length; i++) {
    const center = (ends[i] + ends[i + 1]) / 2,
      half = (ends[i + 1] - ends[i]) / 2;
    if (half === 0) continue;
    while (cell < n - 1 && edges[cell + 1] < center) cell++;
    for (const side of [-1, 1]) {
      const value = valueAt(center + (side * half) / Math.sqrt(3));
      mean[cell] += (half / width) * value;
      variance[cell] += (half / width) * value * value;
    }
  }
  return { mean, variance: variance.map((second, i) => second - mean[i] ** 2) };
}

/* Entries shifted so that lines between them are right on average, not at the entries. */
function unbiased({ mean, variance }) {
  const last = mean.length - 1;
  const bend = (i) => (i > 0 && i < last ? mean[i + 1] - 2 * mean[i] + mean[i - 1] : 0);
  return { mean: mean.map((value, i) => value - bend(i) / 12), variance };
}

/* Level of a spread: the widest that is not wider, or nearly so. */
function spreadLevel(sd, { levels, finer }) {
  return levels[Math.floor(Math.min(sd * finer, levels.length - 1))];
}

/* Value and variance of a normal about a score, of the spread of a level. */
function normalValue(table, level, score, { reach, perScore }) {
  const { mean, variance } = table.levels[level],
    at = (score + reach) * perScore[level];
  const i = Math.floor(Math.min(Math.max(at, 0), mean.length - 2)),
    between = (list) => list[i] + (at - i) * (list[i + 1] - list[i]);
  return [between(mean), Math.max(between(variance), 0)];
}
