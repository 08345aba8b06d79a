"""Which files the demo makes: it replaces its own, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from skyfill.cli.demo_steps import Step
from skyfill.errors import SkyfillError

MANIFEST, MAKER = "demo.json", "skyfill demo"


def claim_folder(folder: Path, steps: Iterable[Step]) -> None:
    """Make the folder and note what will be written; refuse where that would replace others'.

    Raises
    ------
    SkyfillError
        Where a file of such a name is there that no earlier demo wrote.
    """
    if folder.exists() and not folder.is_dir():
        raise SkyfillError(f"{folder}: is not a folder; choose another with -o FOLDER")
    own, planned = _noted(folder), sorted(_outputs(folder, steps))
    for name in (MANIFEST, *planned):
        if name not in own and (folder / name).exists():
            raise SkyfillError(
                f"{folder / name}: was not made by skyfill demo; choose another folder with "
                "-o FOLDER, or move the file away"
            )
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"made by": MAKER, "files": [MANIFEST, *planned]}
    (folder / MANIFEST).write_text(json.dumps(facts, indent=1))


def _noted(folder: Path) -> set[str]:
    """Names of the files that an earlier demo has claimed here."""
    try:
        facts = json.loads((folder / MANIFEST).read_text())
        return set(facts["files"]) if facts["made by"] == MAKER else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _outputs(folder: Path, steps: Iterable[Step]) -> set[str]:
    from skyfill.datasets.field.surveys import SURVEYS
    from skyfill.datasets.field.write import FILES

    simulated = [*FILES.values(), "ubvi.toml", *(f"{name}.moc.fits" for name in SURVEYS)]
    paths: set[Path] = set()
    for step in steps:
        after = dict(zip(step.words, step.words[1:], strict=False))
        paths |= {Path(after[flag]) for flag in ("-o", "--missing") if flag in after}
        paths |= {step.into} if step.into else set()
        if step.words[:2] == ("data", "simulate"):
            paths |= {Path(step.words[2]) / name for name in simulated}
    return {str(path.relative_to(folder)) for path in paths}
