"""How kernels are compiled."""

from typing import Any

from numba import njit

# For functions that make no arrays: they count no references to those that they are given, alone or
# in tuples, which would take as long as the arithmetic on a row with limits.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
leaf = njit(**_OPTIONS)
