"""What the pages need when pytest runs their examples."""

import pytest

from skyfill.datasets import dataset_state

collect_ignore = ["conf.py"]
NEEDS = {"macho.md": "macho"}


def pytest_collection_modifyitems(items):
    """Skip pages whose public tables are not on this machine."""
    for item in items:
        name = NEEDS.get(item.path.name)
        if name and dataset_state(name) != "here":
            item.add_marker(pytest.mark.skip(reason=f"needs the table {name}: set SKYFILL_DATA"))
