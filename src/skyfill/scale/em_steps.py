"""The steps of EM over all rows: their progress, and their sums as files.

A resumed run takes the same steps from the same start, and steps whose sums are there need no pass
over the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.file_io import open_atomic
from skyfill.errors import CatalogError
from skyfill.model.training import Expect
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.moments import Moments

# Key of the checksum of a step.
_SUM = "sha256"


@dataclass(frozen=True)
class Steps:
    """Progress of EM, and its finished steps.

    Parameters
    ----------
    report : callable
        Called with a short description of each stage and each step.
    folder : path, optional
        Where the sums of finished steps are kept.
    """

    report: Callable[[str], None] = lambda what: None
    folder: Path | None = None

    def watch(self, expect: Expect, fit: int, n_fits: int) -> Expect:
        """Wrap the E-step of a fit: report its number, and keep its sums.

        Examples
        --------
        >>> step = Steps(print).watch(lambda mixture: "sums", 0, 2)
        >>> step("a mixture")
        fit 1 of 2: step 1 of EM
        'sums'
        """
        numbers = count()

        def step(mixture: Mixture) -> Moments:
            number = next(numbers)
            self.report(f"fit {fit + 1} of {n_fits}: step {number + 1} of EM")
            if self.folder is None:
                return expect(mixture)
            path = self.folder / f"{fit}-{number}.safetensors"
            if not path.exists():  # a file has its name only when it is complete
                _write(expect(mixture), path)
            return _read(path)

        return step


def _write(moments: Moments, path: Path) -> None:
    from safetensors.numpy import save

    # The format stores bytes in the order in which they are in memory.
    arrays = {name: np.ascontiguousarray(value) for name, value in asdict(moments).items()}
    with open_atomic(path) as stream:
        stream.write(save(arrays, {_SUM: _sum(arrays)}))


def _sum(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def _read(path: Path) -> Moments:
    from safetensors import safe_open

    try:
        with safe_open(path, "numpy") as file:
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if (file.metadata() or {}).get(_SUM) != _sum(found):
                raise ValueError("its checksum is wrong")
        n, loglik = int(found.pop("n").item()), float(found.pop("loglik").item())
        return Moments(n=n, loglik=loglik, **found)
    except Exception as error:
        raise CatalogError(
            f"{path}: the step is damaged ({error}); run without --resume to start again"
        ) from error
