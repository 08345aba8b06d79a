"""Options of `skyfill train` that choose between mixtures and one network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.errors import counted

if TYPE_CHECKING:
    from skyfill.model import Model
    from skyfill.network.mixture.fit import Plan


which_network = shared.stacked(
    click.option(
        "--network",
        type=click.Choice(["mixture", "k2", "printed", "bic"]),
        help="Mixtures of networks; or one network, its arcs by Algorithm 1 along one order (k2), "
        "by Algorithm 1 as the paper printed it (printed), or by structural EM (bic).  [default: "
        "k2 with --method paper, else mixture]",
    ),
    shared.count(
        "--bootstrap",
        0,
        "With one network: resamples of the rows, for the strength of its arcs.",
        least=0,
    ),
)


refining = click.option(
    "--refine",
    type=click.Choice(["auto", "trees", "off"]),
    default="auto",
    show_default=True,
    help="Let forests correct what mixtures fill: where hidden cells gain clearly (auto), at all "
    "(trees), or nowhere (off), which takes about half the time.",
)


def arcs_of(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Take the way to one network as `OneNetworkImputer` does: its scoring and other options."""
    printed = options["network"] == "printed"
    how = {"orders": "own" if printed else "shared", "n_bootstraps": options["bootstrap"]}
    return "k2" if printed else options["network"], how


def refine_of(options: dict[str, Any]) -> str | None:
    """Take --refine as `NetworkImputer` does."""
    return None if options["refine"] == "off" else str(options["refine"])


def settle_network(context: click.Context, options: dict[str, Any]) -> None:
    """Choose the kind of network; refuse options of the other kind."""
    is_paper = options["method"] == "paper"
    options["network"] = options["network"] or ("k2" if is_paper else "mixture")
    if options["network"] == "mixture":
        if options["bootstrap"]:
            message = "is for one network: add --network k2, printed or bic"
            raise click.BadParameter(message, param_hint="--bootstrap")
        return
    for name in ("components", "arcs", "gaps", "fits", "refine"):
        if shared.is_given(context, name):
            message = "is for mixtures: leave it out, or add --network mixture"
            raise click.BadParameter(message, param_hint=f"--{name}")
    options |= {"fits": 1, "refine": "off"}
    for name in ("limits", "errors"):
        if is_paper and not shared.is_given(context, name):
            options[name] = "off"


def words_of_network(model: Model, plan: Plan) -> str:
    """Say how large a network is."""
    from skyfill.network.mixture.fit import GIVEN

    if plan.arcs == GIVEN:
        return f"one network of {counted(arc=len(model.network.arcs()))} fitted"
    n_fits = len(model.network.fits)
    words = f"{counted(fit=n_fits)} of about {counted(component=plan.n_components)}"
    if plan.n_factors:
        words += f" with {counted(factor=plan.n_factors)}"
    if model.refinement is None:
        return words
    return f"{words} and forests for {counted(feature=len(set(model.refinement.columns)))}"
