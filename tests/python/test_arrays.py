# SPDX-License-Identifier: Apache-2.0
"""Arrays are used where they lie: by address, with numpy, the buffer protocol, jax and torch."""

import array
import gc
import weakref

import numpy as np
import pytest
from conftest import address

import einc

COPY = """dim n = 6
input x: f32[n]
param w: f32[n] ~ ones
output y = x * w
output same = x
"""


@pytest.fixture
def session():
    return einc.Session(einc.compile(COPY, purpose="inference")).init()


def test_numpy_arrays_are_not_copied(session):
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(session.run(x=x)["y"], x)
    assert address(session._session.read(einc._einc.Role.input, "x")) == address(x)
    x[:] = 7  # what it holds at a run counts
    np.testing.assert_array_equal(session.run()["y"], np.full(6, 7))


def test_read_only_arrays_are_inputs_but_no_params(session):
    x = np.arange(6, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(session.run(x=x)["y"], x)
    assert address(session._session.read(einc._einc.Role.input, "x")) == address(x)
    with pytest.raises(einc.UsageError, match="'w' may not be written"):
        session.bind("w", x)


def test_the_buffer_protocol(session):
    x = array.array("f", [1, 2, 3, 4, 5, 6])
    session.run(x=x)
    assert address(session._session.read(einc._einc.Role.input, "x")) == x.buffer_info()[0]


def test_params_are_trained_where_they_are_bound(data, linear):
    w = np.zeros(3, np.float32)
    session = einc.Session(linear)
    session.bind("w", w)
    session.step(data)
    assert address(session.params["w"]) == address(w) and np.any(w != 0)


def test_results_are_views_and_keep_what_they_lie_in(session):
    y = session.run(x=np.ones(6, np.float32))["y"]
    again = session.run(x=np.full(6, 2, np.float32))["y"]
    assert address(y) == address(again) and y[0] == 2  # the next run overwrites it
    del session
    gc.collect()
    assert again[0] == 2


def test_a_result_that_is_an_input_keeps_its_array(session):
    x = np.full(6, 3, np.float32)
    same = session.run(x=x)["same"]
    alive = weakref.ref(x)
    session.run(x=np.zeros(6, np.float32))
    shares = address(same) == address(x)
    del x
    gc.collect()
    assert not shares or (alive() is not None and same[0] == 3)


def test_results_given_back_are_copied(session):
    """A run that read the memory it writes would give something else."""
    session.params["w"] = np.full(6, 2, np.float32)
    y = session.run(x=np.ones(6, np.float32))["y"]
    for power in (4, 8, 16):
        y = session.run(x=y)["y"]
        np.testing.assert_array_equal(y, np.full(6, power))
    reversed_view = session.run(x=y[::-1])["y"]
    np.testing.assert_array_equal(reversed_view, np.full(6, 32))


def test_copies_are_their_own():
    session = einc.Session(einc.compile(COPY, purpose="inference"), copy=True).init()
    first = session.run(x=np.ones(6, np.float32))["y"]
    session.run(x=np.zeros(6, np.float32))
    np.testing.assert_array_equal(first, np.ones(6))


def test_arrays_with_gaps_are_copied(session):
    x = np.arange(12, dtype=np.float32)[::2]
    np.testing.assert_array_equal(session.run(x=x)["y"], x)
    with pytest.raises(einc.UsageError, match="not row-major"):
        session.bind("w", np.zeros(12, np.float32)[::2])


def test_arrays_live_as_long_as_they_are_used(session):
    x = np.ones(6, np.float32)
    alive = weakref.ref(x)
    session.bind("x", x)
    del x
    gc.collect()
    assert alive() is not None
    session.bind("x", np.zeros(6, np.float32))
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("given, message", [
    (np.zeros(6), "'x' is f32.6., but given as f64.6."),
    (np.zeros((2, 3), np.float32), "given as f32.2 3."),
    (np.zeros(6, np.complex64), "einc has no dtype for"),
    ([1, 2, 3, 4, 5, 6], "is given a list, which is no array"),
    (None, "is given a NoneType"),
])
def test_what_does_not_fit_is_refused(session, given, message):
    with pytest.raises(einc.UsageError, match=message):
        session.run(x=given)


@pytest.mark.parametrize("dtype, name", [
    (np.float64, "f64"), (np.float32, "f32"), (np.float16, "f16"), (np.int64, "i64"), (np.int32, "i32"), (np.uint16, "u16"),
    (np.uint8, "u8"), (np.bool_, "bool"),
])
def test_every_dtype_of_numpy(dtype, name):
    session = einc.Session(einc.compile(f"input x: {name}[n=4]\noutput y = flip(x, n)\n", purpose="inference"))
    x = np.array([0, 1, 1, 0], dtype)
    x[0] = 1 if dtype is np.bool_ else 100
    y = session.run(x=x)["y"]
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x[::-1])


def test_scalars_and_empty_dims(session):
    scalar = einc.Session(einc.compile("input x: f32[]\noutput y = x + 1\n", purpose="inference"))
    assert scalar.run(x=np.array(2, np.float32))["y"].shape == ()


def test_jax_arrays_are_not_copied(session):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    x = jax.numpy.arange(6, dtype="float32")
    np.testing.assert_array_equal(session.run(x=x)["y"], np.arange(6))
    assert address(session._session.read(einc._einc.Role.input, "x")) == x.unsafe_buffer_pointer()


def test_torch_tensors_are_not_copied(session):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, w = torch.arange(6, dtype=torch.float32), torch.full((6,), 2.0)
    session.bind("w", w)
    np.testing.assert_array_equal(session.run(x=x)["y"], 2 * np.arange(6))
    assert address(session._session.read(einc._einc.Role.input, "x")) == x.data_ptr()
    assert address(session.params["w"]) == w.data_ptr()


def test_bf16_comes_back_by_dlpack():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    session = einc.Session(einc.compile("input x: bf16[n=3]\noutput y = flip(x, n)\n", purpose="inference"))
    x = torch.tensor([1.5, 2, 3], dtype=torch.bfloat16)
    y = torch.from_dlpack(session.run(x=x)["y"])
    assert y.dtype == torch.bfloat16 and y.tolist() == [3, 2, 1.5]
