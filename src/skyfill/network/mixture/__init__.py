"""Mixtures of Gaussian networks over columns that are mapped to normal scores."""
