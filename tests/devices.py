"""Devices that tests of the GPU's code run on: an imitation, and the card if there is one."""

import pytest

from skyfill import device

DEVICES = [
    device.EMULATED,
    pytest.param("gpu", marks=pytest.mark.skipif(device._why_not() is not None, reason="no GPU")),
]
