/* Mean and variance of a value whose normal score is normal: a margin, smoothed and tabulated as in the
   library (margin_moments.py). `facts` holds the spreads of the levels, how densely each is tabulated,
   and the nodes over the center of a normal that is wider than its level. */

/* Levels of a margin: lists of means and variances, about `middle` and over `scale`. `valueAt` maps a
   score to a value, linearly between the scores `z`. */
function tabulateMoments(valueAt, z, facts) {
  const { reach, spreads, halved, perScore } = facts,
    middle = valueAt(0);
  const scale = Math.max(...[-reach, reach].map((end) => Math.abs(valueAt(end) - middle))) || 1;
  const levels = [averageCells((score) => (valueAt(score) - middle) / scale, z, facts)];
  for (let level = 1; level < spreads.length; level++) {
    let { mean, variance } = levels[level - 1];
    if (halved[level] > halved[level - 1])
      [mean, variance] = [mean, variance].map((list) => list.filter((_, i) => i % 2 === 0));
    const before = level > 1 ? spreads[level - 1] ** 2 : 1 / (12 * perScore[0] ** 2);
    const more = (spreads[level] ** 2 - before) * perScore[level] ** 2;
    levels.push(smoothMoments(mean, variance, more, facts));
  }
  return { middle, scale, levels: levels.map((level, i) => (i ? unbiased(level) : level)) };
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

/* Moments under a normal whose variance is larger by `more`, in steps of the list. */
function smoothMoments(mean, variance, more, { smoothing }) {
  const wide = Math.ceil(smoothing * Math.sqrt(more)),
    last = mean.length - 1;
  let total = 0;
  const kernel = Float64Array.from({ length: 2 * wide + 1 }, (_, i) => Math.exp((-0.5 * (i - wide) ** 2) / more));
  for (const weight of kernel) total += weight;
  /* Beyond its ends the map is linear. */
  const out = (i) =>
    i < 0
      ? mean[0] + i * (mean[1] - mean[0])
      : i > last
        ? mean[last] + (i - last) * (mean[last] - mean[last - 1])
        : mean[i];
  const first = Float64Array.from({ length: last + 1 + 2 * wide }, (_, i) => out(i - wide)),
    second = first.map((value, i) => value * value + variance[Math.min(Math.max(i - wide, 0), last)]);
  const blur = (list) =>
    mean.map((_, i) => {
      let sum = 0;
      for (let a = 0; a < kernel.length; a++) sum += kernel[a] * list[i + a];
      return sum / total;
    });
  const found = blur(first),
    squares = blur(second);
  return { mean: found, variance: squares.map((value, i) => Math.max(value - found[i] ** 2, 0)) };
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
