# SPDX-License-Identifier: Apache-2.0
"""Random programs (torch_programs.py) beside PyTorch, in f64.

EINC_TORCH_PROGRAMS=FIRST:COUNT runs other seeds. The interpreter takes all of them: what it and machine code make of a program is compared
elsewhere, on many more. Machine code takes a few.
"""

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: its tests are SKIPPED")

import torch_programs  # noqa: E402

import einc  # noqa: E402

FIRST, COUNT = map(int, os.environ.get("EINC_TORCH_PROGRAMS", "1:150").split(":"))
TOLERANCE = 1e-8  # of the largest element: second derivatives through some twenty operations


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def compare(program, target):
    session = einc.Session(einc.compile(program.text, purpose="inference", target=target)).init()
    found = session.run(**program.inputs)
    assert set(found) == set(program.outputs)
    for name, wanted in program.outputs.items():
        assert found[name].shape == wanted.shape, name
        if np.isfinite(wanted).all():
            np.testing.assert_allclose(found[name], wanted, rtol=0, atol=TOLERANCE * max(1, np.abs(wanted).max()), err_msg=name)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_interpreter(seed):
    program = torch_programs.Program(seed)
    print(program.text)  # shown where the test fails
    compare(program, "reference")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + min(COUNT, 10)))
def test_machine_code(seed):
    program = torch_programs.Program(seed)
    print(program.text)
    compare(program, "cpu")


def test_a_wrong_value_is_seen():
    program = torch_programs.Program(FIRST)
    name = next(iter(program.outputs))
    program.outputs[name] = program.outputs[name] + 1e-6 * max(1, np.abs(program.outputs[name]).max())
    with pytest.raises(AssertionError, match=name):
        compare(program, "reference")
