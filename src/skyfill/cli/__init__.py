"""The `skyfill` command; each command has its own thin file."""

from skyfill.cli.main import main

__all__ = ["main"]
