/* Each component's view of an object, as the library computes it.

   Each feature is mapped to a normal score by its margin. Every component of every fit is a Gaussian
   over the scores: given the seen ones, the others follow by regression, and limits by expectation
   propagation.

   Cells are what is known of an object: arrays of values, of limits (the value is larger than `lower`,
   smaller than `upper`) and of errors, of a value or of a limit; NaN where there is none. */

function emptyCells(p) {
  const nothing = () => new Float64Array(p).fill(NaN);
  return { values: nothing(), lower: nothing(), upper: nothing(), errors: nothing() };
}

function copyCells(cells) {
  return Object.fromEntries(Object.entries(cells).map(([name, array]) => [name, array.slice()]));
}

class Mixture {
  constructor(facts) {
    Object.assign(this, facts);
    for (const name of [
      "logWeights",
      "means",
      "covs",
      "logLost",
      "logSeen",
      "calibration",
      "knots",
      "spreadLevels",
      "withinLimits",
      "low",
      "high",
      "related",
    ])
      this[name] = unpack(facts[name]);
    this.p = this.margins.length;
    this.c = this.logWeights.length;
    this.momentTables = [];
    this.triangle = (this.p * (this.p + 1)) / 2;
    /* Whether the model treats a gap as evidence. */
    this.hints = this.logLost.some((log) => log !== 0);
    this.nothing = this.condition(emptyCells(this.p), false);
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

  /* What a cell without a value is limited to, in scores; null if nothing is known. */
  window({ lower, upper, errors }, j) {
    /* A limit at or below zero says nothing of what is positive. */
    const least = this.margins[j].kind === "logarithmic" ? Number.MIN_VALUE : -Infinity,
      hasLower = lower[j] >= least,
      hasUpper = upper[j] >= least;
    if (!hasLower && !hasUpper) return null;
    const low = hasLower ? this.score(j, lower[j]) : -Infinity,
      high = hasUpper ? this.score(j, upper[j]) : Infinity;
    return {
      low,
      high: high > low ? high : low + this.limits.narrowest,
      noise: this.noise(j, hasLower ? lower[j] : upper[j], errors[j]),
    };
  }

  /* Variance, in scores, of an error of a value or a limit. */
  noise(j, value, error) {
    if (!(error > 0)) return 0;
    let ends = [value + error, value - error];
    if (this.margins[j].kind === "logarithmic" && value > 0) {
      const factor = Math.exp(Math.min(error / value, this.mostLog));
      ends = [value * factor, value / factor];
    }
    return ((this.score(j, ends[0]) - this.score(j, ends[1])) / 2) ** 2;
  }

  /* Each component's view of an object: responsibility, and mean, sd and gain of each gap. With `hint`,
     a missing value is a gap, which may be informative; otherwise it is merely unknown. A limit says
     why a value is missing, so it does not count as a gap once more. */
  condition(cells, hint = true) {
    const { values, errors } = cells,
      seen = [],
      lost = [];
    for (let j = 0; j < this.p; j++) (Number.isNaN(values[j]) ? lost : seen).push(j);
    const windows = new Map(lost.map((j) => [j, this.window(cells, j)]).filter(([, window]) => window));
    const s = seen.length,
      z = seen.map((j) => this.score(j, values[j])),
      noise = seen.map((j) => this.noise(j, values[j], errors[j]));
    const resp = new Float64Array(this.c),
      mean = new Float64Array(this.c * this.p),
      sd = new Float64Array(this.c * this.p);
    const gain = new Float64Array(this.c * this.p * s),
      L = new Float64Array(s * s),
      y = new Float64Array(s);
    for (let k = 0; k < this.c; k++) {
      let log = this.logWeights[k] - 0.5 * s * Math.log(2 * Math.PI);
      if (hint) {
        for (const j of seen) log += this.logSeen[k * this.p + j];
        for (const j of lost) if (!windows.has(j)) log += this.logLost[k * this.p + j];
      }
      for (let a = 0; a < s; a++) {
        for (let b = 0; b <= a; b++) {
          let sum = this.cov(k, seen[a], seen[b]) + (a === b ? noise[a] : 0);
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
    const limited = [...windows.keys()],
      posterior = { cells, seen, lost, limited, windows, resp, mean, sd, gain, met: [], tables: [] };
    if (limited.length) this.meetLimits(posterior);
    this.normalize(resp);
    return posterior;
  }

  /* Covariance of two gaps given the seen features, limits left aside. */
  covarianceOf({ seen, gain }, k, i, j) {
    const s = seen.length;
    let cov = this.cov(k, i, j);
    for (let h = 0; h < s; h++) cov -= gain[(k * this.p + i) * s + h] * gain[(k * this.p + j) * s + h];
    return cov;
  }

  /* Bring the limits into each fit, the likeliest component first: a limit never makes an object more
     likely, so components far behind need not be followed up. */
  meetLimits(posterior) {
    const { resp } = posterior;
    for (let f = 0; f < this.bounds.length - 1; f++) {
      const [start, end] = [this.bounds[f], this.bounds[f + 1]];
      let top = start;
      for (let k = start; k < end; k++) if (resp[k] > resp[top]) top = k;
      let best = resp[top] += this.meetOne(posterior, top);
      for (let k = start; k < end; k++) {
        if (k === top) continue;
        resp[k] = resp[k] < best - this.limits.behind ? -Infinity : resp[k] + this.meetOne(posterior, k);
        best = Math.max(best, resp[k]);
      }
    }
  }

  /* Bring the limits into one component; return their log probability. A gap with a limit keeps the
     distribution that it has but for its own limit. */
  meetOne(posterior, k) {
    const { lost, limited, windows, mean, sd } = posterior,
      at = (j) => k * this.p + j;
    const shifted = limited.map((j) => {
      const { low, high, noise } = windows.get(j);
      return { low: low - mean[at(j)], high: high - mean[at(j)], noise };
    });
    const cov = limited.map((j) => this.withLimited(posterior, k, j)),
      found = propagate(cov, shifted, this.limits);
    posterior.met[k] = found;
    for (const j of lost) {
      if (windows.has(j)) continue;
      const shared = this.withLimited(posterior, k, j);
      mean[at(j)] += innerProduct(shared, found.alpha);
      sd[at(j)] = Math.sqrt(Math.max(sd[at(j)] ** 2 - quadratic(shared, found.W, shared), 1e-300));
    }
    limited.forEach((j, a) => {
      mean[at(j)] += found.cavity[a][0];
      sd[at(j)] = Math.sqrt(found.cavity[a][1]);
    });
    return found.log;
  }

  /* Covariances of a gap with those that have limits, limits left aside. */
  withLimited(posterior, k, j) {
    return posterior.limited.map((i) => this.covarianceOf(posterior, k, i, j));
  }

  /* What the limits take away from the covariance of two other gaps. */
  tightening(posterior, k, i, j) {
    if (!posterior.limited.length) return 0;
    const [first, second] = [i, j].map((gap) => this.withLimited(posterior, k, gap));
    return quadratic(first, posterior.met[k].W, second);
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
      /* No component can have made the object: none is more likely than another. */
      if (sum === 0) {
        logs.fill(1, this.bounds[f], this.bounds[f + 1]);
        sum = this.bounds[f + 1] - this.bounds[f];
      }
      for (let k = this.bounds[f]; k < this.bounds[f + 1]; k++) logs[k] /= sum * fits;
    }
  }
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

function innerProduct(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/* a' W b */
function quadratic(a, W, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * innerProduct(W[i], b);
  return sum;
}
