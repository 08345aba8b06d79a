"""Shared by all tests: hypothesis takes its time, on a busy machine and for first compilations."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "skyfill",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("skyfill")
