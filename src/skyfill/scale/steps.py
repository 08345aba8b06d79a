"""Steps of EM that survive a kill: their sums stay beside the model until it is written.

`MODEL.skyfill-parts` holds `journal`, one line that says what is learned from what, and a file of
sums per step. A run that is taken up again takes the same steps from the same start; those whose
sums are there need no pass over the rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from skyfill.catalog.file_io import checked_target, open_atomic, writing
from skyfill.errors import CatalogError
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.moments import Moments
from skyfill.scale.journal import (
    FORMAT,
    JOURNAL,
    check_same,
    lock,
    parts_folder,
    whole_lines,
    write_line,
)

SUFFIX = ".safetensors"

Expect = Callable[[Mixture], Moments]
Keep = Callable[[int, Expect], Expect]


def forget(fit: int, expect: Expect) -> Expect:
    """Keep no step: `expect` as it is."""
    return expect


class Steps:
    """Sums of the finished steps of all fits; `open_steps` makes it.

    Attributes
    ----------
    provenance : dict
        That of the run that began the work.
    """

    def __init__(self, folder: Path, provenance: dict[str, Any]) -> None:
        self._folder, self.provenance = folder, provenance

    def keep(self, fit: int, expect: Expect) -> Expect:
        """Let the E-steps of a fit be kept, and take those that are there."""
        numbers = count()

        def kept(mixture: Mixture) -> Moments:
            path = self._folder / f"{fit}-{next(numbers)}{SUFFIX}"
            if path.exists():  # a file has its name only when it is whole
                return _read(path)
            moments = expect(mixture)
            _write(moments, path)
            return moments

        return kept


@contextmanager
def open_steps(
    output: str | Path, job: Mapping[str, Any], *, provenance: dict[str, Any], resume: bool
) -> Iterator[Steps]:
    """Keep the steps towards a model until it is written, which is to happen inside.

    Parameters
    ----------
    output : path
        The model.
    job : mapping
        Whatever the sums depend on, as JSON; steps of another job are refused.
    provenance : dict
        Of the model; a run that is taken up again keeps the first one.
    resume : bool
        Go on with the steps that are there. Otherwise they are removed, and after an error
        nothing is left behind; an interrupt or a kill always leaves what is finished.
    """
    checked_target(Path(output))
    folder = parts_folder(output)
    facts: dict[str, Any] = {"format": FORMAT, "job": dict(job), "provenance": provenance}
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with open(folder / JOURNAL, "a+b") as journal:
        lock(journal, output)
        begun = whole_lines(journal)[:1] if resume else []
        if begun:
            first = json.loads(begun[0])
            check_same(json.loads(json.dumps(facts)), first, folder)
            facts = first
        else:
            journal.truncate(0)
            write_line(journal, facts)
        _clear(folder, steps=not begun)
        try:
            yield Steps(folder, facts["provenance"])
        except Exception:
            if not resume:
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _clear(folder: Path, *, steps: bool) -> None:
    """Remove what a run that was killed had not finished, and, if asked to, its steps."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != JOURNAL and (steps or path.suffix != SUFFIX):
            path.unlink()


def _write(moments: Moments, path: Path) -> None:
    from safetensors.numpy import save

    # The format holds bytes as they lie in memory, in whatever order that is.
    arrays = {name: np.ascontiguousarray(value) for name, value in asdict(moments).items()}
    with open_atomic(path) as stream:
        stream.write(save(arrays))


def _read(path: Path) -> Moments:
    from safetensors.numpy import load

    try:
        found = load(path.read_bytes())
        n, loglik = int(found.pop("n").item()), float(found.pop("loglik").item())
        return Moments(n=n, loglik=loglik, **found)
    except Exception as error:
        raise CatalogError(
            f"{path}: the step is damaged ({error}); run without --resume to start anew"
        ) from error
