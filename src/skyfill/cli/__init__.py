"""The `skyfill` command; each command is a thin file of its own."""

from skyfill.cli.main import main

__all__ = ["main"]
