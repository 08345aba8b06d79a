"""`skyfill show`: what is in a model file."""

import json
from pathlib import Path
from typing import Any

import click


@click.command("show", epilog="Example: skyfill show lmc.skyfill")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(model: Path, as_json: bool) -> None:
    """Print the features, fits, arcs and provenance of MODEL."""
    from skyfill.model import load_model

    facts = _facts(load_model(model))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"model {facts['identifier']}, fits of {facts['components']} components")
    click.echo(f"gaps: {facts['gaps']}")
    for feature in facts["features"]:
        text = feature["description"] or ""
        click.echo(f"  {feature['name']:16} {feature['unit'] or '-':8} {text}".rstrip())
    for arc in facts["arcs"][:30]:
        click.echo(f"  {arc['parent']} -> {arc['child']}  in {arc['share']:.0%} of the weight")
    for key, value in facts["provenance"].items():
        click.echo(f"{key}: {value if isinstance(value, str) else json.dumps(value)}")


def _facts(model: Any) -> dict[str, Any]:
    informative = model.network.fits[0].gap_rates is not None
    arcs = [
        {"parent": parent, "child": child, "share": share}
        for (parent, child), share in model.network.arcs().items()
    ]
    return {
        "identifier": model.identifier,
        "features": [vars(feature) for feature in model.features],
        "components": list(model.network.n_components),
        "gaps": "informative" if informative else "ignorable",
        "arcs": arcs,
        "provenance": dict(model.provenance),
    }
