"""Structure by BIC from a covariance matrix alone: tabu hill climbing over DAGs.

For linear-Gaussian families the likelihood depends on the data only through the covariance matrix:
``-(n/2) sum_j log v_j`` with v_j the residual variance of node j given its parents. After one pass
for the (expected) covariance the search costs nothing per row.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.random import Generator

from skyfill.network._array import Array
from skyfill.network.single.graph import Parents

# Steps for which a changed arc stays as it is, and steps without a new best before giving up.
TABU_STEPS, PATIENCE = 10, 25
# Restarts after the first climb; each turns a quarter of the arcs around, at least this many.
RESTARTS, MIN_TURNED = 60, 5
# A residual variance below this share counts as this; gains per row below TINY count as none.
MIN_RESIDUAL, TINY = 1e-9, 1e-9


@njit(cache=True, nogil=True)
def _log_residual(cov, parents, child, skip, extra, work):  # type: ignore[no-untyped-def]
    """Log residual variance of a child given its parents less `skip` plus `extra` (-1: none)."""
    p = cov.shape[0]
    family = np.empty(p + 1, np.int64)
    k = 0
    for i in range(p):
        if (parents[child, i] and i != skip) or i == extra:
            family[k] = i
            k += 1
    family[k] = child
    for a in range(k + 1):
        for b in range(a + 1):
            s = cov[family[a], family[b]]
            for h in range(b):
                s -= work[a, h] * work[b, h]
            if a == b:
                work[a, a] = np.sqrt(max(s, MIN_RESIDUAL))
            else:
                work[a, b] = s / work[b, b]
    return 2.0 * np.log(work[k, k])


@njit(cache=True, nogil=True)
def _refresh(cov, n, penalty, parents, child, gain, work):  # type: ignore[no-untyped-def]
    """Recompute what toggling each arc i -> child would gain."""
    now = _log_residual(cov, parents, child, -1, -1, work)
    for i in range(cov.shape[0]):
        if i == child:
            continue
        skip, extra, sign = (i, -1, 1.0) if parents[child, i] else (-1, i, -1.0)
        then = _log_residual(cov, parents, child, skip, extra, work)
        gain[child, i] = 0.5 * n * (now - then) + sign * penalty[child, i]


@njit(cache=True, nogil=True)
def _reaches(parents, start, end, skip_direct):  # type: ignore[no-untyped-def]
    """Whether a directed path leads from start to end (other than the arc itself)."""
    p = parents.shape[0]
    seen = np.zeros(p, np.bool_)
    stack = np.empty(p, np.int64)
    stack[0], depth = start, 1
    seen[start] = True
    while depth:
        depth -= 1
        node = stack[depth]
        for child in range(p):
            if not parents[child, node] or (skip_direct and node == start and child == end):
                continue
            if child == end:
                return True
            if not seen[child]:
                seen[child] = True
                stack[depth] = child
                depth += 1
    return False


@njit(cache=True, nogil=True)
def _best_move(parents, gain, frozen, step, most, tie):  # type: ignore[no-untyped-def]
    """Find the best allowed move: (gain, child, parent, whether it is a reversal).

    Moves that are equal up to rounding (they lead to equivalent graphs) go to the first of them,
    so that units and the like cannot decide.
    """
    p = parents.shape[0]
    best, child, parent, turn = -np.inf, -1, -1, False
    size = np.zeros(p, np.int64)
    for j in range(p):
        for i in range(p):
            size[j] += parents[j, i]
    for j in range(p):
        for i in range(p):
            if i == j or frozen[i, j] > step:
                continue
            if parents[j, i]:
                if gain[j, i] > best + tie:
                    best, child, parent, turn = gain[j, i], j, i, False
                both = gain[j, i] + gain[i, j]
                if both > best + tie and size[i] < most and not _reaches(parents, i, j, True):
                    best, child, parent, turn = both, j, i, True
            elif gain[j, i] > best + tie and size[j] < most and not _reaches(parents, j, i, False):
                best, child, parent, turn = gain[j, i], j, i, False
    return best, child, parent, turn


@njit(cache=True, nogil=True)
def _climb_graph(cov, n, penalty, most, parents):  # type: ignore[no-untyped-def]
    """Tabu hill climbing from `parents` (changed in place); return the best graph met."""
    p = cov.shape[0]
    work, gain = np.empty((p + 1, p + 1)), np.zeros((p, p))
    frozen = np.zeros((p, p), np.int64)
    for child in range(p):
        _refresh(cov, n, penalty, parents, child, gain, work)
    best, top, score, idle, step = parents.copy(), 0.0, 0.0, 0, 0
    while idle < PATIENCE:
        move, child, parent, turn = _best_move(parents, gain, frozen, step, most, TINY * n)
        if child < 0:
            break
        parents[child, parent] = not parents[child, parent]
        if turn:
            parents[parent, child] = True
            _refresh(cov, n, penalty, parents, parent, gain, work)
        _refresh(cov, n, penalty, parents, child, gain, work)
        step += 1
        frozen[child, parent] = frozen[parent, child] = step + TABU_STEPS
        score += move
        idle += 1
        if score > top + TINY * n:
            best, top, idle = parents.copy(), score, 0
    return best


@njit(cache=True, nogil=True)
def _turn(parents, arcs):  # type: ignore[no-untyped-def]
    """Turn some arcs around, in place; an arc that would close a cycle is dropped instead."""
    for a in range(arcs.shape[0]):
        child, parent = arcs[a]
        parents[child, parent] = False
        if not _reaches(parents, parent, child, False):
            parents[parent, child] = True


@njit(cache=True, nogil=True)
def _total(cov, n, penalty, parents):  # type: ignore[no-untyped-def]
    """Penalized log-likelihood of a graph, up to a constant."""
    p = cov.shape[0]
    work = np.empty((p + 1, p + 1))
    score = 0.0
    for child in range(p):
        score -= 0.5 * n * _log_residual(cov, parents, child, -1, -1, work)
        for i in range(p):
            if parents[child, i]:
                score -= penalty[child, i]
    return score


def bic_search(
    moments: tuple[Array, float],
    penalty: Array,
    max_parents: int | None,
    *,
    rng: Generator,
    start: Parents | None = None,
) -> Parents:
    """Find a DAG with the best penalized likelihood for a covariance matrix.

    Tabu hill climbing, then restarts from the best graph with some of its arcs turned around:
    wrong directions are what traps a single climb.

    Parameters
    ----------
    moments : covariance matrix of shape (p, p), and the number of rows that it stands for
        The scale of the columns does not matter.
    penalty : symmetric array of shape (p, p)
        Price of an arc between two nodes, in units of log-likelihood: ``log(n) / 2`` is BIC.
    max_parents : int or None
        Most parents of a node; None for no limit.
    rng : Generator
        Chooses the arcs to turn.
    start : tuple of tuples of int, optional
        The graph to start from; by default no arcs.
    """
    cov, n = moments[0], float(moments[1])
    p = len(cov)
    scale = np.sqrt(np.diag(cov))
    cov = cov / np.outer(scale, scale)
    most = p if max_parents is None else max_parents
    best = np.zeros((p, p), np.bool_)
    for child, family in enumerate(start or ()):
        best[child, list(family)] = True
    best = _climb_graph(cov, n, penalty, most, best)
    top = _total(cov, n, penalty, best)
    for _ in range(RESTARTS):
        arcs = rng.permutation(np.argwhere(best))
        trial = best.copy()
        _turn(trial, arcs[: max(MIN_TURNED, len(arcs) // 4)])
        trial &= np.cumsum(trial, axis=1) <= most
        trial = _climb_graph(cov, n, penalty, most, trial)
        score = _total(cov, n, penalty, trial)
        if score > top + TINY * n:
            best, top = trial, score
    return tuple(tuple(np.flatnonzero(row).tolist()) for row in best)


def prune(cov: Array, n: int, parents: Parents, penalty: Array) -> Parents:
    """Drop arcs that are worth less than their price, one by one, the most worthless first.

    Parameters
    ----------
    cov : array of shape (p, p)
        Covariance matrix; the scale of the columns does not matter.
    n : int
        Number of rows that it stands for.
    parents : tuple of tuples of int
        The graph.
    penalty : array of shape (p, p)
        Price of each arc, in units of log-likelihood.
    """
    p = len(cov)
    scale = np.sqrt(np.diag(cov))
    cov = cov / np.outer(scale, scale)
    graph, gain = np.zeros((p, p), np.bool_), np.zeros((p, p))
    work = np.empty((p + 1, p + 1))
    for child, family in enumerate(parents):
        graph[child, list(family)] = True
        while graph[child].any():
            _refresh(cov, float(n), penalty, graph, child, gain, work)
            worst = int(np.where(graph[child], gain[child], -np.inf).argmax())
            if gain[child, worst] <= 0:
                break
            graph[child, worst] = False
    return tuple(tuple(np.flatnonzero(row).tolist()) for row in graph)
