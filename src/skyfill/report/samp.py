"""Tables to other programs over SAMP, the Simple Application Messaging Protocol."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from skyfill import __version__
from skyfill.catalog import open_scan, open_writer
from skyfill.errors import SkyfillError

# Message types; programs differ in which they accept.
_FITS, _VOTABLE = "table.load.fits", "table.load.votable"
# Seconds to wait for an answer, and number of attempts: hubs sometimes lose a message.
ANSWER_SECONDS, TRIES = 15, 2


@dataclass(frozen=True)
class Sent:
    """Who received a table, and the address from which they read it."""

    receivers: tuple[str, ...]
    url: str


def send_table(path: str | Path, *, to: str | None = None, name: str | None = None) -> Sent:
    """Send a table to the programs on the SAMP hub that load tables.

    Parameters
    ----------
    path : path
        Any table that `read_table` reads. If it is neither FITS nor VOTable, a FITS file is written
        beside it and sent; it is kept, because receivers may read it again later.
    to : str, optional
        Name of one program; by default all programs that can load it.
    name : str, optional
        Name of the table there.

    Returns
    -------
    Sent
    """
    path = Path(path)
    open_scan(path)  # a file that is not a table is the user's mistake, not the receiver's
    with _client() as client:
        ready, kind = _as_sendable(path)
        receivers = _receivers(client, kind, to)
        url = ready.resolve().as_uri()
        facts = {"url": url, "name": name or path.stem, "table-id": f"skyfill:{ready.resolve()}"}
        for identifier, program in receivers.items():
            message = {"samp.mtype": kind, "samp.params": facts}
            _check(_answer(client, identifier, message), program, ready)
    return Sent(tuple(receivers.values()), url)


def _as_sendable(path: Path) -> tuple[Path, str]:
    """Return the file to send and its message type."""
    from skyfill.catalog.table_files import format_of

    kind = {"fits": _FITS, "votable": _VOTABLE}.get(format_of(path))
    if kind is not None and path.suffix != ".gz":
        return path, kind
    beside = path.with_name(path.name.split(".")[0] + ".samp.fits")
    with open_scan(path) as scan, open_writer(beside, scan.schema) as writer:
        for batch in scan.batches:
            writer.write(batch)
    return beside, _FITS


def samp_library() -> ModuleType:
    """Return `pyvo.samp` where it is installed, else `astropy.samp`, from which it is derived.

    Examples
    --------
    >>> hasattr(samp_library(), "SAMPIntegratedClient")
    True
    """
    try:
        return import_module("pyvo.samp")
    except ImportError:
        with warnings.catch_warnings():
            # Astropy 8 recommends pyvo instead; the two do the same.
            warnings.simplefilter("ignore")
            return import_module("astropy.samp")


@contextmanager
def _client() -> Iterator[Any]:
    """Connect to the running hub."""
    library = samp_library()
    description = f"skyfill {__version__}: catalogues with gaps"
    client = library.SAMPIntegratedClient("skyfill", description)
    try:
        with warnings.catch_warnings():
            # A hub that no longer runs may leave its lock file, about which astropy warns.
            warnings.simplefilter("ignore")
            client.connect()
    except (library.SAMPHubError, OSError):
        raise SkyfillError(
            "no SAMP hub is running; start TOPCAT or Aladin, which include one, and send again"
        ) from None
    try:
        yield client
    finally:
        client.disconnect()


def _receivers(client: Any, kind: str, to: str | None) -> dict[str, str]:
    """Programs that accept this kind of message, by identifier."""
    found = {each: _name(client, each) for each in client.get_subscribed_clients(kind)}
    if to is not None:
        found = {each: name for each, name in found.items() if name.lower() == to.lower()}
    if not found:
        everyone = client.get_registered_clients()
        # The hub itself is "hub" in the standard, "cli#hub" in astropy.
        others = [_name(client, each) for each in everyone if not each.endswith("hub")]
        shown = ", ".join(sorted(name for name in others if name != "skyfill")) or "none"
        who = f"program called {to!r}" if to else "program"
        raise SkyfillError(f"no {who} on the SAMP hub accepts {kind}; programs on it: {shown}")
    return found


def _name(client: Any, identifier: str) -> str:
    return str(client.get_metadata(identifier).get("samp.name", identifier))


def _answer(client: Any, identifier: str, message: dict[str, Any]) -> Any:
    """Return the answer of a program; None if there is none. A second copy replaces the first."""
    for _ in range(TRIES):
        try:
            return client.call_and_wait(identifier, message, str(ANSWER_SECONDS))
        except samp_library().SAMPProxyError:
            continue
    return None


def _check(answer: Any, program: str, path: Path) -> None:
    if answer is None:
        raise SkyfillError(
            f"{path}: {program} did not answer within {TRIES * ANSWER_SECONDS} seconds; check "
            "whether it waits for input, and send again"
        )
    if answer.get("samp.status") != "samp.ok":
        why = answer.get("samp.error", {}).get("samp.errortxt", "no reason given")
        raise SkyfillError(f"{path}: {program} could not load it: {why}")
