"""Columns in standard units while learning, so that units cannot change what is learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyfill.errors import DataError
from skyfill.network._array import Array, IntArray, as_table, check_finite
from skyfill.network.gaussian import GaussianNetwork


class Standard(NamedTuple):
    """A table with columns of mean 0 and standard deviation 1 over their seen cells."""

    Z: Array  # (n, p), a copy
    center: Array
    scale: Array
    n_seen: Array

    @property
    def log_scale(self) -> float:
        """What to subtract from a log-likelihood of Z to get that of the table itself."""
        return float(self.n_seen @ np.log(self.scale))

    def restore(self, network: GaussianNetwork) -> GaussianNetwork:
        """Express a network of Z in the units of the table."""
        intercepts, weights = [], []
        for j, family in enumerate(network.parents):
            parents = list(family)
            slope = np.array(network.weights[j]) * self.scale[j] / self.scale[parents]
            weights.append(slope)
            intercepts.append(
                self.center[j]
                + self.scale[j] * network.intercepts[j]
                - float(slope @ self.center[parents])
            )
        variances = self.scale**2 * np.array(network.variances)
        return GaussianNetwork(network.names, network.parents, intercepts, weights, variances)


def check_seen(X: Array, names: tuple[str, ...]) -> IntArray:
    """Count the seen cells of each column; refuse infinite ones and columns without any."""
    check_finite(X, names)
    n_seen = (~np.isnan(X)).sum(axis=0)
    for name, count in zip(names, n_seen, strict=True):
        if count == 0:
            raise DataError(
                f"column {name!r} has no value in {len(X)} rows; drop it or join a catalog that "
                "measures it"
            )
    return n_seen


def standardize(X: Array, names: tuple[str, ...]) -> Standard:
    """Standardise the columns; refuse those that cannot be learned from."""
    n_seen = check_seen(X, names)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    for j in np.flatnonzero(low == high):
        raise DataError(
            f"column {names[j]!r} is constant: {low[j]:g} in all {n_seen[j]} rows that have it; "
            "it tells nothing about other columns: drop it"
        )
    # Halves of the range first: the squares of huge values must not overflow.
    middle, reach = low / 2 + high / 2, high / 2 - low / 2
    Z = (X - middle) / reach
    center, scale = np.nanmean(Z, axis=0), np.nanstd(Z, axis=0)
    Z -= center
    Z /= scale
    return Standard(as_table(Z), middle + reach * center, reach * scale, n_seen.astype(np.float64))
