/* The distribution of each gap of an object, as the library computes it.

   It is a mixture of normals in the scores of its feature. Mean and sd on the feature's own scale come
   from tables of its smoothed margin (moments.js); within limits, from a sum over narrow cells. */

class Engine extends Mixture {
  /* Highest score of values up to this one: an atom is wholly below its own edge. */
  edge(j, value) {
    const { x, z } = this.margins[j];
    const at = below(x, value);
    return at > 0 && x[at] === value && x[at - 1] === value ? z[at] : this.score(j, value);
  }

  /* Value of a feature at a normal score. */
  value(j, score) {
    const { x, z, rises } = this.margins[j],
      at = below(z, score),
      last = x.length - 1;
    if (at < 0) return x[0] + (score - z[0]) * rises[0];
    if (at === last) return x[last] + (score - z[last]) * rises[1];
    return x[at] + (score - z[at]) * ((x[at + 1] - x[at]) / (z[at + 1] - z[at]));
  }

  /* Tables of the moments of a feature. */
  momentsOf(j) {
    return (this.momentTables[j] ??= tabulateMoments(
      (score) => this.value(j, score),
      this.margins[j],
      this.moment,
    ));
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

  /* Distribution of a gap within its limits. */
  table(posterior, j) {
    return (posterior.tables[j] ??= tabulate(this.parts(posterior, j), posterior.windows.get(j), this.limits));
  }

  /* A filled value that does not contradict hard limits: scores end where a map ends, limits may not. */
  within({ cells, windows }, j, value) {
    if (!windows.has(j) || cells.errors[j] > 0) return value;
    const { [j]: low } = cells.lower,
      { [j]: high } = cells.upper;
    if (Number.isFinite(low)) value = Math.max(value, low);
    return Number.isFinite(high) ? Math.min(value, high) : value;
  }

  /* What a gap gains in spread, in scores, where the object lies beyond what the feature was learned from. */
  doubtOf({ cells, windows }, j) {
    if (!this.low || windows.has(j)) return 0;
    let most = 0;
    for (let k = 0; k < this.p; k++) {
      const at = j * this.p + k,
        score = this.score(k, cells.values[k]);
      if (!Number.isNaN(cells.values[k]))
        most = Math.max(most, Math.max(score - this.high[at], this.low[at] - score) * this.related[at]);
    }
    return this.doubt * most;
  }

  /* How far the scores of such a gap are stretched, and about which; null if they are not. */
  stretch(posterior, j) {
    posterior.stretches ??= [];
    if (posterior.stretches[j] === undefined) {
      const more = this.doubtOf(posterior, j);
      posterior.stretches[j] = null;
      if (more > 0) {
        const spread = Math.max(spreadOf(this.parts(posterior, j)), this.leastSpread),
          about = this.score(j, this.value(j, this.quantileScore(posterior, j, 0.5)));
        posterior.stretches[j] = { more, about, factor: Math.hypot(spread, more) / spread };
      }
    }
    return posterior.stretches[j];
  }

  /* Mean and standard deviation of a gap on the feature's own scale. */
  moments(posterior, j) {
    const table = this.momentsOf(j);
    let first = 0,
      second = 0;
    const add = (weight, level, score) => {
      const [value, variance] = normalValue(table, level, score, this.moment);
      first += weight * value;
      second += weight * (value * value + variance);
    };
    const parts = this.parts(posterior, j),
      window = posterior.windows.get(j);
    if (window && !changesLittle(parts, window, this.limits)) {
      const { first: start, width, mass } = this.table(posterior, j);
      const level = spreadLevel(width / Math.sqrt(12), this.moment);
      mass.forEach((weight, i) => add(weight, level, start + (i + 0.5) * width));
    } else
      for (const [weight, mean, sd] of parts) {
        const { nodes, weights, spreads } = this.moment,
          level = spreadLevel(sd, this.moment),
          rest = Math.sqrt(Math.max(sd * sd - spreads[level] ** 2, 0));
        nodes.forEach((node, q) => add(weight * weights[q], level, mean + rest * node));
      }
    const mean = this.within(posterior, j, table.middle + table.scale * first);
    const sd = table.scale * Math.sqrt(Math.max(second - first * first, 0)),
      { more = 0 } = this.stretch(posterior, j) ?? {},
      score = this.score(j, mean);
    return { mean, sd: Math.hypot(sd, (this.value(j, score + more) - this.value(j, score - more)) / 2) };
  }

  /* Probability that a gap's score lies below each of some scores. */
  cdf(parts, score) {
    let below = 0;
    for (const [weight, mean, sd] of parts) below += weight * normalCdf((score - mean) / sd);
    return below;
  }

  /* Value below which a gap lies with a given probability, calibrated where the model is. */
  quantile(posterior, j, level) {
    if (posterior.windows.has(j)) {
      const steps = this.withinLimits && this.withinLimits.length / this.p,
        wanted = steps ? along(this.withinLimits, j * steps, steps, level) : level;
      return this.within(posterior, j, this.value(j, scoreAt(this.table(posterior, j), wanted)));
    }
    const score = this.quantileScore(posterior, j, level),
      wider = this.stretch(posterior, j);
    if (!wider) return this.value(j, score);
    const old = this.score(j, this.value(j, score));
    return this.value(j, wider.about + wider.factor * (old - wider.about));
  }

  /* Score below which a gap without limits lies with a given probability, before it is stretched. */
  quantileScore(posterior, j, level) {
    const parts = this.parts(posterior, j);
    let low = Math.min(...parts.map(([, m, s]) => m - 8 * s)),
      high = Math.max(...parts.map(([, m, s]) => m + 8 * s));
    const wanted = this.level(j, level, spreadOf(parts));
    for (let step = 0; step < 40; step++) {
      const middle = (low + high) / 2;
      if (this.cdf(parts, middle) < wanted) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
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
      { about, factor } = this.stretch(posterior, j) ?? { about: 0, factor: 1 },
      levels = posterior.windows.has(j)
        ? scores.map((score) => levelIn(this.table(posterior, j), score))
        : scores.map((score) => this.cdf(parts, about + (score - about) / factor));
    return levels.slice(1).map((level, i) => Math.max(level - levels[i], 0));
  }

  /* Joint probability of bins of two gaps: [x][y], from each component's line of y on x. */
  jointMasses(posterior, [i, j], [edgesX, edgesY]) {
    const zx = this.scores(i, edgesX),
      zy = this.scores(j, edgesY);
    const nx = zx.length - 1,
      ny = zy.length - 1,
      out = new Float64Array(nx * ny);
    for (const [weight, meanX, sdX, k] of this.parts(posterior, i)) {
      if (weight < 1e-4) continue;
      const cov = this.covarianceOf(posterior, k, i, j) - this.tightening(posterior, k, i, j),
        meanY = posterior.mean[k * this.p + j],
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
