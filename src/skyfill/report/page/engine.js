/* The posterior of a mixture network, as the library computes it.

   Each feature is mapped to a normal score by its margin. Every component of every fit is a Gaussian
   over the scores: given the seen ones, the others follow by regression. The mean on the feature's own
   scale is a seven-point Gauss-Hermite quadrature of the mapped-back posterior. */

class Engine {
  constructor(facts) {
    Object.assign(this, facts);
    for (const name of [
      "grids",
      "logWeights",
      "means",
      "covs",
      "logLost",
      "logSeen",
      "calibration",
      "knots",
      "spreadLevels",
    ])
      this[name] = unpack(facts[name]);
    this.p = this.margins.length;
    this.c = this.logWeights.length;
    this.size = this.grids.length / this.p;
    this.triangle = (this.p * (this.p + 1)) / 2;
    /* Whether the model treats a gap as evidence. */
    this.hints = this.logLost.some((log) => log !== 0);
    this.nothing = this.condition(new Float64Array(this.p).fill(NaN), false);
  }

  cov(k, i, j) {
    return i >= j
      ? this.covs[k * this.triangle + (i * (i + 1)) / 2 + j]
      : this.covs[k * this.triangle + (j * (j + 1)) / 2 + i];
  }

  /* Normal score of a value. */
  score(j, value) {
    const { kind, x, z, atoms, scores, slopes } = this.margins[j];
    if (kind === "constant") return 0;
    if (kind === "linear") return (value - x[0]) / (x[1] - x[0]);
    const last = x.length - 1;
    let score;
    if (value < x[0]) score = z[0] + (value - x[0]) / slopes[0];
    else if (value > x[last]) score = z[last] + (value - x[last]) / slopes[1];
    else {
      const atom = below(atoms, value);
      if (atom >= 0 && atoms[atom] === value) score = scores[atom];
      else {
        const i = Math.min(below(x, value), last - 1);
        score = x[i + 1] === x[i] ? z[i] : z[i] + ((z[i + 1] - z[i]) / (x[i + 1] - x[i])) * (value - x[i]);
      }
    }
    return Math.min(Math.max(score, -this.reach), this.reach);
  }

  /* Highest score of values up to this one: an atom is wholly below its own edge. */
  edge(j, value) {
    const { kind, x, z } = this.margins[j];
    const at = below(x, value);
    return kind === "ranks" && at > 0 && x[at] === value && x[at - 1] === value
      ? z[at]
      : this.score(j, value);
  }

  /* Value of a feature at a normal score. */
  value(j, score) {
    const at = (score + this.reach) * ((this.size - 1) / (2 * this.reach));
    const i = Math.floor(Math.min(Math.max(at, 0), this.size - 2)),
      base = j * this.size + i;
    return this.grids[base] + (at - i) * (this.grids[base + 1] - this.grids[base]);
  }

