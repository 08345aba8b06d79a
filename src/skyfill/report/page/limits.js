/* Normal distributions of which some coordinates are known to lie within limits.

   A window is {low, high, noise}: the limits in normal scores, infinite where there is none, and the
   variance of a soft limit. The formulas are those of the library (truncated_kernels.py and
   limited_kernels.py): one window is exact, several are met by expectation propagation. */

const ROOT_2PI = Math.sqrt(2 * Math.PI);

/* From here on a tail comes from its continued fraction. */
const TAIL = 2.5;

/* Density over upper tail of a standard normal, with enough terms for full precision. */
function tailFraction(x) {
  let fraction = x;
  for (let term = Math.ceil(300 / (x * x)) + 8; term > 0; term--) fraction = x + term / fraction;
  return fraction;
}

/* Normal distribution function, to full precision also in its lower tail. */
function normalCdf(z) {
  const size = Math.abs(z),
    density = Math.exp(-0.5 * z * z) / ROOT_2PI;
  if (size >= TAIL) {
    const tail = density / tailFraction(size);
    return z < 0 ? tail : 1 - tail;
  }
  let sum = z,
    term = z;
  for (let n = 3; Math.abs(term) > 1e-17; n += 2) {
    term *= (z * z) / n;
    sum += term;
  }
  return 0.5 + density * sum;
}

/* Log of the normal distribution function at z, and density over distribution there. */
function logTail(z) {
  if (z > -TAIL) {
    const below = normalCdf(z);
    return [Math.log(below), Math.exp(-0.5 * z * z) / (ROOT_2PI * below)];
  }
  const fraction = tailFraction(-z);
  return [-0.5 * z * z - Math.log(ROOT_2PI * fraction), fraction];
}

/* Log probability of a window under a normal, and the normal's mean and variance within it. */
function throughWindow(mean, variance, { low, high, noise }) {
  if (low === -Infinity && high === Infinity) return [0, mean, variance];
  const scale = Math.sqrt(variance + noise),
    a = (low - mean) / scale,
    b = (high - mean) / scale;
  let log, step, slope;
  if (high === Infinity) {
    const [part, ratio] = logTail(-a);
    [log, step, slope] = [part, ratio, ratio * (ratio - a)];
  } else if (low === -Infinity) {
    const [part, ratio] = logTail(b);
    [log, step, slope] = [part, -ratio, ratio * (ratio + b)];
  } else {
    /* From the side where the window lies: the difference of two tails is then no cancellation. */
    const flip = a + b > 0,
      [logNear, ratioNear] = logTail(flip ? -a : b),
      [logFar, ratioFar] = logTail(flip ? -b : a);
    const left = -Math.expm1(Math.min(logFar - logNear, -1e-12)),
      near = ratioNear / left,
      far = (ratioFar * Math.exp(logFar - logNear)) / left,
      [atLow, atHigh] = flip ? [near, far] : [far, near];
    log = logNear + Math.log(left);
    step = atLow - atHigh;
    slope = step * step - a * atLow + b * atHigh;
  }
  const gain = variance / scale;
  return [log, mean + gain * step, Math.max(variance - gain * gain * slope, 1e-9 * variance)];
}

/* A centered Gaussian within windows, approximated by a Gaussian. `cov` is a list of rows. Returns the
   log probability, the pull `alpha` and the loss of covariance `W` that the windows mean for other
   coordinates, and mean and variance of each coordinate when its own window is left out: within the
   window, that normal is its distribution. */
