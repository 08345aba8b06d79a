import json

import pytest
from click.testing import CliRunner

from skyfill.cli import main


def test_the_demo_prints_arcs_filled_values_and_errors():
    said = CliRunner().invoke(main, ["demo"])
    assert said.exit_code == 0, said.output
    for words in (
        "1833 objects",
        "Strongest arcs",
        "Some filled values",
        "rms error",
        "within 1 sd",
    ):
        assert words in said.stdout


@pytest.mark.parametrize("score", ["bic", "k2"])
def test_filled_values_are_far_better_than_column_means(score):
    said = CliRunner().invoke(main, ["demo", "--json", "--score", score, "--seed", "3"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert found["gaps"] > 5000
    assert {"parent", "child", "weight"} == set(found["arcs"][0])
    for band in found["bands"]:
        if band["missing"] > 0.1:
            assert band["rms_error"] < 0.5 * band["rms_error_of_column_mean"]


def test_an_unknown_command_or_option_is_a_users_mistake():
    for words in (["dance"], ["demo", "--score", "aic"], ["demo", "extra"]):
        said = CliRunner().invoke(main, words)
        assert said.exit_code == 2
        assert "Traceback" not in said.output