  /* Each component's view of a row: responsibility, and mean, sd and gain of each gap. With `hint`, a
     missing value is a gap, which may be informative; otherwise it is merely unknown. */
  condition(row, hint = true) {
    const seen = [],
      lost = [];
    for (let j = 0; j < this.p; j++) (Number.isNaN(row[j]) ? lost : seen).push(j);
    const s = seen.length,
      z = seen.map((j) => this.score(j, row[j]));
    const resp = new Float64Array(this.c),
      mean = new Float64Array(this.c * this.p),
      sd = new Float64Array(this.c * this.p);
    const gain = new Float64Array(this.c * this.p * s),
      L = new Float64Array(s * s),
      y = new Float64Array(s);
    for (let k = 0; k < this.c; k++) {
      let log = this.logWeights[k] - 0.5 * s * Math.log(2 * Math.PI);
      if (hint)
        for (let j = 0; j < this.p; j++)
          log += (Number.isNaN(row[j]) ? this.logLost : this.logSeen)[k * this.p + j];
      for (let a = 0; a < s; a++) {
        for (let b = 0; b <= a; b++) {
          let sum = this.cov(k, seen[a], seen[b]);
          for (let h = 0; h < b; h++) sum -= L[a * s + h] * L[b * s + h];
          L[a * s + b] = a === b ? Math.sqrt(Math.max(sum, 1e-300)) : sum / L[b * s + b];
        }
        let rest = z[a] - this.means[k * this.p + seen[a]];
        for (let h = 0; h < a; h++) rest -= L[a * s + h] * y[h];
        y[a] = rest / L[a * s + a];
        log -= Math.log(L[a * s + a]) + 0.5 * y[a] * y[a];
      }
      resp[k] = log;
      for (const j of lost) {
        const at = (k * this.p + j) * s;
        let m = this.means[k * this.p + j],
          v = this.cov(k, j, j);
        for (let a = 0; a < s; a++) {
          let g = this.cov(k, j, seen[a]);
          for (let h = 0; h < a; h++) g -= L[a * s + h] * gain[at + h];
          g /= L[a * s + a];
          gain[at + a] = g;
          m += g * y[a];
          v -= g * g;
        }
        mean[k * this.p + j] = m;
        sd[k * this.p + j] = Math.sqrt(Math.max(v, 1e-300));
      }
    }
    this.normalize(resp);
    return { row, seen, lost, resp, mean, sd, gain };
  }

  /* Log densities become responsibilities within each fit, over the number of fits. */
  normalize(logs) {
    const fits = this.bounds.length - 1;
    for (let f = 0; f < fits; f++) {
      let top = -Infinity,
        sum = 0;
      for (let k = this.bounds[f]; k < this.bounds[f + 1]; k++) top = Math.max(top, logs[k]);
      for (let k = this.bounds[f]; k < this.bounds[f + 1]; k++) {
        logs[k] = logs[k] > top - 30 ? Math.exp(logs[k] - top) : 0;
        sum += logs[k];
      }
      for (let k = this.bounds[f]; k < this.bounds[f + 1]; k++) logs[k] /= sum * fits;
    }
  }

  /* Components that matter to a gap: [responsibility, mean, sd] of the score, summing to one. */
  parts(posterior, j) {
    const found = [];
    let total = 0;
    for (let k = 0; k < this.c; k++)
      if (posterior.resp[k] > this.negligible) {
        total += posterior.resp[k];
        found.push([posterior.resp[k], posterior.mean[k * this.p + j], posterior.sd[k * this.p + j], k]);
      }
    for (const part of found) part[0] /= total;
    return found;
  }

  /* Mean and standard deviation of a gap on the feature's own scale. */
  moments(posterior, j) {
    const middle = this.grids[j * this.size + (this.size >> 1)];
    let first = 0,
      second = 0;
    for (const [weight, mean, sd] of this.parts(posterior, j))
      for (let q = 0; q < this.nodes.length; q++) {
        const value = this.value(j, mean + sd * this.nodes[q]) - middle;
        first += weight * this.weights[q] * value;
        second += weight * this.weights[q] * value * value;
      }
    return { mean: middle + first, sd: Math.sqrt(Math.max(second - first * first, 0)) };
  }

  /* Probability that a gap's score lies below each of some scores. */
  cdf(parts, score) {
    let below = 0;
    for (const [weight, mean, sd] of parts) below += weight * normalCdf((score - mean) / sd);
    return below;
  }

  /* Value below which a gap lies with a given probability, calibrated where the model is. */
  quantile(posterior, j, level) {
    const parts = this.parts(posterior, j);
    let low = Math.min(...parts.map(([, m, s]) => m - 8 * s)),
      high = Math.max(...parts.map(([, m, s]) => m + 8 * s));
    const wanted = this.level(j, level, spreadOf(parts));
    for (let step = 0; step < 40; step++) {
      const middle = (low + high) / 2;
      if (this.cdf(parts, middle) < wanted) low = middle;
      else high = middle;
    }
    return this.value(j, (low + high) / 2);
  }

