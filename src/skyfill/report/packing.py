"""Arrays as text for the page: base64 of their bytes, with type and shape."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def pack(array: ArrayLike, kind: str = "f8") -> dict[str, Any]:
    """Give an array as JSON can hold it: `kind`, `shape`, and its little-endian bytes.

    Examples
    --------
    >>> pack([1.0, 2.0], "f4")
    {'kind': 'f4', 'shape': [2], 'data': 'AACAPwAAAEA='}
    """
    values = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<"))
    text = base64.b64encode(values.tobytes()).decode()
    return {"kind": kind, "shape": list(values.shape), "data": text}


def unpack(packed: dict[str, Any]) -> Any:
    """Give the array again.

    Examples
    --------
    >>> unpack(pack([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    kind = np.dtype(packed["kind"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(packed["data"]), kind).reshape(packed["shape"])


def to_script(payload: Any) -> str:
    r"""Write JSON that can stand inside a script element: nothing in it can close the element.

    Examples
    --------
    >>> to_script({"id": "</script>", "mean": float("nan")})
    '{"id":"\\u003c/script\\u003e","mean":null}'
    """
    text = json.dumps(_plain(payload), separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _plain(value: Any) -> Any:
    """Replace what JSON does not know."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
