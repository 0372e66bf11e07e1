# SPDX-License-Identifier: Apache-2.0
"""einc.torch.Module: values and gradients beside torch's own, gradcheck in f64, training, state_dict."""

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: its tests are SKIPPED")

import einc  # noqa: E402
import einc.torch  # noqa: E402

BLOCK = """dim batch, seq, embed = 8, heads = 2, head = 4
input x: f64[batch seq embed]
fn attention(x: [batch seq embed]) {
  param w: f64[embed, three=3, heads, head] ~ normal(std = 0.3)
  param out: f64[heads head embed] ~ normal(std = 0.3)
  qkv = einsum(x, w, "batch seq embed, embed three heads head -> three batch heads seq head")
  k: [batch heads key head] = qkv[three = 1]
  v: [batch heads key head] = qkv[three = 2]
  scores = einsum(qkv[three = 0], k, "batch heads seq head, batch heads key head -> batch heads seq key") * rsqrt(head)
  scores = where(iota(key) <= iota(seq), scores, -inf)
  mixed = einsum(softmax(scores, key), v, "batch heads seq key, batch heads key head -> batch seq heads head")
  return einsum(mixed, out, "batch seq heads head, heads head embed -> batch seq embed")
}
output y = x + attention(x) as attn
"""


@pytest.fixture
def block():
    return einc.torch.Module(BLOCK, seed=1)


def reference(x, w, out):
    q, k, v = torch.einsum("bse,ethd->tbhsd", x, w)
    scores = torch.einsum("bhsd,bhkd->bhsk", q, k) / k.shape[-1] ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return x + torch.einsum("bhsk,bhkd,hde->bse", scores, v, out)


def test_parameters_have_the_program_s_paths(block):
    assert {name: tuple(p.shape) for name, p in block.named_parameters()} == {"attn.w": (8, 3, 2, 4), "attn.out": (2, 4, 8)}
    other = einc.torch.Module(BLOCK, seed=2)
    other.load_state_dict(block.state_dict())
    assert torch.equal(other.attn.w, block.attn.w)


def test_values_and_gradients_are_torch_s(block):
    x = torch.randn(3, 5, 8, dtype=torch.float64, requires_grad=True)
    cotangent = torch.randn(3, 5, 8, dtype=torch.float64)
    tensors = (x, block.attn.w, block.attn.out)
    y, expected = block(x), reference(*tensors)
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(y, tensors, cotangent), torch.autograd.grad(expected, tensors, cotangent)):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_gradcheck(block):
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block, (x,))
    names = list(dict(block.named_parameters()))
    values = tuple(p.detach().clone().requires_grad_() for p in block.parameters())
    fixed = x.detach()
    assert torch.autograd.gradcheck(lambda *v: torch.func.functional_call(block, dict(zip(names, v)), fixed), values)


