"""The Gaussian Bayesian network: every node a linear regression on its parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from skyfill.errors import DataError, GraphError
from skyfill.network._array import Array, Rng, as_table, check_finite, check_names
from skyfill.network.single import posterior, reversal
from skyfill.network.single.graph import Parents, as_parents, find_node, topological_order
from skyfill.network.single.posterior import Gaps, Joint, Posterior, find_gaps
from skyfill.network.single.reversal import Nodes

if TYPE_CHECKING:
    import networkx


class MeanCov(NamedTuple):
    """Mean and covariance of the joint Gaussian."""

    mean: Array
    cov: Array


class Gaussian(NamedTuple):
    """A small Gaussian over named variables."""

    names: tuple[str, ...]
    mean: Array
    cov: Array


@dataclass(frozen=True)
class GaussianNetwork:
    """A Bayesian network of linear-Gaussian nodes.

    Node j is ``x_j = intercepts[j] + sum_k weights[j][k] * x_parents[j][k] + noise``, the noise
    normal with variance ``variances[j]`` (Shachter & Kenley 1989).

    Parameters
    ----------
    names : sequence of str, or None
        One distinct name per node; None numbers them ``x0, x1, ...``.
    parents : sequence of sequences of int or str
        The parents of each node, by index or by name; they must not close a cycle.
    intercepts : sequence of float
        One per node.
    weights : sequence of sequences of float
        ``weights[j][k]`` belongs to ``parents[j][k]``.
    variances : sequence of float
        Positive noise variance (not standard deviation) of each node.

    Examples
    --------
    >>> net = GaussianNetwork(["V", "I"], [[], ["V"]], [18.0, -1.0], [[], [1.0]], [1.0, 0.25])
    >>> net.joint().mean
    array([18., 17.])
    >>> net.posterior([[18.5, float("nan")]]).mean
    array([[18.5, 17.5]])
    """

    names: tuple[str, ...]
    parents: Parents
    intercepts: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    variances: tuple[float, ...]

    def __init__(
        self,
        names: Sequence[str] | None,
        parents: Sequence[Sequence[int | str]],
        intercepts: ArrayLike,
        weights: Sequence[ArrayLike],
        variances: ArrayLike,
    ) -> None:
        names = check_names(names, len(parents))
        graph = as_parents(parents, names)
        if len(weights) != len(names):
            raise DataError(f"weights are given for {len(weights)} nodes of {len(names)}")
        fields = {
            "names": names,
            "parents": graph,
            "intercepts": _floats(intercepts, "intercepts", len(names)),
            "weights": tuple(
                _floats(row, f"weights of {name!r}", len(family))
                for row, name, family in zip(weights, names, graph, strict=True)
            ),
            "variances": _floats(variances, "variances", len(names)),
        }
        for key, value in fields.items():
            object.__setattr__(self, key, value)
        for name, variance in zip(self.names, self.variances, strict=True):
            if variance <= 0:
                raise DataError(f"node {name!r} has variance {variance}; it must be positive")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        """The arcs as (parent, child) pairs of names."""
        return tuple(
            (self.names[parent], child)
            for child, family in zip(self.names, self.parents, strict=True)
            for parent in family
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The nodes, parents before children."""
        return topological_order(self.parents)

    @property
    def _nodes(self) -> Nodes:
        return Nodes(self.names, self.parents, self.intercepts, self.weights, self.variances)

    @cached_property
    def _coefficients(self) -> Array:
        return self._nodes.coefficients

    @cached_property
    def _joint(self) -> Joint:
        """The joint Gaussian by its precision matrix (I - B)^T D^-1 (I - B): no inversion."""
        whiten = (np.eye(len(self)) - self._coefficients) / np.sqrt(self.variances)[:, None]
        log_det = float(np.log(self.variances).sum())
        return Joint(self.joint().mean, whiten.T @ whiten, log_det)

    @cached_property
    def _mean_cov(self) -> MeanCov:
        order = np.array(self.order, dtype=np.int64)
        lower = (np.eye(len(self)) - self._coefficients)[np.ix_(order, order)]
        noise = np.diag(np.sqrt(np.array(self.variances)[order]))
        root = solve_triangular(lower, noise, lower=True, unit_diagonal=True)
        mean, cov = np.empty(len(self)), np.empty((len(self), len(self)))
        start = np.array(self.intercepts)[order]
        mean[order] = solve_triangular(lower, start, lower=True, unit_diagonal=True)
        cov[np.ix_(order, order)] = root @ root.T
        return MeanCov(mean, cov)

    def joint(self) -> MeanCov:
        """Mean (p,) and covariance (p, p) of the Gaussian that the network implies."""
        return MeanCov(self._mean_cov.mean.copy(), self._mean_cov.cov.copy())

    def loglik(self, X: ArrayLike) -> Array:
        """Observed-data log-likelihood of each row; gaps (NaN) are integrated out.

        Parameters
        ----------
        X : array of shape (n, p)
            Any cells may be NaN; a row without a seen cell has log-likelihood 0.

        Returns
        -------
        array of shape (n,)
        """
        return posterior.loglik(self._gaps(X), self._joint)

    def posterior(self, X: ArrayLike) -> Posterior:
        """Posterior mean and standard deviation of every cell given its row's seen cells.

        Parameters
        ----------
        X : array of shape (n, p)
            Any cells may be NaN.

        Returns
        -------
        Posterior
            `mean` and `sd`, both of shape (n, p); seen cells are bit-identical, with sd 0.
        """
        return posterior.posterior(self._gaps(X), self._joint)

    def posterior_cov(self, x: ArrayLike) -> Array:
        """Posterior covariance of the gaps of one row, in column order, shape (lost, lost)."""
        row = as_table(np.atleast_2d(np.asarray(x, dtype=np.float64)), len(self))
        check_finite(row, self.names)
        lost = np.flatnonzero(np.isnan(row[0]))
        factor = cho_factor(self._joint.precision[np.ix_(lost, lost)], lower=True)
        cov = cho_solve(factor, np.eye(lost.size))
        return (cov + cov.T) / 2.0

    def draws(self, X: ArrayLike, n_draws: int, rng: Rng = None) -> Array:
        """Joint posterior draws of each row's gaps.

        Parameters
        ----------
        X : array of shape (n, p)
            Any cells may be NaN; seen cells come back bit-identical in every draw.
        n_draws : int
            Number of completed tables.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        array of shape (n_draws, n, p)
        """
        gaps = self._gaps(X)
        n_gaps = int(np.isnan(gaps.X).sum())
        normal = np.random.default_rng(rng).standard_normal((n_draws, n_gaps))
        return posterior.draws(gaps, self._joint, normal)

    def condition(self, given: Mapping[str, float], of: Sequence[str] | None = None) -> Gaussian:
        """Distribution of some variables given the values of others.

        Parameters
        ----------
        given : mapping of name to value
            The evidence.
        of : sequence of str, optional
            The requested variables; by default all that are not given.

        Returns
        -------
        Gaussian
            `names`, `mean` and `cov` of the requested variables.

        Examples
        --------
        >>> net = GaussianNetwork(["V", "I"], [[], ["V"]], [18.0, -1.0], [[], [1.0]], [1.0, 0.25])
        >>> net.condition({"V": 18.2}, of=["I"]).mean
        array([17.2])
        """
        names = tuple(of) if of is not None else tuple(n for n in self.names if n not in given)
        self._check_disjoint(names, tuple(given))
        row = np.full(len(self), np.nan)
        row[[self.index(name) for name in given]] = list(given.values())
        mean = self.posterior(row[None]).mean[0]
        lost = [j for j in range(len(self)) if np.isnan(row[j])]
        pick = [lost.index(self.index(name)) for name in names]
        cov = self.posterior_cov(row)[np.ix_(pick, pick)]
        return Gaussian(names, mean[[self.index(name) for name in names]], cov)

    def query(self, of: Sequence[str], given: Sequence[str]) -> reversal.Regression:
        """Regression of some variables on others, by arc reversal and barren-node removal.

        The paper's inference (its appendix A): barren nodes are deleted, the other nodes outside
        the query are turned into leaves by arc reversals and deleted, and the evidence is brought
        before the query. `condition` gives the same numbers faster.

        Returns
        -------
        Regression
            ``of = intercepts + weights @ given`` with residual covariance `cov`.
        """
        self._check_disjoint(of, given)
        return reversal.query(self._nodes, tuple(of), tuple(given))

    def reverse_arc(self, parent: str, child: str) -> GaussianNetwork:
        """Turn an arc around; the joint distribution stays the same.

        Both nodes inherit one another's parents. GraphError if there is no such arc, or if another
        directed path from `parent` to `child` would close a cycle.
        """
        turned = reversal.reverse_arc(self._nodes, self.index(parent), self.index(child))
        return GaussianNetwork(*turned)

    def marginal(self, keep: Sequence[str]) -> GaussianNetwork:
        """Sum the other variables out; the kept nodes come in the order given."""
        for name in keep:
            self.index(name)
        return GaussianNetwork(*reversal.marginal(self._nodes, tuple(keep)))

    def to_networkx(self) -> networkx.DiGraph:
        """Directed graph with `weight` on arcs, `intercept` and `variance` on nodes."""
        try:
            import networkx
        except ImportError:
            raise ImportError("to_networkx needs networkx: pip install 'skyfill[graph]'") from None
        graph = networkx.DiGraph()
        for j, name in enumerate(self.names):
            graph.add_node(name, intercept=self.intercepts[j], variance=self.variances[j])
        for j, name in enumerate(self.names):
            for parent, weight in zip(self.parents[j], self.weights[j], strict=True):
                graph.add_edge(self.names[parent], name, weight=weight)
        return graph

    def index(self, name: str) -> int:
        """Column of a name; GraphError where there is none."""
        return find_node(name, self.names)

    def _gaps(self, X: ArrayLike) -> Gaps:
        return find_gaps(as_table(X, len(self)), self.names)

    def _check_disjoint(self, of: Sequence[str], given: Sequence[str]) -> None:
        for name in (*of, *given):
            self.index(name)
        both = sorted(set(of) & set(given))
        if both:
            raise GraphError(f"both requested and given: {', '.join(both)}")


def _floats(values: ArrayLike, what: str, length: int) -> tuple[float, ...]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise DataError(f"{what}: expected {length} numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"{what}: every number must be finite, got {array.tolist()}")
    return tuple(array.tolist())
