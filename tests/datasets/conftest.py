"""Public tables that can be had here; a test whose table cannot be had is skipped."""

import sys
from collections.abc import Callable

import pytest

from skyfill.catalog import Table
from skyfill.datasets import DATASETS, dataset_state


def load_or_skip(name: str) -> Table:
    """Load a table without the network, or skip the test."""
    if dataset_state(name) != "here":
        pytest.skip(f"the files of {name!r} are not in SKYFILL_DATA nor in the cache")
    return DATASETS[name][0]()


@pytest.fixture(scope="session")
def public() -> Callable[[str], Table]:
    """Give each public table, loaded once."""
    loaded: dict[str, Table] = {}

    def give(name: str) -> Table:
        if name not in loaded:
            loaded[name] = load_or_skip(name)
        return loaded[name]

    return give


def python_calls(work):
    """Count the calls of Python functions that some work makes: its cost, whatever the load."""
    n_calls = 0

    def count(frame, event, arg):
        nonlocal n_calls
        n_calls += event == "call"

    work()  # so that neither imports nor first compilations are counted
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return n_calls
