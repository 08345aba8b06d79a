"""The file of a model as an archive: what can be read of it without the code that uses it.

An archive has two entries, facts as JSON and arrays as safetensors, neither of them packed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from skyfill.errors import ModelError

FACTS, ARRAYS = "model.json", "arrays.safetensors"
# A file that declares more than this is refused before anything is read.
MAX_BYTES = {FACTS: 2**26, ARRAYS: 2**31}
# A text for people, written with the model so that it can be read without building it.
DESCRIPTION = "description"
# Which gaps of the training table were beyond what was measured.
BEYOND = "beyond"
# How good the model is.
QUALITY = "quality"
# Facts that no result depends on.
NOT_COMPUTED_WITH = ("format", "provenance", "strength", BEYOND, QUALITY, "identifier", DESCRIPTION)


def identify(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the hash of all that a model computes with."""
    used = {key: value for key, value in facts.items() if key not in NOT_COMPUTED_WITH}
    digest = hashlib.sha256(json.dumps(used, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the two entries of a model file; ModelError where it is none."""
    # Opened here: what the system says about the file is not the content's fault.
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _contents(path, archive)
        except ModelError:
            raise
        except Exception:  # noqa: BLE001 - damaged archives provoke errors of many types
            message = f"{path}: not a skyfill model, or damaged; train one with skyfill train"
            raise ModelError(message) from None


def _contents(path: Path, archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    if sorted(entry.filename for entry in entries) != sorted(MAX_BYTES):
        raise ModelError(f"{path}: not a skyfill model; train one with skyfill train")
    for entry in entries:
        # Nothing is packed, so nothing can be larger than the file.
        is_packed = entry.compress_type != zipfile.ZIP_STORED
        most = min(MAX_BYTES[entry.filename], path.stat().st_size)
        if is_packed or entry.file_size > most:
            raise ModelError(
                f"{path}: {entry.filename} declares {entry.file_size} bytes, too many for a model"
            )
    return {entry.filename: archive.read(entry) for entry in entries}


def read_description(path: Path) -> dict[str, Any] | None:
    """Return what a model file says about its model, in plain values.

    Returns
    -------
    dict or None
        None where the file holds no description, as those of earlier versions, or where its
        contents do not belong together: `skyfill.model.load_model` knows more.
    """
    from safetensors.numpy import load

    content = read_archive(path)
    try:
        facts = json.loads(content[FACTS])
        json.dumps(facts, ensure_ascii=False).encode()  # raises for text that is not Unicode
        if facts["identifier"] != identify(facts, load(content[ARRAYS])):
            return None
        return {
            "identifier": facts["identifier"],
            **facts[DESCRIPTION],
            "declared": facts.get("declared", {}),
            "found": facts.get("found", {}),
            "quality": facts.get(QUALITY, {}),
            "provenance": facts["provenance"],
        }
    except Exception:  # noqa: BLE001 - as above; whoever loads the model says what is wrong
        return None
