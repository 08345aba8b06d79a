"""Bayesian networks over arrays in which NaN is a gap."""

from skyfill.network.cells import Cells
from skyfill.network.mixture.learn import learn_mixture
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.mixture.one_network import learn_one_network
from skyfill.network.moments import Moments, em
from skyfill.network.single.discrete import DiscreteNetwork
from skyfill.network.single.gaussian import Gaussian, GaussianNetwork, MeanCov
from skyfill.network.single.k2 import k2_score, k2_search
from skyfill.network.single.learn import Learned, Step, learn_network
from skyfill.network.single.parameters import Fit, fit_parameters
from skyfill.network.single.posterior import Posterior
from skyfill.network.single.reversal import Regression

__all__ = [
    "Cells",
    "DiscreteNetwork",
    "Fit",
    "Gaussian",
    "GaussianNetwork",
    "Learned",
    "MeanCov",
    "MixtureNetwork",
    "Moments",
    "Posterior",
    "Regression",
    "Step",
    "em",
    "fit_parameters",
    "k2_score",
    "k2_search",
    "learn_mixture",
    "learn_network",
    "learn_one_network",
]
