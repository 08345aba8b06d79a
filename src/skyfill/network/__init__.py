"""Bayesian networks over arrays in which NaN is a gap."""

from skyfill.network.discrete import DiscreteNetwork
from skyfill.network.gaussian import Gaussian, GaussianNetwork, MeanCov
from skyfill.network.k2 import k2_score, k2_search
from skyfill.network.learn import Learned, learn_network
from skyfill.network.mixture import MixtureNetwork
from skyfill.network.mixture_learn import learn_mixture
from skyfill.network.parameters import Fit, em, fit_parameters
from skyfill.network.posterior import Moments, Posterior
from skyfill.network.reversal import Regression
from skyfill.network.rounds import Step

__all__ = [
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
]