  /* Level of a feature's posterior at which hidden values lay with a given probability, by
     how much is known of the gap and by the feature. */
  level(j, level, spread) {
    if (!this.calibration) return level;
    const steps = this.calibration.length / this.p;
    let wanted = level;
    if (this.knots) {
      const after = Math.min(Math.max(below(this.knots, spread) + 1, 1), this.knots.length - 1),
        [first, last] = [this.knots[after - 1], this.knots[after]],
        share = Math.min(Math.max((spread - first) / (last - first), 0), 1);
      wanted =
        (1 - share) * along(this.spreadLevels, (after - 1) * steps, steps, level) +
        share * along(this.spreadLevels, after * steps, steps, level);
    }
    return along(this.calibration, j * steps, steps, wanted);
  }

  /* Scores of the edges of bins. */
  scores(j, edges) {
    return edges.map((edge) => this.edge(j, edge));
  }

  /* Probability of each bin, given the scores of its edges; invisible contributions are left out. */
  masses(posterior, j, scores) {
    const parts = this.parts(posterior, j).filter(([weight]) => weight > 5e-4),
      levels = scores.map((score) => this.cdf(parts, score));
    return levels.slice(1).map((level, i) => Math.max(level - levels[i], 0));
  }

  /* Joint probability of bins of two gaps: [x][y], from each component's line of y on x. */
  jointMasses(posterior, [i, j], [edgesX, edgesY]) {
    const zx = this.scores(i, edgesX),
      zy = this.scores(j, edgesY);
    const nx = zx.length - 1,
      ny = zy.length - 1,
      s = posterior.seen.length,
      out = new Float64Array(nx * ny);
    for (const [weight, meanX, sdX, k] of this.parts(posterior, i)) {
      if (weight < 1e-4) continue;
      let cov = this.cov(k, i, j);
      for (let h = 0; h < s; h++)
        cov -= posterior.gain[(k * this.p + i) * s + h] * posterior.gain[(k * this.p + j) * s + h];
      const meanY = posterior.mean[k * this.p + j],
        sdY = posterior.sd[k * this.p + j],
        slope = cov / (sdX * sdX);
      const rest = Math.sqrt(Math.max(sdY * sdY - slope * cov, 1e-8));
      for (let a = 0; a < nx; a++) {
        const mass = weight * (normalCdf((zx[a + 1] - meanX) / sdX) - normalCdf((zx[a] - meanX) / sdX));
        if (mass < 1e-9) continue;
        const center = meanY + slope * ((zx[a] + zx[a + 1]) / 2 - meanX);
        let before = normalCdf((zy[0] - center) / rest);
        for (let b = 0; b < ny; b++) {
          const after = normalCdf((zy[b + 1] - center) / rest);
          out[a * ny + b] += mass * (after - before);
          before = after;
        }
      }
    }
    return out;
  }
}

/* A row of a table at a place between 0 and 1, linear between its entries. */
function along(table, start, length, place) {
  const at = place * (length - 1),
    i = Math.min(Math.floor(at), length - 2);
  return table[start + i] + (at - i) * (table[start + i + 1] - table[start + i]);
}

/* Standard deviation of a gap's score. */
function spreadOf(parts) {
  let first = 0,
    second = 0;
  for (const [weight, mean, sd] of parts) {
    first += weight * mean;
    second += weight * (mean * mean + sd * sd);
  }
  return Math.sqrt(Math.max(second - first * first, 0));
}

/* Place of the last entry of a rising list that is not above a value; -1 if there is none. */
function below(list, value) {
  let low = 0,
    high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/* Normal distribution function; error below 7.5e-8 (Abramowitz & Stegun 1964, 26.2.17). */
function normalCdf(x) {
  const size = Math.abs(x);
  if (size > 7) return x < 0 ? 0 : 1;
  const t = 1 / (1 + 0.2316419 * size);
  const sum =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const tail = 0.3989422804014327 * Math.exp(-0.5 * size * size) * sum;
  return x < 0 ? tail : 1 - tail;
}
