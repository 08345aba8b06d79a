"""Many runs at once, of which none may crash at its end; `benchmarks/many_runs.py` makes more."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "many_runs.py"


def test_two_hundred_runs_four_at_a_time_all_end_with_0_and_without_a_traceback():
    """Mostly `inspect`, which ends soonest after Arrow has read."""
    run = [sys.executable, str(SCRIPT), "--runs", "200", "--fork", "--light"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "| inspect | csv |" in done.stdout
