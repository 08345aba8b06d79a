"""`--quick` and `--thorough`: how much work `skyfill train` takes upon itself."""

from __future__ import annotations

from typing import Any

import click

from skyfill.cli import options as shared

# Fits without labels, as in NetworkImputer, and with them, as in CatalogClassifier.
FITS, THOROUGH_FITS, THOROUGH_TREES = (8, 3), (16, 8), 500
# What `skyfill evaluate` calls skyfill-quick, but for the tolerance of EM.
QUICK = {"components": "6", "fits": 1, "refine": "off", "method": "forest", "trees": 60}

takes_effort = shared.stacked(
    click.option(
        "--quick",
        is_flag=True,
        help="For a first look: six components, one fit, no forests that correct it; with "
        "--label, forests of 60 trees alone. Options that are given count all the same.",
    ),
    click.option(
        "--thorough",
        is_flag=True,
        help="For a model that is trained once: 16 fits; with --label, 8 fits and forests of 500 "
        "trees. Results depend less on chance.",
    ),
)


def settle_effort(context: click.Context, options: dict[str, Any]) -> None:
    """Set what the user has not, as --quick or --thorough say."""
    if options["quick"] and options["thorough"]:
        raise click.BadParameter("leave out one of --quick and --thorough", param_hint="--quick")
    has_label = bool(options["label"])
    preset: dict[str, Any] = {"fits": FITS[has_label]}
    if options["thorough"]:
        preset = {"fits": THOROUGH_FITS[has_label], "trees": THOROUGH_TREES}
    elif options["quick"]:
        preset = QUICK
    for name, value in preset.items():
        if not shared.is_given(context, name):
            options[name] = value
