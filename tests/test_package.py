import subprocess
import sys

import pytest

import skyfill

# Each of these takes between a tenth of a second and several seconds to import.
HEAVY = ["astropy", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "rich", "scipy", "sklearn"]


def modules_after(code):
    """Names of the modules that a fresh process holds once it has run the code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return set(done.stdout.splitlines()[-1].split())


def test_importing_skyfill_imports_the_standard_library_alone():
    added = modules_after("import skyfill") - modules_after("pass")
    assert "skyfill" in added
    outside = {name.partition(".")[0] for name in added} - {*sys.stdlib_module_names}
    assert outside == {"skyfill"}


def test_help_imports_nothing_heavy():
    code = (
        "from click.testing import CliRunner; from skyfill.cli import main; "
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0"
    )
    assert modules_after(code).isdisjoint(HEAVY)


def test_every_public_name_is_there_and_nothing_else():
    for name in skyfill.__all__:
        assert getattr(skyfill, name) is not None
    assert sorted(dir(skyfill)) == sorted(skyfill.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fill'"):
        skyfill.fill  # noqa: B018 - asking for it is the test
