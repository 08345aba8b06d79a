"""The simplest kernel for posteriors in CUDA C, to compare with in gpu.py."""

import cupy
import numpy as np

from skyfill.network.mixture.mixture import precisions_of

NAIVE = r"""
// A thread per row, each component after the other: the simplest kernel that is right.
extern "C" __global__ void naive(int n, const T* Z, const T* means, const T* precisions,
                                 const T* logs, T* out, T* spread) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n) return;
  int lost[P], m = 0;
  T x[P], sum[P], square[P], L[P][P], z[P], y[P], top = -1e30, total = 0;
  for (int j = 0; j < P; j++) {
    x[j] = Z[(size_t)r * P + j]; sum[j] = 0; square[j] = 0;
    if (isnan(x[j])) lost[m++] = j;
  }
  for (int k = 0; k < C; k++) {
    const T *mu = means + k * P, *S = precisions + k * P * P;
    T c[P], quad = 0, log_det = 0;
    for (int j = 0; j < P; j++) c[j] = isnan(x[j]) ? (T)0 : x[j] - mu[j];
    for (int j = 0; j < P; j++)
      for (int i = 0; i < P; i++) quad += c[j] * S[j * P + i] * c[i];
    for (int a = 0; a < m; a++) {
      T right = 0;
      for (int i = 0; i < P; i++) right += S[lost[a] * P + i] * c[i];
      for (int b = 0; b <= a; b++) {
        T value = S[lost[a] * P + lost[b]];
        for (int h = 0; h < b; h++) value -= L[a][h] * L[b][h];
        L[a][b] = a == b ? sqrt(value) : value / L[b][b];
      }
      for (int h = 0; h < a; h++) right -= L[a][h] * z[h];
      z[a] = right / L[a][a]; quad -= z[a] * z[a]; log_det -= log(L[a][a]);
    }
    T weight = logs[k] + log_det - (T)0.5 * quad;
    T keep = weight > top ? exp(top - weight) : (T)1;
    T share = weight > top ? (T)1 : exp(weight - top);
    top = weight > top ? weight : top; total = total * keep + share;
    for (int a = m - 1; a >= 0; a--) {
      T value = z[a];
      for (int h = a + 1; h < m; h++) value -= L[h][a] * z[h];
      z[a] = value / L[a][a];
    }
    for (int a = 0; a < m; a++) {
      T var = 0;
      for (int h = a; h < m; h++) {
        T value = h == a ? (T)1 : (T)0;
        for (int g = a; g < h; g++) value -= L[h][g] * y[g];
        y[h] = value / L[h][h]; var += y[h] * y[h];
      }
      T mean = mu[lost[a]] - z[a];
      sum[a] = sum[a] * keep + share * mean;
      square[a] = square[a] * keep + share * (mean * mean + var);
    }
  }
  for (int a = 0; a < m; a++) {
    T mean = sum[a] / total;
    out[(size_t)r * P + lost[a]] = mean;
    spread[(size_t)r * P + lost[a]] = sqrt(square[a] / total - mean * mean);
  }
}
"""


def make_naive(network, Z, dtype):
    """Return a call of the kernel, from scores on the card to scores on the card."""
    p, c = len(network), sum(network.n_components)
    kind = "double" if dtype == np.float64 else "float"
    source = f"#define T {kind}\n#define P {p}\n#define C {c}\n{NAIVE}"
    kernel = cupy.RawKernel(source, "naive")
    precisions, logs = precisions_of(network.fits)
    np.einsum("kjj->kj", precisions)[:] *= 2
    means = np.concatenate([fit.means for fit in network.fits])
    parts = [cupy.asarray(np.ascontiguousarray(a), dtype) for a in (means, precisions, logs)]
    Z = Z.astype(dtype)
    out, spread, n = Z.copy(), cupy.zeros_like(Z), len(Z)
    blocks = -(-n // 128)
    return lambda: kernel((blocks,), (128,), (np.int32(n), Z, *parts, out, spread))
