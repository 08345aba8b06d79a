"""`skyfill send`: a table to TOPCAT, Aladin and similar programs, over SAMP."""

from pathlib import Path

import click

from skyfill.cli import options as shared
from skyfill.cli.terminal import note, write_json


@click.command(
    "send",
    epilog=shared.examples(
        "skyfill send quasars.fits --to TOPCAT",
    ),
)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--to", "client", metavar="NAME", help="Send to this program only, such as TOPCAT.")
@click.option("--name", help="Name of the table.  [default: that of the file]")
@shared.as_json("who received it")
def command(results: Path, client: str | None, name: str | None, as_json: bool) -> None:
    """Send the table RESULTS to the programs connected to a SAMP hub.

    Start TOPCAT or Aladin first, since they provide the hub. FITS and VOTable files are sent as
    they are; other formats are first copied to a FITS file in the same folder, because few
    programs read them.
    """
    from skyfill.report.samp import send_table

    sent = send_table(results, to=client, name=name)
    if as_json:
        write_json({"receivers": sent.receivers, "url": sent.url})
    note(f"{results} -> {', '.join(sent.receivers)}")
