"""A fitted pipeline in one safe file: a zip of JSON and safetensors arrays, no pickle, no code."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Role, Table
from skyfill.catalog.atomic import open_atomic
from skyfill.errors import CatalogError, ModelError
from skyfill.network import MixtureNetwork, learn_mixture
from skyfill.network.graph import as_parents
from skyfill.network.margin import Constant, Identity, Margin
from skyfill.network.mixture import Mixture
from skyfill.network.mixture_learn import Learned

FORMAT = 1
# Positions and identifiers would be learned by heart; labels are what is to be found out.
NO_FEATURES = (Role.IDENTIFIER, Role.POSITION, Role.LABEL, Role.REASON)
FACTS, ARRAYS = "model.json", "arrays.safetensors"
# A file that declares more than this is refused before anything is read.
MAX_BYTES = {FACTS: 2**26, ARRAYS: 2**31}
_MARGINS: dict[str, type[Margin]] = {"ranks": Margin, "constant": Constant, "linear": Identity}
_KINDS = {kind: name for name, kind in _MARGINS.items()}


@dataclass(frozen=True)
class Feature:
    """A column that the model knows, as its training table described it."""

    name: str
    unit: str | None = None
    ucd: str | None = None
    description: str | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted imputer with the schema of its features and where it comes from.

    Parameters
    ----------
    features : tuple of Feature
        The columns, in the order of the network.
    network : MixtureNetwork
        The fitted mixtures.
    provenance : mapping
        How it was made (`Provenance.to_json`, as an object).
    """

    features: tuple[Feature, ...]
    network: MixtureNetwork
    provenance: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def identifier(self) -> str:
        """Hash of what the model computes with; it travels into every output."""
        facts, arrays = _facts(self), _arrays(self)
        digest = hashlib.sha256(json.dumps(facts["features"], sort_keys=True).encode())
        digest.update(json.dumps(facts["fits"], sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].tobytes())
        return digest.hexdigest()[:16]


def train(
    table: Table,
    names: Sequence[str],
    *,
    provenance: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Model, Learned]:
    """Learn a model from columns of a table; `options` are those of `learn_mixture`.

    Examples
    --------
    >>> table = Table.from_columns({"J": np.linspace(14, 15, 30), "K": np.linspace(13, 15, 30)})
    >>> model, learned = train(table, ["J", "K"], n_components=1, n_fits=1)
    >>> model.names
    ('J', 'K')
    """
    for name in names:
        if table.info(name).role in NO_FEATURES:
            role = table.info(name).role
            raise CatalogError(
                f"column {name!r} has the role {role}: it must not be learned; leave it out of the "
                "features, or set its role to feature"
            )
    learned = learn_mixture(table.numbers(*names), names, **options)
    infos = [table.info(name) for name in names]
    features = tuple(
        Feature(name, info.unit, info.ucd, info.description)
        for name, info in zip(names, infos, strict=True)
    )
    return Model(features, learned.network, provenance or {}), learned


def save_model(model: Model, path: str | Path) -> None:
    """Write a model; the file appears whole or not at all."""
    from safetensors.numpy import save

    facts = {**_facts(model), "identifier": model.identifier}
    content = {FACTS: json.dumps(facts, indent=1).encode(), ARRAYS: save(_arrays(model))}
    with open_atomic(Path(path)) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, data in content.items():
            # A fixed date: the same model gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def load_model(path: str | Path) -> Model:
    """Read a model; ModelError where the file is not one, is damaged, or is of a later version."""
    path = Path(path)
    content = _read(path)
    try:
        facts = json.loads(content[FACTS])
        version = int(facts["format"])
        model = _build(facts, _load_arrays(content[ARRAYS])) if version <= FORMAT else None
    except Exception as error:  # noqa: BLE001 - whatever a damaged file provokes is its own fault
        raise ModelError(f"{path}: the model is damaged ({error})") from None
    if model is None:
        raise ModelError(
            f"{path}: the model has format {version}, this skyfill knows formats up to {FORMAT}; "
            "update skyfill"
        )
    if model.identifier != facts.get("identifier"):
        raise ModelError(
            f"{path}: the model is damaged (its content does not match its identifier)"
        )
    return model


