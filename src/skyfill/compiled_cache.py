"""Where compiled kernels are kept: beside the code, or elsewhere if nothing can be written."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_cache(package: Path, environ: MutableMapping[str, str] = os.environ) -> str | None:
    """Choose a folder for compiled kernels if Numba could not write to its own.

    Without one it would refuse to compile at all. A folder that is made for this process alone is
    removed at its end.

    Returns
    -------
    str, optional
        A line to show the user, if everything must be compiled anew each time.
    """
    asked = environ.get(VARIABLE)
    if _is_writable(Path(asked)) if asked else _is_writable(package):
        return None
    home = environ.get("XDG_CACHE_HOME") or (environ.get("HOME") or "/nowhere") + "/.cache"
    own = Path(home) / "skyfill"
    if not asked and _is_writable(own):
        environ[VARIABLE] = str(own)
        return None
    import atexit
    import shutil
    import tempfile

    # Private: what others could write there would be run.
    environ[VARIABLE] = folder = tempfile.mkdtemp(prefix="skyfill-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return (
        f"{asked or package}: compiled code cannot be kept there, so that it is compiled anew each "
        f"time, which takes minutes; set {VARIABLE} to a folder that you can write"
    )


def _is_writable(folder: Path) -> bool:
    probe = folder / f".skyfill-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(probe)
    except OSError:
        return False
    return True
