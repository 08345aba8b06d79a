"""Modules whose examples need what is not installed are left out of the tests."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("cupy") else ["skyfill/cuda.py"]
