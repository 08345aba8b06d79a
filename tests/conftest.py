"""Shared by all tests: hypothesis takes its time, on a busy machine and for first compilations."""

import gc
import os
import socket

# Each worker has a core: threads of BLAS and OpenMP would take those of the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# Everybody's tests try the same inputs; `make fuzz` draws fresh ones.
settings.register_profile(
    "fixed",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile("fresh", settings.get_profile("fixed"), derandomize=False)
settings.load_profile("fixed")

# Workers share what is left when one of them has nothing more to do: the last tests must be short.
SLOW = (
    "tests/first_hour/",
    "tests/cli/test_demo.py",
    "tests/test_docs.py",
    "tests/test_paper_commands.py",
    "tests/report/test_browser.py",
    "docs/",
)


# Modules and thousands of tests stay for good: looking through them for garbage again and again
# would take a tenth of the time.
gc.set_threshold(2000, 10, 100)


def pytest_collection_finish():
    """Leave what was collected out of all searches for garbage."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Run the slowest files first; the others stay in their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW))


@pytest.fixture(scope="session")
def star_model():
    """Learn a small model of `explained_table` once."""
    from skyfill.model import train
    from tests.stars import explained_table

    return train(explained_table(), ["V", "I"], n_components=2, n_fits=2)[0]


@pytest.fixture
def half_labelled(monkeypatch):
    """Simulate half of the paper's labelled objects, so that commands learn from 915 rows."""
    _simulate_one_of(2, monkeypatch)


@pytest.fixture
def quarter_labelled(monkeypatch):
    """Simulate a quarter of them, 457 rows, where it does not matter how well is learned."""
    _simulate_one_of(4, monkeypatch)


def _simulate_one_of(n, monkeypatch):
    from skyfill.datasets.field import simulate

    counts = {name: count // n for name, count in simulate.TRAINING_COUNTS.items()}
    monkeypatch.setattr(simulate, "TRAINING_COUNTS", counts)


@pytest.fixture
def closed_port():
    """Hold a port of this machine at which nothing listens, so that calls are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
