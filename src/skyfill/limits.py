"""How much a file may ask for before it is refused: memory and time are bounded in advance.

Limits are raised with ``--limit NAME=NUMBER`` or the environment variable ``SKYFILL_LIMITS``
(``NAME=NUMBER,...``), which processes of a local cluster inherit.
"""

from __future__ import annotations

import os

from skyfill.errors import SkyfillError

VARIABLE = "SKYFILL_LIMITS"
# Far beyond what catalogues and models are.
LIMITS = {
    # Of a table; bytes of one line of text, or of one row of FITS; rows that hold nothing.
    "columns": 20_000,
    "line-bytes": 1 << 26,
    "row-bytes": 1 << 26,
    # Of one word at the start of text separated by blanks.
    "word-bytes": 100_000,
    "empty-rows": 1_000_000,
    # Entries of a YAML header, with all that its aliases repeat.
    "header-entries": 500_000,
    # How many times larger a gzipped file may become, once it is beyond FREE_BYTES.
    "gzip-ratio": 200,
    # Bytes of a table that is read as a whole: text separated by blanks, foreign VOTables.
    "whole-bytes": 1 << 32,
    # Of a model.
    "features": 2_000,
    "components": 2_000,
    "fits": 100,
}

FREE_BYTES = 1 << 28


def limit(name: str) -> int:
    """Return a limit, as raised by the user.

    Examples
    --------
    >>> limit("fits")
    100
    """
    return read_limits(os.environ.get(VARIABLE, "")).get(name, LIMITS[name])


def read_limits(text: str) -> dict[str, int]:
    """Read ``NAME=NUMBER,...``; SkyfillError for an unknown name or a number that is none.

    Examples
    --------
    >>> read_limits("columns=1e6, fits=200")
    {'columns': 1000000, 'fits': 200}
    """
    found = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, _, number = word.partition("=")
        try:
            found[name] = int(float(number))
        except (ValueError, OverflowError):
            raise SkyfillError(f"limit {word!r}: write NAME=NUMBER, as in columns=1e6") from None
        if name not in LIMITS or found[name] < 1:
            raise SkyfillError(f"limit {word!r}: the limits are {', '.join(LIMITS)}, all above 0")
    return found


def check_limit(name: str, value: int, what: str, error: type[Exception] = SkyfillError) -> None:
    """Raise an error that names the limit, and how to raise it, if a value is beyond it."""
    most = limit(name)
    if value > most:
        raise error(
            f"{what}, more than {most}; if you trust the file, raise the limit with "
            f"--limit {name}={value}"
        )