function propagate(cov, windows, { sweeps, settled }) {
  const c = windows.length,
    S = cov.map((row) => row.slice());
  const mean = new Float64Array(c),
    tau = new Float64Array(c),
    nu = new Float64Array(c);
  let logDet = 0;
  const cavityOf = (i) => {
    const free = Math.max(1 / S[i][i] - tau[i], 1e-12 / S[i][i]);
    return [(mean[i] / S[i][i] - nu[i]) / free, free];
  };
  for (let sweep = 0; sweep < (c > 1 ? sweeps : 1); sweep++) {
    let change = 0;
    for (let i = 0; i < c; i++) {
      const spread = S[i][i],
        [at, free] = cavityOf(i),
        [, inside, variance] = throughWindow(at, 1 / free, windows[i]);
      const newTau = Math.max(1 / variance - free, 0),
        newNu = newTau > 0 ? inside / variance - at * free : 0,
        more = newTau - tau[i],
        shrink = 1 + more * spread,
        kick = (newNu - nu[i] - more * mean[i]) / shrink;
      change = Math.max(
        change,
        Math.abs(inside - mean[i]) * Math.sqrt(free),
        Math.abs(variance - spread) * free,
      );
      const column = S.map((row) => row[i]);
      for (let a = 0; a < c; a++) {
        mean[a] += column[a] * kick;
        for (let b = 0; b < c; b++)
          if (a === i || b === i) S[a][b] /= shrink;
          else S[a][b] -= column[a] * column[b] * (more / shrink);
      }
      logDet += Math.log(shrink);
      [tau[i], nu[i]] = [newTau, newNu];
    }
    if (change < settled) break;
  }
  let log = -0.5 * logDet;
  const cavity = windows.map((window, i) => {
    const [at, free] = cavityOf(i),
      both = free + tau[i];
    log += throughWindow(at, 1 / free, window)[0] + 0.5 * Math.log(both / free) + 0.5 * mean[i] * nu[i];
    log -= 0.5 * ((at * free + nu[i]) ** 2 / both - at * at * free);
    return [at, 1 / free];
  });
  const alpha = nu.map((value, i) => value - tau[i] * mean[i]),
    W = S.map((row, a) => row.map((s, b) => (a === b ? tau[a] : 0) - tau[a] * s * tau[b]));
  return { log, alpha, W, cavity };
}

/* Whether a window contains all of a distribution but for a negligible part. */
function changesLittle(parts, { low, high, noise }, { sure }) {
  return parts.every(([, mean, sd]) => {
    const reach = sure * Math.sqrt(sd * sd + noise);
    return low < mean - reach && mean + reach < high;
  });
}

/* The distribution of a score within a window, in narrow cells of equal width. `parts` are
   [responsibility, mean, sd] of normals. */
function tabulate(parts, window, { cells, below, above }) {
  const { low, high, noise } = window;
  const [down, up] = low === -Infinity ? [above, below] : [below, above];
  let first = Infinity,
    last = -Infinity;
  const logs = parts.map(([, mean, sd]) => {
    const [log, inside, variance] = throughWindow(mean, sd * sd, window),
      reach = Math.sqrt(variance);
    first = Math.min(first, inside - down * reach);
    last = Math.max(last, inside + up * reach);
    return log;
  });
  if (noise === 0) [first, last] = [Math.max(first, low), Math.min(last, high)];
  const width = Math.max((last - first) / cells, 1e-12),
    root = Math.sqrt(noise);
  const mass = Float64Array.from({ length: cells }, (_, i) => {
    const at = first + (i + 0.5) * width;
    let sum = 0;
    parts.forEach(([weight, mean, sd], k) => {
      const z = (at - mean) / sd;
      sum += (weight / sd) * Math.exp(Math.max(-0.5 * z * z - logs[k], -700));
    });
    if (noise === 0) return sum;
    /* One limit: the tail itself, since a difference of two would lose it. */
    if (high === Infinity) return sum * normalCdf((at - low) / root);
    return sum * Math.max(normalCdf((high - at) / root) - normalCdf((low - at) / root), 0);
  });
  const total = mass.reduce((a, b) => a + b, 0);
  /* Where nothing is left of the normals, next to the limit is the best guess. */
  if (!(total > 0)) mass[low > -Infinity ? 0 : cells - 1] = 1;
  return { first, width, mass: total > 0 ? mass.map((m) => m / total) : mass };
}

/* Probability of a lower score. */
function levelIn({ first, width, mass }, score) {
  const at = (score - first) / width;
  return mass.reduce((sum, m, i) => sum + m * Math.min(Math.max(at - i, 0), 1), 0);
}

/* Score below which a tabulated distribution has a given probability. */
function scoreAt({ first, width, mass }, level) {
  let left = level;
  for (let i = 0; i < mass.length; i++) {
    if (left <= mass[i] && mass[i] > 0) return first + (i + left / mass[i]) * width;
    left -= mass[i];
  }
  return first + mass.length * width;
}
