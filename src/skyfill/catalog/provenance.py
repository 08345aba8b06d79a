"""Provenance of a file: version, command, inputs with checksums, seed, model, time."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skyfill import __version__
from skyfill.catalog.file_io import reading
from skyfill.errors import CatalogError

PROVENANCE_KEY = "provenance"


@dataclass(frozen=True)
class Provenance:
    """How an output was made; written into the metadata of every format.

    The inputs are read once, when the object is created, for their checksums.

    Parameters
    ----------
    command : str
        What was run, as the user would type it.
    inputs : sequence of paths
        Files on which the output depends.
    seed : int, optional
        Seed of all random numbers.
    model : str, optional
        Identifier of the fitted model used.

    Examples
    --------
    >>> import json
    >>> sorted(json.loads(Provenance("skyfill demo", seed=1).to_json()))
    ['command', 'inputs', 'seed', 'time', 'version']
    """

    command: str
    inputs: Sequence[str | Path] = ()
    seed: int | None = None
    model: str | None = None
    version: str = field(default=__version__, init=False)
    checksums: tuple[str, ...] = field(init=False)
    time: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "checksums", tuple(map(checksum, self.inputs)))
        object.__setattr__(self, "time", _now())

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        inputs = [
            {"file": str(path), "sha256": digest}
            for path, digest in zip(self.inputs, self.checksums, strict=True)
        ]
        facts = {
            "version": f"skyfill {self.version}",
            "command": self.command,
            "inputs": inputs,
            "seed": self.seed,
            "model": self.model,
            "time": self.time,
        }
        return json.dumps({key: value for key, value in facts.items() if value is not None})


def checksum(path: str | Path) -> str:
    """Return the SHA-256 of a file.

    Examples
    --------
    >>> import os
    >>> checksum(os.devnull)[:8]
    'e3b0c442'
    """
    with reading(Path(path), "file"), open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _now() -> str:
    """Return UTC to the second, or SOURCE_DATE_EPOCH for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise CatalogError(
            f"SOURCE_DATE_EPOCH={epoch}: is not a time in seconds since 1970; correct or unset it"
        ) from None
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_provenance(text: str | None) -> dict[str, Any]:
    """Read the record of a table, as far as it is one: any program may have changed it.

    Examples
    --------
    >>> read_provenance('{"command": "skyfill match", "inputs": 5}'), read_provenance("[[[")
    ({'command': 'skyfill match'}, {})
    """
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    facts = found if isinstance(found, dict) else {}
    inputs = facts.get("inputs", [])
    is_known = isinstance(inputs, list) and all(
        isinstance(each, dict) and {"file", "sha256"} <= set(each) for each in inputs
    )
    return {key: value for key, value in facts.items() if key != "inputs" or is_known}
