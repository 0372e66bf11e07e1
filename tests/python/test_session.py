# SPDX-License-Identifier: Apache-2.0
"""Programs and sessions: what they compute, against numpy; files; threads."""

import threading

import numpy as np
import pytest
from conftest import LINEAR

import einc


def test_a_model_describes_its_program(linear):
    assert linear.name == "linear.ein" and linear.trains and linear.dims == {"batch": 4, "features": 3}
    assert linear.inputs == (("x", "f32", ("batch", "features"), (4, 3)), ("y", "f32", ("batch",), (4,)))
    assert [p.name for p in linear.params] == ["w"] and linear.outputs[0].axes == ("batch",)
    assert "linear.ein" in repr(linear)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_steps_compute_what_numpy_does(data, target):
    model = einc.compile(LINEAR, dims={"batch": 4}, target=target)
    session = einc.Session(model, threads=1)
    w = np.array([0.5, -1, 2], np.float32)
    session.params["w"] = w
    x, y = data["x"].astype(np.float64), data["y"].astype(np.float64)
    error = x @ w - y
    gradient = 2 / 4 * x.T @ error
    assert session.evaluate(data) == pytest.approx(np.mean(error**2), rel=1e-5)
    assert session.step(**data) == pytest.approx(np.mean(error**2), rel=1e-5)
    np.testing.assert_allclose(session.gradients["w"], gradient, rtol=1e-5)
    np.testing.assert_allclose(session.params["w"], w - 0.1 * gradient, rtol=1e-5)
    assert session.steps == 1 and session.loss == pytest.approx(np.mean(error**2), rel=1e-5)
    np.testing.assert_allclose(session.run()["p"], x @ session.params["w"], rtol=1e-5)


def test_training_goes_down_and_equal_seeds_give_equal_bits(linear, data):
    sessions = [einc.Session(linear, threads).init(seed=3) for threads in (1, 2)]
    losses = [[session.step(data) for _ in range(20)] for session in sessions]
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert sessions[0].params["w"].tobytes() == sessions[1].params["w"].tobytes()


def test_files(linear, data, tmp_path):
    session = einc.Session(linear).init(1)
    session.step(data)
    session.save(tmp_path / "w.safetensors")
    session.save_checkpoint(tmp_path / "run")
    other = einc.Session(linear)
    assert other.load(tmp_path / "w.safetensors") == ([], [])
    assert other.params["w"].tobytes() == session.params["w"].tobytes()
    assert not other.resume(tmp_path / "nothing") and other.resume(tmp_path / "run") and other.steps == 1
    assert other.step(data) == session.step(data)


def test_files_that_are_programs(tmp_path, data):
    path = tmp_path / "linear.ein"
    path.write_text(LINEAR)
    for given in (path, str(path)):
        assert einc.compile(given, dims={"batch": 2}).inputs[0].shape == (2, 3)


def test_the_interpreter_runs_other_threads_meanwhile():
    """While a long run computes, another thread of Python counts."""
    text = 'input a: f32[n=700 m=700]\noutput y = einsum(a, a, a, a, "i j, j k, k l, l o -> i o")\n'
    session = einc.Session(einc.compile(text, purpose="inference"), threads=1)
    a = np.ones((700, 700), np.float32)
    count, done = 0, threading.Event()

    def work():
        runs = 0
        while runs < 5:
            try:
                session.run(a=a)
                runs += 1
            except einc.UsageError:  # the other thread is in the session
                pass
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        count += 1
        if count == 200:
            with pytest.raises(einc.UsageError, match="another thread"):
                for _ in range(100000):
                    session.set("a", a)
    thread.join()
    assert count > 200


def test_one_model_on_several_threads(linear, data):
    results = {}

    def train(number):
        session = einc.Session(linear, threads=1).init(9)
        for _ in range(30):
            session.step(data)
        results[number] = session.params["w"].tobytes()

    threads = [threading.Thread(target=train, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(set(results.values())) == 1
