"""Arrays and text that go into the page."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from skyfill.report.packing import pack, to_script, unpack


@pytest.mark.parametrize("kind", ["f8", "f4", "u1"])
def test_packed_arrays_come_back(kind):
    values = np.arange(12).reshape(3, 4).astype(kind)
    np.testing.assert_array_equal(unpack(json.loads(json.dumps(pack(values, kind)))), values)


@given(arrays(np.float64, array_shapes(max_dims=2)))
def test_packing_keeps_every_bit(values):
    assert unpack(pack(values)).tobytes() == values.tobytes()


@given(st.recursive(st.text() | st.floats(allow_nan=False), st.lists))
def test_script_text_is_json_that_cannot_end_its_element(value):
    text = to_script(value)
    assert not set("<>&\u2028\u2029") & set(text)
    again = json.loads(text)
    assert json.dumps(again) == json.dumps(json.loads(json.dumps(again)))


def test_what_json_does_not_know_becomes_null():
    assert to_script({"a": [np.float64("nan"), float("inf"), np.int64(2)]}) == '{"a":[null,null,2]}'
