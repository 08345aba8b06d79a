"""Networks in notebooks: a drawing and a caption.

Importing this module gives both kinds of network their `_repr_html_`. The room of networks knows
nothing of drawings; in a notebook, `import skyfill` imports this module.
"""

from __future__ import annotations

from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.summary import summarize_network
from skyfill.report.network_drawing import draw_svg


def gaussian_html(network: GaussianNetwork | MixtureNetwork) -> str:
    """Draw a network; an arrow is as wide as the child moves, in its own spread.

    Examples
    --------
    >>> net = GaussianNetwork(["V", "I"], [[], ["V"]], [18.0, -1.0], [[], [1.0]], [1.0, 0.25])
    >>> "2 features, 1 arcs" in gaussian_html(net)
    True
    """
    summary = summarize_network(network)
    line = f"Gaussian network: {len(network)} features, {len(summary.arcs)} arcs"
    return _with_line(draw_svg(network.names, summary.arcs), line)


def mixture_html(network: MixtureNetwork) -> str:
    """Draw the one network that describes a mixture best, or the one that there is."""
    summary = summarize_network(network)
    if summary.is_one:
        return gaussian_html(network)
    sizes = ", ".join(map(str, network.n_components))
    line = (
        f"Mixture of networks: {len(network)} features, {len(network.fits)} fits of {sizes} "
        f"components; drawn with {len(summary.arcs)} arcs"
    )
    return _with_line(draw_svg(summary.names, summary.arcs), line)


def _with_line(svg: str, line: str) -> str:
    return f"<figure style='margin:0'>{svg}<figcaption>{line}</figcaption></figure>"


GaussianNetwork._repr_html_ = gaussian_html  # type: ignore[attr-defined]
MixtureNetwork._repr_html_ = mixture_html  # type: ignore[attr-defined]
