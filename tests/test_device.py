"""The choice of a device, and loops that need less memory than they asked for."""

import numpy as np
import pytest
from click.testing import CliRunner
from numba import njit

import skyfill
from skyfill import device
from skyfill.cli import main
from skyfill.device import gpu_for, in_batches, use_device, using
from skyfill.errors import DeviceError
from tests.devices import DEVICES

without_card = pytest.mark.skipif(device._why_not() is None, reason="there is a GPU")


@njit
def square(i, room, x, out):
    room[0] = x[i] * x[i]
    out[i] = room[0]


@pytest.mark.parametrize("name", DEVICES)
def test_a_body_runs_once_for_each_item(name):
    with using(name):
        there = gpu_for(1, 1)
        x = np.random.default_rng(0).normal(size=1000)
        out = there.empty(1000)
        there.run(square, 1000, there.array(x), out)
        assert np.array_equal(there.host(out), x * x)


@pytest.mark.parametrize("name", DEVICES)
def test_transforms_are_those_of_numpy(name):
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(3, 80)) + 1j * rng.normal(size=(3, 80))).astype(np.complex64)
    with using(name):
        there = gpu_for(1, 1)
        found = there.host(there.fft(there.array(rows)))
    assert np.allclose(found, np.fft.fft(rows), atol=1e-4)


def test_a_small_loop_stays_on_the_cores_unless_a_device_is_asked_for():
    assert gpu_for(10, worth=11) is None
    with using(device.EMULATED):
        assert gpu_for(10, worth=11) is not None
        assert gpu_for(0, worth=11) is None
    with using("cpu"):
        assert gpu_for(10**9, worth=1) is None


def test_other_processes_take_the_device_from_the_environment(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, device.EMULATED)
    assert gpu_for(1, worth=10**9) is not None
    with using("cpu"):
        assert gpu_for(1, worth=1) is None
    monkeypatch.setenv(device.VARIABLE, "tpu")
    with pytest.raises(DeviceError, match="no device is called 'tpu'; choose one of cpu, gpu"):
        gpu_for(1, worth=1)


def test_batches_are_halved_until_they_fit():
    seen = []

    def work(rows):
        if rows.stop - rows.start > 3:
            raise MemoryError
        seen.append((rows.start, rows.stop))
        return rows.stop - rows.start

    with using(device.EMULATED):
        assert in_batches(gpu_for(1, 1), 10, 8, work) == [2, 2, 2, 2, 2]
        assert seen[0] == (0, 2)
        assert seen[-1] == (8, 10)
        with pytest.raises(DeviceError, match="not enough memory for one item; use --device cpu"):
            in_batches(gpu_for(1, 1), 2, 2, lambda rows: work(slice(0, 9)))
        with pytest.raises(ZeroDivisionError):
            in_batches(gpu_for(1, 1), 2, 2, lambda rows: 1 // 0)


def test_an_unknown_device_is_refused_and_the_choice_stays():
    with using("cpu"):
        with pytest.raises(DeviceError, match="choose one of cpu, gpu, auto"):
            skyfill.use_device("quantum")
        assert device.chosen_device() == "cpu"


@without_card
def test_without_a_card_the_library_says_what_is_missing():
    with pytest.raises(DeviceError, match=r"no GPU can be used: .+; use --device cpu"):
        use_device("gpu")
    assert device.chosen_device() == "auto"


@without_card
@pytest.mark.parametrize("command", ["features a", "train a", "impute m a", "classify m a"])
def test_without_a_card_a_command_fails_with_one_line(command, tmp_path):
    out = tmp_path / "out.parquet"
    done = CliRunner().invoke(main, [*command.split(), "--device", "gpu", "-o", str(out)])
    assert done.exit_code == 2
    assert "no GPU can be used: " in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()
    assert device.chosen_device() == "auto"