def _read(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            if sorted(sizes) != sorted(MAX_BYTES):
                raise ModelError(f"{path}: not a skyfill model; train one with skyfill train")
            for name, size in sizes.items():
                if size > MAX_BYTES[name] or size > path.stat().st_size:
                    raise ModelError(f"{path}: {name} declares {size} bytes, too many for a model")
            return {name: archive.read(name) for name in sizes}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        message = f"{path}: not a skyfill model, or damaged; train one with skyfill train"
        raise ModelError(message) from None


def _load_arrays(data: bytes) -> dict[str, NDArray[np.float64]]:
    from safetensors.numpy import load

    arrays = load(data)
    for name, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"array {name!r} must hold finite float64 numbers")
    return arrays


def _facts(model: Model) -> dict[str, Any]:
    network = model.network
    return {
        "format": FORMAT,
        "features": [asdict(feature) for feature in model.features],
        "margins": [_KINDS[type(margin)] for margin in network.margins],
        "fits": [{"parents": fit.parents} for fit in network.fits],
        "provenance": dict(model.provenance),
    }


def _arrays(model: Model) -> dict[str, NDArray[np.float64]]:
    arrays: dict[str, Any] = {"calibration": model.network.calibration}
    for j, margin in enumerate(model.network.margins):
        arrays |= {f"margins.{j}.x": margin.x, f"margins.{j}.z": margin.z}
    for f, fit in enumerate(model.network.fits):
        for name in ("weights", "means", "covs", "gap_rates"):
            arrays[f"fits.{f}.{name}"] = getattr(fit, name)
    return {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}


def _build(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> Model:
    features = tuple(Feature(**feature) for feature in facts["features"])
    names = tuple(feature.name for feature in features)
    margins = tuple(
        _margin(_MARGINS[kind], arrays[f"margins.{j}.x"], arrays[f"margins.{j}.z"])
        for j, kind in enumerate(facts["margins"])
    )
    fits = tuple(
        _fit(arrays, f, len(names), fit["parents"], names) for f, fit in enumerate(facts["fits"])
    )
    calibration = arrays.get("calibration")
    if len(margins) != len(names) or not fits or len(set(names)) != len(names):
        raise ValueError("features, margins and fits do not belong together")
    if calibration is not None and (calibration.ndim, len(calibration)) != (2, len(names)):
        raise ValueError("the calibration has the wrong shape")
    network = MixtureNetwork(names, margins, fits, calibration)
    return Model(features, network, facts["provenance"])


def _margin(kind: type[Margin], x: NDArray[np.float64], z: NDArray[np.float64]) -> Margin:
    rising = x.ndim == 1 and x.shape == z.shape and (np.diff(x) >= 0).all()
    if not (rising and x.size >= (1 if kind is Constant else 2) and (np.diff(z) >= 0).all()):
        raise ValueError("a margin must have knots that never fall")
    return kind(x, z)


def _fit(
    arrays: Mapping[str, NDArray[np.float64]],
    f: int,
    p: int,
    parents: Sequence[Any] | None,
    names: tuple[str, ...],
) -> Mixture:
    weights, means, covs = (arrays[f"fits.{f}.{name}"] for name in ("weights", "means", "covs"))
    rates = arrays.get(f"fits.{f}.gap_rates")
    k = len(weights)
    if (weights.shape, means.shape, covs.shape) != ((k,), (k, p), (k, p, p)) or not k:
        raise ValueError(f"fit {f}: weights, means and covariances do not belong together")
    if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise ValueError(f"fit {f}: the weights must be positive, with sum 1")
    if rates is not None and (rates.shape != (k, p) or not ((rates > 0) & (rates < 1)).all()):
        raise ValueError(f"fit {f}: the gap rates must lie between 0 and 1")
    np.linalg.cholesky(covs)
    graphs = None if parents is None else tuple(as_parents(graph, names) for graph in parents)
    if graphs is not None and len(graphs) != k:
        raise ValueError(f"fit {f}: one graph per component is needed")
    return Mixture(weights, means, covs, rates, graphs)
