# SPDX-License-Identifier: Apache-2.0
"""Errors are exceptions of their kind, with the rendered message and the diagnostics."""

import pytest

import einc


def test_a_wrong_program():
    with pytest.raises(einc.ProgramError) as caught:
        einc.compile("input x: f32[3]\noutput y = x + z\n", name="wrong.ein")
    text, diagnostics = str(caught.value), caught.value.diagnostics
    assert "wrong.ein:2:16" in text and "output y = x + z" in text and "^" in text
    assert len(diagnostics) == 1 and diagnostics[0].line == 2 and diagnostics[0].column == 16 and diagnostics[0].code.startswith("E")


def test_every_kind(tmp_path, linear):
    session = einc.Session(linear)
    with pytest.raises(einc.UsageError, match="n has no value"):
        einc.compile("dim n\ninput x: f32[n]\noutput y = x\n")
    with pytest.raises(einc.UsageError, match="no precision 'f31'"):
        einc.compile("input x: f32[3]\noutput y = x\n", precision="f31")
    with pytest.raises(einc.UsageError, match="no device `abacus`"):
        einc.report("input x: f32[3]\noutput y = x\n", device="abacus")
    with pytest.raises(einc.ResourceError, match="nothing.ein"):
        einc.compile(tmp_path / "nothing.ein")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"\x10")
    with pytest.raises(einc.DataError, match="damaged"):
        session.load(damaged)
    with pytest.raises(einc.UsageError, match="before a run"):
        session.outputs["p"]
    with pytest.raises(KeyError):
        session.params["nobody"]
    with pytest.raises(einc.UsageError, match="computed"):
        session.gradients["w"] = None


def test_a_step_that_is_not_finite(linear, data):
    session = einc.Session(linear).init()
    before = session.params["w"].tobytes()
    data["x"][:] = 1e38
    with pytest.raises(einc.NumericError, match="loss is inf"):
        session.step(data)
    assert session.params["w"].tobytes() == before


def test_kinds_are_python_s_own_too():
    assert issubclass(einc.UsageError, ValueError) and issubclass(einc.DataError, ValueError)
    assert issubclass(einc.NumericError, ArithmeticError)
    assert all(issubclass(kind, einc.Error) for kind in (einc.ProgramError, einc.ResourceError, einc.InternalError))
