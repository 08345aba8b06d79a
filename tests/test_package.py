import subprocess
import sys
import time

import pytest

import skyfill


def seconds(code):
    """Shortest of five, in fresh processes: other work on the machine only ever adds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_importing_skyfill_takes_less_than_half_a_second():
    assert seconds("import skyfill") - seconds("pass") < 0.5


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from skyfill.cli import main; "
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0; "
        "print(*{'numba', 'scipy', 'sklearn', 'pyarrow', 'astropy', 'pandas'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == ""


def test_every_public_name_is_there_and_nothing_else():
    for name in skyfill.__all__:
        assert getattr(skyfill, name) is not None
    assert sorted(dir(skyfill)) == sorted(skyfill.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fill'"):
        skyfill.fill  # noqa: B018 - asking for it is the test