def test_it_trains_inside_a_torch_model(block):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), block, torch.nn.Linear(8, 1)).double()
    x, y = torch.randn(16, 6, 4, dtype=torch.float64), torch.randn(16, 6, 1, dtype=torch.float64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_several_inputs_and_outputs():
    text = """dim n
input a: f32[n]
input index: i32[k=2]
frozen param scale: f32[] ~ constant(3)
param unused: f32[] ~ ones
output picked = a[n = index] * scale
output total = sum(a^2)
output position = argmax(a, n)
"""
    module = einc.torch.Module(text)
    a = torch.tensor([1.0, 5.0, 2.0], requires_grad=True)
    picked, total, position = module(a, index=torch.tensor([2, 0], dtype=torch.int32))
    assert picked.tolist() == [6, 3] and total.item() == 30 and position.item() == 1 and not position.requires_grad
    picked.sum().backward()  # no gradient reaches `total`
    assert a.grad.tolist() == [3, 0, 3] and module.scale.grad is None and not module.scale.requires_grad
    assert module.unused.grad.item() == 0
    assert len(module._runners) == 1 and module(torch.ones(7), torch.zeros(2, dtype=torch.int32))[1].item() == 7
    assert len(module._runners) == 2


def test_it_runs_on_torch_s_threads(block):
    """Threads of its own would compete with torch's for the processors."""
    if "OpenMP" not in torch.__config__.parallel_info().split("ATen parallel backend:")[-1]:
        pytest.skip("this torch has other threads")
    torch.randn(512, 512).mm(torch.randn(512, 512))  # torch's are there
    before = set(os.listdir("/proc/self/task"))
    x = torch.randn(64, 128, 8, dtype=torch.float64)
    block(x).sum().backward()
    assert set(os.listdir("/proc/self/task")) <= before


def test_without_gradients_there_is_no_pullback(block):
    with torch.no_grad():
        y = block(torch.randn(1, 2, 8, dtype=torch.float64))
    assert not y.requires_grad and all(list(runner._models) == ["inference"] for runner in block._runners.values())


def test_a_forward_keeps_its_values_until_its_backward(block):
    """Several forwards may wait for their backwards; one pulled back again is made again."""
    xs = [torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    expected = [torch.autograd.grad(block(x).sum(), x)[0] for x in xs]
    losses = [block(x).sum() for x in xs]
    for i in (1, 0, 2):
        for _ in range(2):
            (gradient,) = torch.autograd.grad(losses[i], xs[i], retain_graph=True)
            assert torch.equal(gradient, expected[i])
    del losses, gradient
    (runner,) = block._runners.values()
    idle = runner._idle["pullback"]
    assert len(idle) == 3  # as many as waited at once, and all have come back
    block(xs[0])  # nobody pulls it back
    assert len(idle) == 3


def test_the_backward_makes_no_forward_again(block):
    """A session that has run forward goes on: what it read then is not read again."""
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(block(x).sum(), x)
    calls = []
    session = next(iter(block._runners.values())).take("pullback")
    session._session = type("Counted", (), {
        "__getattr__": lambda self, name, of=session._session: (calls.append(name), getattr(of, name))[1]
    })()  # fmt: skip
    next(iter(block._runners.values())).give_back("pullback", session)
    (gradient,) = torch.autograd.grad(block(x).sum(), x)
    assert torch.equal(gradient, expected)
    assert calls.count("forward") == 1 and calls.count("backward") == 1 and "run" not in calls


def test_arrays_are_read_where_they_lie(block):
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    y = block(x)
    session = y.grad_fn.left._session
    for name, tensor in {"x": x, **dict(block.named_parameters())}.items():
        role = "input" if name == "x" else "param"
        assert session._session.read(einc._einc.Role[role], name).__array_interface__["data"][0] == tensor.data_ptr()
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


class Watched:
    """Notes where a session's outputs lie when they are released."""

    def __init__(self, session, outputs):
        self._session, self._outputs, self.places = session, outputs, {}

    def __getattr__(self, name):
        return getattr(self._session, name)

    def release_outputs(self):
        for tensor in self._outputs:
            try:
                array = self._session.read(einc._einc.Role.output, tensor.name)
            except einc.UsageError:  # made by the other half
                continue
            self.places.setdefault(tensor.name, []).append(array.__array_interface__["data"][0])
        self._session.release_outputs()


@pytest.fixture
def watched(block):
    """The block, and where the outputs of its sessions have been."""
    block(torch.zeros(2, 3, 8, dtype=torch.float64, requires_grad=True)).sum().backward()
    with torch.no_grad():
        block(torch.zeros(2, 3, 8, dtype=torch.float64))
    (runner,) = block._runners.values()
    sessions = {}
    for purpose, (session,) in runner._idle.items():
        session._session = sessions[purpose] = Watched(session._session, session.model.outputs)
    return block, sessions


def test_outputs_and_gradients_are_made_where_torch_has_them(watched):
    block, sessions = watched
    block.zero_grad()  # else the new gradients are added to those
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    y = block(x)
    assert sessions["pullback"].places["y"] == [y.data_ptr()]
    y.sum().backward()
    for name, tensor in {"x": x, **dict(block.named_parameters())}.items():
        assert sessions["pullback"].places[f"gradient.{name}"][-1] == tensor.grad.data_ptr()
    with torch.no_grad():
        again = block(x)
    assert sessions["inference"].places["y"] == [again.data_ptr()] and torch.equal(again, y)


def test_what_the_backward_reads_again_is_a_copy():
    """Else the caller could change it before."""
    module = einc.torch.Module("dim n\ninput x: f64[n]\noutput y = exp(x)\n")
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    y = module(x)
    expected = y.detach().clone()
    with torch.no_grad():
        y.zero_()
    y.sum().backward()
    assert torch.equal(x.grad, expected)


def test_an_output_that_is_an_input_or_another_output_is_a_copy():
    module = einc.torch.Module("dim n\ninput x: f64[n]\ny = x * 2\noutput a = x\noutput b = y\noutput c = y\n")
    x = torch.randn(7, dtype=torch.float64)
    for given in (x, x.clone().requires_grad_()):
        a, b, c = module(given)
        assert torch.equal(a, x) and torch.equal(b, 2 * x) and torch.equal(c, 2 * x)
        assert len({tensor.data_ptr() for tensor in (given, a, b, c)}) == 4


def test_an_output_is_made_within_its_own_memory():
    session = einc.Session(einc.compile("dim n = 37\ninput x: f32[n]\noutput y = tanh(x) * 2\n", purpose="inference"))
    memory = torch.full((128,), 5.0)
    x = torch.randn(37)
    session._session.bind_output("y", memory[32:69])
    session.run(x=x)
    torch.testing.assert_close(memory[32:69], x.tanh() * 2)
    assert (memory[:32] == 5).all() and (memory[69:] == 5).all()
    session._session.release_outputs()
    assert session.run(x=torch.zeros(37))["y"].sum() == 0 and memory[32:69].abs().sum() > 0
    with pytest.raises(einc.UsageError, match="'y'"):
        session._session.bind_output("y", torch.zeros(36))


def test_a_second_backward(block):
    x = torch.randn(1, 2, 8, dtype=torch.float64, requires_grad=True)
    y = block(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_results_are_their_own(block):
    x = torch.randn(1, 2, 8, dtype=torch.float64)
    first = block(x)
    kept = first.detach().clone()
    block(torch.zeros_like(x))
    assert torch.equal(first, kept)


def test_mistakes(block):
    with pytest.raises(einc.UsageError, match="embed"):
        einc.torch.Module("dim embed\ninput x: f32[embed]\nparam w: f32[embed] ~ ones\noutput y = x * w\n")
    with pytest.raises(einc.UsageError, match="the state 's' has the size of n"):
        einc.torch.Module("dim n\ninput x: f32[n]\nstate s: f32[n] ~ zeros\ns <- s + x\noutput y = x + s\n")
    with pytest.raises(einc.UsageError, match="'x' is f64"):
        block(torch.zeros(1, 2, 8))
    with pytest.raises(einc.UsageError, match="axes"):
        block(torch.zeros(2, 8, dtype=torch.float64))
    with pytest.raises(TypeError, match="the inputs are x"):
        block(y=torch.zeros(1, 2, 8, dtype=torch.float64))
    with pytest.raises(einc.ProgramError):
        einc.torch.Module("output y = x\n")


NORM = """import nn
dim batch, c = 3
input x: f64[batch c]
output y = batch_norm(x) as norm
"""


def test_states_are_buffers_and_modes_are_torch_s():
    ours, theirs = einc.torch.Module(NORM), torch.nn.BatchNorm1d(3, dtype=torch.float64)
    assert set(dict(ours.named_buffers())) == {"norm.running_mean", "norm.running_var"}
    for step in range(4):
        x = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        if step == 2:
            ours.eval(), theirs.eval()
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        results = [module(values) for module, values in zip((ours, theirs), inputs)]
        torch.testing.assert_close(*results, rtol=1e-6, atol=1e-6)
        for result in results:
            result.square().sum().backward()
        torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(ours.norm.running_mean.double(), theirs.running_mean, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(ours.norm.running_var.double(), theirs.running_var, rtol=1e-6, atol=1e-6)
        with torch.no_grad():
            before = ours.norm.running_mean.clone()
            torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-6, atol=1e-6)
            assert torch.equal(before, ours.norm.running_mean)
        ours.train(step < 1), theirs.train(step < 1)


def test_dropout_follows_torch_s_generator():
    module = einc.torch.Module("dim n\ninput x: f32[n]\noutput y = dropout(x, 0.25)\n")
    x = torch.ones(1000, requires_grad=True)

    def drawn(seed):
        torch.manual_seed(seed)
        y = module(x)
        torch.manual_seed(0)  # drawn already
        for _ in range(2):  # the second time the forward is made again
            (gradient,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
            assert torch.equal(gradient, y.detach())
        return y.detach()

    first = drawn(1)
    assert torch.equal(drawn(1), first) and not torch.equal(drawn(2), first)
    assert set(first.tolist()) == {0, torch.tensor(4 / 3).item()} and 650 < (first > 0).sum() < 850
    torch.manual_seed(1)
    with torch.no_grad():
        assert torch.equal(module(x), first) and not torch.equal(module(x), first)
        assert torch.equal(module.eval()(x), x)
    squares = einc.torch.Module("dim n\ninput x: f64[n]\noutput y = dropout(x^2, 0.5)\n")
    assert torch.autograd.gradcheck(lambda v: (torch.manual_seed(3), squares(v))[1], torch.randn(8, dtype=torch.float64, requires_grad=True))


def test_the_backward_is_no_more_differentiable(block):
    x = torch.randn(1, 2, 8, dtype=torch.float64, requires_grad=True)
    cotangent = torch.ones(1, 2, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(block(x), x, cotangent, create_graph=True)
    expected = torch.autograd.grad(block(x), x, cotangent.detach())[0]
    assert torch.equal(gradient, expected) and gradient.requires_grad
    with pytest.raises(einc.UsageError, match="cannot be differentiated again: write it into the program"):
        gradient.sum().backward()


def test_numpy_sees_the_same_values(block):
    session = einc.Session(einc.compile(BLOCK, dims={"batch": 1, "seq": 2}))
    session.init(1)
    x = np.random.default_rng(0).normal(size=(1, 2, 8))
    np.testing.assert_array_equal(session.run(x=x)["y"], block(torch.from_numpy(x)).detach().numpy())
