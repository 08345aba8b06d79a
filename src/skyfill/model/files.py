"""Models in files: a zip of JSON and safetensors arrays, no pickle, no code."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.file_io import open_atomic
from skyfill.errors import ModelError
from skyfill.model.description import describe
from skyfill.model.pipeline import FORMAT, REFINEMENT, TRAINED_ON, TREES, Model, arrays_of, facts_of
from skyfill.model.rebuilding import rebuild
from skyfill.model_archive import ARRAYS, DESCRIPTION, FACTS, read_archive


def save_model(model: Model, path: str | Path) -> None:
    """Write a model; the file appears whole or not at all."""
    from safetensors.numpy import save

    facts = {**facts_of(model), DESCRIPTION: describe(model), "identifier": model.identifier}
    content = {FACTS: json.dumps(facts, indent=1).encode(), ARRAYS: save(arrays_of(model))}
    with open_atomic(Path(path)) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, data in content.items():
            # A fixed date: the same model gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def load_model(path: str | Path) -> Model:
    """Read a model; ModelError where the file is not one, is damaged, or is of a later version."""
    path = Path(path)
    content = read_archive(path)
    try:
        facts = json.loads(content[FACTS])
        version = int(facts["format"])
        model = rebuild(facts, _load_arrays(content[ARRAYS])) if version <= FORMAT else None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except Exception as error:  # noqa: BLE001 - whatever a damaged file provokes is its own fault
        raise ModelError(f"{path}: the model is damaged ({error})") from None
    if model is None:
        raise ModelError(
            f"{path}: the model has format {version}, this skyfill knows formats up to {FORMAT}; "
            "update skyfill"
        )
    if facts.get("identifier") not in (model.identifier, model.earlier_identifier):
        raise ModelError(
            f"{path}: the model is damaged (its content does not match its identifier)"
        )
    return model


def _load_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load

    arrays: dict[str, NDArray[Any]] = load(data)
    for name, array in arrays.items():
        if (
            name.startswith((TREES, REFINEMENT)) or name == TRAINED_ON
        ):  # checked where they are used
            continue
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"array {name!r} must hold finite float64 numbers")
    return arrays
