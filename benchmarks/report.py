"""Markdown tables with date and versions, as docs/benchmarks.md keeps them."""

import datetime
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version


def best_time(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def header(title, packages):
    found = []
    for package in ["skyfill", *packages]:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    day = datetime.datetime.now(datetime.UTC).date()
    print(
        f"\n## {title}\n\n{day}, Python {platform.python_version()}, {os.cpu_count()} cores; ",
        end="",
    )
    print(", ".join(found) + "\n", flush=True)


def print_table(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)
