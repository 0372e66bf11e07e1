#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.json: small programs, their inputs, and what PyTorch (or numpy) says their outputs are.

Run it with a Python that has numpy and torch: `python3 make_cases.py > cases.json`. Everything is f64 unless a case is
about dtypes. `type` is the type einc must give the output: dtype, axes in order, sizes.
"""
import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
generator = np.random.default_rng(7)
CASES = []
NAMES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
         torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool"}


def numbers(tensor):
    flat = tensor.detach().to(torch.float64).reshape(-1).tolist() if tensor.dtype.is_floating_point else [int(v) for v in tensor.reshape(-1).tolist()]
    return [v if not isinstance(v, float) or math.isfinite(v) else str(v) for v in flat]


def pack(tensor):
    return {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data": numbers(tensor)}


def case(name, program, inputs, outputs, tolerance=1e-12):
    CASES.append({"name": name, "program": program, "inputs": {k: pack(v) for k, v in inputs.items()},
                  "outputs": {k: {"type": t, **pack(v)} for k, (t, v) in outputs.items()}, "tolerance": tolerance})


def normal(*shape):  # values that f32 holds exactly
    return torch.tensor(generator.standard_normal(shape).astype(np.float32).astype(np.float64))


def gradients(y, *wrt):
    return torch.autograd.grad(y, wrt)


# ---- elementwise functions: values and gradients, over a range that covers both tails
line = torch.tensor([-20.0, -3.5, -1.0, -0.25, 0.0, 0.125, 0.5, 1.0, 2.75, 20.0])
positive = torch.tensor([1e-3, 0.25, 0.5, 1.0, 1.5, 2.0, 3.75, 8.0, 20.0, 300.0])
FUNCTIONS = {
    "exp": (torch.exp, line), "expm1": (torch.expm1, line), "log": (torch.log, positive), "log1p": (torch.log1p, positive),
    "sqrt": (torch.sqrt, positive), "rsqrt": (torch.rsqrt, positive), "abs": (torch.abs, line), "sign": (torch.sign, line),
    "sin": (torch.sin, line), "cos": (torch.cos, line), "tanh": (torch.tanh, line), "sigmoid": (torch.sigmoid, line),
    "erf": (torch.erf, line), "relu": (torch.relu, line), "gelu": (F.gelu, line),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), line), "silu": (F.silu, line),
    "softplus": (lambda x: torch.logaddexp(x, torch.zeros_like(x)), line),
}
for name, (function, x) in FUNCTIONS.items():
    x = x.clone().requires_grad_()
    y = function(x)
    (dx,) = gradients(y.sum(), x)
    case(name, f"dim a = 10\ninput x: f64[a]\noutput y = {name}(x)\noutput dx = grad(sum({name}(x)), x)\n", {"x": x},
         {"y": ("f64[a=10]", y), "dx": ("f64[a=10]", dx)}, 1e-11)

# ---- operators, alignment by name, result order
x, y, z = normal(2, 3), normal(3), normal(3, 2)
AB = "dim a = 2, b = 3\ninput x: f64[a b]\ninput y: f64[b]\ninput z: f64[b a]\n"
for text, value, type_ in [
    ("x + y", x + y, "f64[a=2 b=3]"), ("y + x", x + y, "f64[a=2 b=3]"), ("x * z", x * z.T, "f64[a=2 b=3]"),
    ("z - x", z - x.T, "f64[b=3 a=2]"), ("y / x", y / x, "f64[a=2 b=3]"), ("2 * x - 1", 2 * x - 1, "f64[a=2 b=3]"),
    ("-x^2", -(x**2), "f64[a=2 b=3]"), ("(-x)^3", (-x)**3, "f64[a=2 b=3]"), ("2^x^2", 2**(x**2), "f64[a=2 b=3]"),
    ("abs(x)^y", x.abs()**y, "f64[a=2 b=3]"), ("pow(abs(z), 0.5)", z.abs()**0.5, "f64[b=3 a=2]"),
    ("min(x, y)", torch.minimum(x, y.expand(2, 3)), "f64[a=2 b=3]"), ("max(x, 0.25)", x.clamp(min=0.25), "f64[a=2 b=3]"),
    ("max(x, y, 0)", torch.maximum(x, y.expand(2, 3)).clamp(min=0), "f64[a=2 b=3]"),
    ("x < y", x < y, "bool[a=2 b=3]"), ("x >= y", x >= y, "bool[a=2 b=3]"), ("x == z", x == z.T, "bool[a=2 b=3]"),
    ("x != x", x != x, "bool[a=2 b=3]"), ("x > 0 and not y > 0", (x > 0) & ~(y > 0), "bool[a=2 b=3]"),
    ("x > 0 or y <= 0", (x > 0) | (y <= 0), "bool[a=2 b=3]"), ("where(y > 0, x, -x)", torch.where(y > 0, x, -x), "f64[a=2 b=3]"),
    ("where(x > 0, 1.5, -inf)", torch.where(x > 0, 1.5, -math.inf), "real[a=2 b=3]"),
    ("where(x > 0, 1, 0)", (x > 0).int(), "i32[a=2 b=3]"), ("x * rsqrt(b)", x / math.sqrt(3), "f64[a=2 b=3]"),
    ("x * (1 / b)", x / 3, "f64[a=2 b=3]"), ("x + a", x + 2, "f64[a=2 b=3]"), ("x * (1/2)", x / 2, "f64[a=2 b=3]"),
]:
    if type_.startswith("f64[b=3 a=2]") and value.shape == (2, 3):
        value = value.T
    case(text, AB + f"output r = {text}\n", {"x": x, "y": y, "z": z}, {"r": (type_, value)})
u, v = normal(2), normal(3)
case("outer", "dim a = 2, b = 3\ninput u: f64[a]\ninput v: f64[b]\noutput p = u * v\noutput q = v * u\n", {"u": u, "v": v},
     {"p": ("f64[a=2 b=3]", torch.outer(u, v)), "q": ("f64[b=3 a=2]", torch.outer(v, u))})
square = normal(3, 3)
case("repeated names align in order", "dim d = 3\ninput x: f64[d d]\noutput r = x * x + 1\n", {"x": square}, {"r": ("f64[d=3 d=3]", square * square + 1)})
case("three axes", "dim a = 2, b = 3\ninput x: f64[a b]\ninput w: f64[c=4 b]\noutput r: [a b c] = x + w\n", {"x": x, "w": (w := normal(4, 3))},
     {"r": ("f64[a=2 b=3 c=4]", x[:, :, None] + w.T[None])})

# ---- ties and kinks: gradients are shared
t = torch.tensor([1.0, 3.0, 3.0, -2.0], requires_grad=True)
case("ties share", "dim a = 4\ninput x: f64[a]\noutput d = grad(max(x), x)\noutput e = grad(sum(max(x, 3)), x)\noutput f = grad(sum(abs(x - 3)), x)\n", {"x": t},
     {"d": ("f64[a=4]", torch.tensor([0, .5, .5, 0.])), "e": ("f64[a=4]", torch.tensor([0, .5, .5, 0.])), "f": ("f64[a=4]", torch.tensor([-1, 0, 0, -1.]))})
t, w = torch.tensor([2.0, -4.0], requires_grad=True), torch.tensor([math.inf, 3.0])
(dt,) = gradients((torch.where(t > 0, 0.0, t) * w).sum(), t)  # no inf * 0
case("where passes an exact zero", "dim a = 2\ninput x: f64[a]\ninput w: f64[a]\noutput d = grad(sum(where(x > 0, 0, x) * w), x)\n", {"x": t, "w": w},
     {"d": ("f64[a=2]", dt)})

# ---- dtypes
i = torch.tensor([[1, -2, 3], [4, 5, -6]], dtype=torch.int32)
b = torch.tensor([True, False, True])
IB = "dim a = 2, b = 3\ninput i: i32[a b]\ninput m: bool[b]\n"
for text, value, type_ in [
    ("i + 1", i + 1, "i32[a=2 b=3]"), ("i * i", i * i, "i32[a=2 b=3]"), ("i^3", i**3, "i32[a=2 b=3]"), ("i^0", i**0, "i32[a=2 b=3]"), ("3 * 2^30", torch.tensor(3 * 2**30), "i64[]"), ("-i", -i, "i32[a=2 b=3]"),
    ("i + 0.5", i + 0.5, "real[a=2 b=3]"), ("i / 2", i / 2, "real[a=2 b=3]"), ("i + m", i + b, "i32[a=2 b=3]"),
    ("m + m", b.int() * 2, "i32[b=3]"), ("m + 1", b.int() + 1, "i32[b=3]"), ("max(m, not m)", b | ~b, "bool[b=3]"),
    ("exp(i)", torch.exp(i.double()), "real[a=2 b=3]"), ("abs(i)", i.abs(), "i32[a=2 b=3]"), ("sign(i)", i.sign(), "i32[a=2 b=3]"),
    ("relu(i)", i.clamp(min=0), "i32[a=2 b=3]"), ("max(i, 2)", i.clamp(min=2), "i32[a=2 b=3]"), ("i < 2.5", i < 2.5, "bool[a=2 b=3]"),
    ("sum(i)", i.sum(), "i64[]"), ("sum(m)", b.sum(), "i64[]"), ("mean(i, b)", i.double().mean(1), "real[a=2]"), ("prod(i, a)", i.prod(0), "i64[b=3]"),
    ("max(i, b)", i.amax(1), "i32[a=2]"), ("min(i, a)", i.amin(0), "i32[b=3]"), ("cumsum(i, b)", i.cumsum(1), "i64[a=2 b=3]"),
    ("any(m)", b.any(), "bool[]"), ("all(m)", b.all(), "bool[]"), ("any(i, b)", i.bool().any(1), "bool[a=2]"), ("max(m)", b.any(), "bool[]"),
    ("cast(i, f32) / 4", (i / 4).float(), "f32[a=2 b=3]"), ("cast(i, u8)", i.to(torch.uint8), "u8[a=2 b=3]"), ("cast(m, i64)", b.long(), "i64[b=3]"),
    ("cast(i - 1, bool)", (i - 1).bool(), "bool[a=2 b=3]"), ("true and m", b, "bool[b=3]"), ("stop_gradient(i)", i, "i32[a=2 b=3]"),
]:
    case("dtypes: " + text, IB + f"output r = {text}\n", {"i": i, "m": b}, {"r": (type_, value)})
h = torch.tensor([0.1, 1.0, 3.14159, -65000.0]).to(torch.bfloat16)
g = torch.tensor([0.1, 1.0, 3.14159, -6500.0]).to(torch.float16)
s = torch.tensor([0.1, 1.0, 3.14159, -6500.0]).float()
HG = "dim a = 4\ninput h: bf16[a]\ninput g: f16[a]\ninput s: f32[a]\n"
for text, type_ in [("h + 1", "bf16[a=4]"), ("h * rsqrt(a)", "bf16[a=4]"), ("h + g", "f32[a=4]"), ("g + s", "f32[a=4]"), ("h + s", "f32[a=4]"),
                    ("mean(h)", "bf16[]"), ("softmax(g, a)", "f16[a=4]"), ("cast(h, f32)", "f32[a=4]")]:
    hd, gd, sd = h.double(), g.double(), s.double()
    value = {"h + 1": hd + 1, "h * rsqrt(a)": hd / 2, "h + g": hd + gd, "g + s": gd + sd, "h + s": hd + sd, "mean(h)": hd.mean(),
             "softmax(g, a)": gd.softmax(0), "cast(h, f32)": hd}[text]
    case("floats: " + text, HG + f"output r = {text}\n", {"h": h, "g": g, "s": s}, {"r": (type_, value)})

# ---- reductions with gradients
x = normal(2, 3, 4).requires_grad_()
ABC = "dim a = 2, b = 3, c = 4\ninput x: f64[a b c]\n"
REDUCTIONS = [
    ("sum(x)", x.sum(), ""), ("sum(x, b)", x.sum(1), "a=2 c=4"), ("sum(x, c, a)", x.sum((0, 2)), "b=3"), ("mean(x)", x.mean(), ""),
    ("mean(x, c)", x.mean(2), "a=2 b=3"), ("max(x, a)", x.amax(0), "b=3 c=4"), ("max(x)", x.amax(), ""), ("min(x, b, c)", x.amin((1, 2)), "a=2"),
    ("prod(x, c)", x.prod(2), "a=2 b=3"), ("var(x, c)", x.var(2, correction=0), "a=2 b=3"), ("var(x)", x.var(correction=0), ""),
    ("logsumexp(x, b)", x.logsumexp(1), "a=2 c=4"), ("logsumexp(x)", x.logsumexp((0, 1, 2)), ""), ("softmax(x, b)", x.softmax(1), "a=2 b=3 c=4"),
    ("log_softmax(x, a)", x.log_softmax(0), "a=2 b=3 c=4"), ("cumsum(x, c)", x.cumsum(2), "a=2 b=3 c=4"),
    ("top_k(x, c, 2)", x.topk(2, dim=2).values, "a=2 b=3 c=2"),
]
for text, value, axes in REDUCTIONS:
    weights = torch.arange(1.0, value.numel() + 1).reshape(value.shape) / 8
    if text.startswith("top_k"):  # no declared axis has its sizes
        weights = value.detach()
    (dx,) = gradients((value * weights).sum(), x)
    weight = f"stop_gradient({text})" if text.startswith("top_k") else "w"
    declared = "" if text.startswith("top_k") else f"input w: f64[{' '.join(part.split('=')[0] for part in axes.split())}]\n"
    program = ABC + declared + f"output r = {text}\noutput d = grad(sum({text} * {weight}), x)\n"
    inputs = {"x": x, "w": weights} if declared else {"x": x}
    case(text, program, inputs, {"r": (f"f64[{axes}]", value), "d": ("f64[a=2 b=3 c=4]", dx)}, 1e-11)
case("arg reductions", ABC + "output p = argmax(x, b)\noutput q = argmin(x, c)\noutput r = argmax(x)\noutput s = argmin(x, c, a)\noutput t = top_k_index(x, c, 3)\n", {"x": x},
     {"p": ("i32[a=2 c=4]", x.argmax(1).int()), "q": ("i32[a=2 b=3]", x.argmin(2).int()), "r": ("i32[]", x.argmax().int()),
      "s": ("i32[b=3]", x.permute(1, 2, 0).reshape(3, 8).argmin(1).int()), "t": ("i32[a=2 b=3 c=3]", x.topk(3, dim=2).indices.int())})
tied = torch.tensor([2.0, 5.0, 5.0, 1.0, 5.0])
case("first of equals", "dim a = 5\ninput x: f64[a]\noutput p = argmax(x)\noutput q = top_k_index(x, a, 4)\n", {"x": tied},
     {"p": ("i32[]", torch.tensor(1, dtype=torch.int32)), "q": ("i32[a=4]", torch.tensor([1, 2, 4, 0], dtype=torch.int32))})
case("max with an axis that is also a value", "dim a = 2, b = 3\ninput x: f64[a b]\nb2 = 1\noutput r = max(x, b)\noutput s = max(x, b2)\n", {"x": (m := normal(2, 3))},
     {"r": ("f64[a=2]", m.amax(1)), "s": ("f64[a=2 b=3]", m.clamp(min=1))})
masked = torch.tensor([[0.0, -math.inf, 1.0], [-math.inf, -math.inf, 2.0]])
case("softmax of masked rows", "dim a = 2, b = 3\ninput x: f64[a b]\noutput r = softmax(x, b)\noutput s = logsumexp(x, b)\n", {"x": masked},
     {"r": ("f64[a=2 b=3]", masked.softmax(1)), "s": ("f64[a=2]", masked.logsumexp(1))})
big = torch.tensor([[1000.0, 1001.0, 999.0]])
case("large logits", "dim a = 1, b = 3\ninput x: f64[a b]\noutput r = log_softmax(x, b)\n", {"x": big}, {"r": ("f64[a=1 b=3]", big.log_softmax(1))})

# ---- cross-entropy and indexing
logits = normal(2, 3, 5).requires_grad_()
targets = torch.tensor([[0, 4, 2], [1, 1, 3]], dtype=torch.int32)
loss = F.cross_entropy(logits.reshape(6, 5), targets.reshape(6).long(), reduction="none").reshape(2, 3)
case("cross_entropy", "dim b = 2, s = 3, v = 5\ninput x: f64[b s v]\ninput t: i32[b s]\noutput r = cross_entropy(x, t, v)\noutput d = grad(mean(cross_entropy(x, t, v)), x)\n",
     {"x": logits, "t": targets}, {"r": ("f64[b=2 s=3]", loss), "d": ("f64[b=2 s=3 v=5]", gradients(loss.mean(), logits)[0])}, 1e-11)
front = logits.permute(2, 0, 1)
case("cross_entropy over the first axis", "dim b = 2, s = 3, v = 5\ninput x: f64[v b s]\ninput t: i32[s b]\noutput r = cross_entropy(x, t, v)\n",
     {"x": front, "t": targets.T}, {"r": ("f64[b=2 s=3]", loss)}, 1e-11)
table = normal(5, 4).requires_grad_()
rows = table[targets.long()]
weights = normal(2, 3, 4)
case("embedding", "dim b = 2, s = 3, v = 5, e = 4\ninput w: f64[v e]\ninput t: i32[b s]\ninput g: f64[b s e]\noutput r = w[v = t]\noutput d = grad(sum(w[v = t] * g), w)\n",
     {"w": table, "t": targets, "g": weights}, {"r": ("f64[b=2 s=3 e=4]", rows), "d": ("f64[v=5 e=4]", gradients((rows * weights).sum(), table)[0])})
x = normal(4, 5, 3)
XI = "dim a = 4, b = 5, c = 3\ninput x: f64[a b c]\ninput i: i32[c]\ninput j: i32[a n=2]\ninput p: i32[m=2]\ninput q: i32[m=2]\ninput o: i32[]\n"
i3 = torch.tensor([3, 0, 2], dtype=torch.int32)
j = torch.tensor([[0, 4], [1, 1], [2, 3], [4, 0]], dtype=torch.int32)
p, q = torch.tensor([1, 3], dtype=torch.int32), torch.tensor([4, 0], dtype=torch.int32)
o = torch.tensor(2, dtype=torch.int32)
k = torch.arange(3)
for text, value, axes in [
    ("x[a = 1]", x[1], "b=5 c=3"), ("x[a = -1]", x[-1], "b=5 c=3"), ("x[b = 1:4]", x[:, 1:4], "a=4 b=3 c=3"), ("x[b = :2]", x[:, :2], "a=4 b=2 c=3"),
    ("x[b = -2:]", x[:, -2:], "a=4 b=2 c=3"), ("x[b = 1:-1]", x[:, 1:-1], "a=4 b=3 c=3"), ("x[b = :]", x, "a=4 b=5 c=3"), ("x[a = 0, c = 2]", x[0, :, 2], "b=5"),
    ("x[a = 1:3, b = -1, c = 0:2]", x[1:3, -1, 0:2], "a=2 c=2"), ("x[b = b - 1]", x[:, 4], "a=4 c=3"), ("x[a = i]", x[i3.long(), :, k].T, "b=5 c=3"),
    ("x[b = j]", torch.stack([x[r][j[r].long()] for r in range(4)]), "a=4 n=2 c=3"), ("x[a = p]", x[p.long()], "m=2 b=5 c=3"),
    ("x[a = p, b = q]", x[p.long(), q.long()], "m=2 c=3"), ("x[b = q, a = p]", x[p.long(), q.long()], "m=2 c=3"), ("x[b = o]", x[:, 2], "a=4 c=3"),
    ("x[a = p, c = 1]", x[p.long(), :, 1], "m=2 b=5"), ("x[a = o, b = q, c = 0:2]", x[2, q.long(), 0:2], "m=2 c=2"), ("x[b = top_k_index(x, b, 2)]", x.topk(2, dim=1).values, "a=4 b=2 c=3"),
    ("x[b = o + iota(w = 3)]", x[:, 2:5], "a=4 w=3 c=3"),
]:
    case("index: " + text, XI + f"output r = {text}\n", {"x": x, "i": i3, "j": j, "p": p, "q": q, "o": o}, {"r": (f"f64[{axes}]", value)})

# ---- making and arranging
x, y, z = normal(2, 3), normal(4, 2), normal(2, 3)
CP = "dim a = 2\ninput x: f64[a b=3]\ninput y: f64[b=4 a]\ninput z: f64[a b=3]\n"
for text, value, type_ in [
    ("concat(x, y, b)", torch.cat([x, y.T], 1), "f64[a=2 b=7]"), ("concat(y, x, z, b)", torch.cat([y, x.T, z.T], 0), "f64[b=10 a=2]"),
    ("stack(x, z, pair)", torch.stack([x, z]), "f64[pair=2 a=2 b=3]"), ("pad(x, b = (1, 2))", F.pad(x, (1, 2)), "f64[a=2 b=6]"),
    ("pad(x, a = (0, 1), b = (2, 0), value = -inf)", F.pad(x, (2, 0, 0, 1), value=-math.inf), "f64[a=3 b=5]"),
    ("iota(a)", torch.arange(2).int(), "i32[a=2]"), ("iota(k = 4)", torch.arange(4).int(), "i32[k=4]"), ("x * iota(a)", x * torch.arange(2)[:, None], "f64[a=2 b=3]"),
    ("one_hot(iota(k = 3), l = 4)", F.one_hot(torch.arange(3), 4).double(), "real[k=3 l=4]"), ("one_hot(1, a)", torch.tensor([0.0, 1.0]), "real[a=2]"),
    ("dropout(x, 0)", x, "f64[a=2 b=3]"),
]:
    case("make: " + text, CP + f"output r = {text}\n", {"x": x, "y": y, "z": z}, {"r": (type_, value)})
xr, zr = x.clone().requires_grad_(), z.clone().requires_grad_()
both = torch.cat([xr, zr], 1)
weights = normal(2, 6)
dx, dz = gradients((F.pad(both, (1, 1)) * F.pad(weights, (1, 1), value=3)).sum() + torch.stack([xr, zr])[1].sum(), xr, zr)
case("gradients of concat, pad and stack", "dim a = 2\ninput x: f64[a b=3]\ninput z: f64[a b=3]\ninput w: f64[a b=6]\n"
     "y = sum(pad(concat(x, z, b), b = (1, 1)) * pad(w, b = (1, 1), value = 3)) + sum(stack(x, z, pair)[pair = 1])\noutput dx = grad(y, x)\noutput dz = grad(y, z)\n",
     {"x": x, "z": z, "w": weights}, {"dx": ("f64[a=2 b=3]", dx), "dz": ("f64[a=2 b=3]", dz)})

# ---- functions of the second round: values and gradients
near = torch.tensor([-2.75, -1.0, -0.25, -1e-9, 0.0, 0.125, 0.5, 1.0, 2.4, 3.0])
inside = torch.tensor([-0.999, -0.75, -0.25, -1e-9, 0.0, 0.125, 0.5, 0.75, 0.9, 0.9999])
gammas = torch.tensor([-3.5, -0.25, 1e-3, 0.5, 1.0, 1.5, 2.0, 3.75, 8.5, 300.0])
MORE = {"tan": (torch.tan, near), "asin": (torch.asin, inside), "acos": (torch.acos, inside), "atan": (torch.atan, line), "sinh": (torch.sinh, line),
        "cosh": (torch.cosh, line), "erfc": (torch.erfc, near), "erfinv": (torch.erfinv, inside), "lgamma": (torch.lgamma, gammas),
        "floor": (torch.floor, line), "ceil": (torch.ceil, line), "trunc": (torch.trunc, line), "round": (torch.round, torch.arange(-2.5, 2.5, 0.5))}
for name, (function, x) in MORE.items():
    x = x.clone().requires_grad_()
    y = function(x)
    (dx,) = gradients(y.sum(), x)
    stepped = name in ("floor", "ceil", "trunc", "round")
    derivative = "" if stepped else f"output dx = grad(sum({name}(x)), x)\n"
    outputs = {"y": ("f64[a=10]", y)} | ({} if stepped else {"dx": ("f64[a=10]", dx)})
    case(name, f"dim a = 10\ninput x: f64[a]\noutput y = {name}(x)\n{derivative}", {"x": x}, outputs, 1e-11)
u, v = normal(4).requires_grad_(), normal(4).requires_grad_()
y = torch.atan2(u, v)
du, dv = gradients(y.sum(), u, v)
case("atan2", "dim a = 4\ninput u: f64[a]\ninput v: f64[a]\ny = atan2(u, v)\noutput y\noutput du = grad(sum(y), u)\noutput dv = grad(sum(y), v)\n",
     {"u": u, "v": v}, {"y": ("f64[a=4]", y), "du": ("f64[a=4]", du), "dv": ("f64[a=4]", dv)})
signs = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 1e-300, 1e300])
case("atan2 at its edges", "dim a = 8\ninput x: f64[a]\noutput y: [b a] = atan2((x: [b=8]), x)\n".replace("(x: [b=8])", "z").replace("input x", "input z: f64[b=8]\ninput x"),
     {"z": signs, "x": signs}, {"y": ("f64[b=8 a=8]", torch.atan2(signs[:, None].expand(8, 8).contiguous(), signs.expand(8, 8).contiguous()))})
t, lo, hi = torch.tensor([-1.0, -0.5, 0.25, 1.5, 2.0]).requires_grad_(), torch.tensor(-0.5).requires_grad_(), torch.tensor(1.5).requires_grad_()
y = torch.clamp(t, lo, hi)
case("clamp", "dim a = 5\ninput x: f64[a]\ninput lo: f64[]\ninput hi: f64[]\ny = clamp(x, lo, hi)\noutput y\noutput d = grad(sum(y), x)\n"
     "output dl = grad(sum(y), lo)\noutput dh = grad(sum(y), hi)\noutput n = clamp(x, 0, 1)\n", {"x": t, "lo": lo, "hi": hi},
     {"y": ("f64[a=5]", y), "d": ("f64[a=5]", torch.tensor([0.0, 1, 1, 1, 0])), "dl": ("f64[]", torch.tensor(1.0)), "dh": ("f64[]", torch.tensor(1.0)),
      "n": ("f64[a=5]", t.clamp(0, 1))})
w = torch.tensor([math.nan, math.inf, -math.inf, 0.0, 1e308])
case("kinds of numbers", "dim a = 5\ninput x: f64[a]\noutput p = isnan(x)\noutput q = isinf(x)\noutput r = isfinite(x)\noutput s = isnan(iota(a))\n", {"x": w},
     {"p": ("bool[a=5]", w.isnan()), "q": ("bool[a=5]", w.isinf()), "r": ("bool[a=5]", w.isfinite()), "s": ("bool[a=5]", torch.zeros(5, dtype=torch.bool))})

# ---- integers: // and % as Python's, casts that saturate, i64 exactly
m, n = torch.tensor([7, -7, 7, -7, 0, 6, -2**31], dtype=torch.int32), torch.tensor([2, 2, -2, -2, 5, -3, -1], dtype=torch.int32)
wide, by = torch.tensor([2**62 + 1, -2**62 - 1, 2**53 + 1]), torch.tensor([3, 2**40 + 7, -10])
case("floor division", "dim a = 7, b = 3\ninput m: i32[a]\ninput n: i32[a]\ninput w: i64[b]\ninput v: i64[b]\noutput q = m // n\noutput r = m % n\n"
     "output p = w // v\noutput s = w % v\noutput t = -m // 2 % 3\noutput u = (m == 7) // 1\noutput k = -7 // 2 + 7 % -4\n"
     "output d = (v + 9223372036854775807 // 2) % 9007199254740993\n", {"m": m, "n": n, "w": wide, "v": by},
     {"q": ("i32[a=7]", torch.tensor([3, -4, -4, 3, 0, -2, -2**31], dtype=torch.int32)), "r": ("i32[a=7]", torch.tensor([1, 1, -1, -1, 0, 0, 0], dtype=torch.int32)),
      "p": ("i64[b=3]", torch.tensor([a // b for a, b in zip(wide.tolist(), by.tolist())])), "s": ("i64[b=3]", torch.tensor([a % b for a, b in zip(wide.tolist(), by.tolist())])),
      "t": ("i32[a=7]", torch.tensor([-a // 2 % 3 if a > -2**31 else -2**30 % 3 for a in m.tolist()], dtype=torch.int32)), "u": ("i32[a=7]", (m == 7).int()),
      "k": ("i32[]", torch.tensor(-7 // 2 + 7 % -4, dtype=torch.int32)),
      "d": ("i64[b=3]", torch.tensor([(b + 2**62 - 1) % 9007199254740993 for b in by.tolist()]))})
case("floors of dims", "dim a = 7, b = 2\ndim half = a // b, odd = a % b\ninput x: f64[a]\noutput r = x[a = 0:half] * (a // 3) + (odd - b // 3)\noutput s = iota(k = (a + b) % 5)\n",
     {"x": (x := normal(7))}, {"r": ("f64[a=3]", x[:3] * 2 + 1), "s": ("i32[k=4]", torch.arange(4).int())})
far = torch.tensor([3e9, -3e9, 2.9, -2.9, math.nan, math.inf, -math.inf, 1e19, 300.0, -1.0])
case("casts saturate", "dim a = 10\ninput x: f64[a]\noutput r = cast(x, i32)\noutput s = cast(x, i64)\noutput t = cast(x, u8)\noutput u = cast(cast(x, f32), i32)\n", {"x": far},
     {"r": ("i32[a=10]", torch.tensor([2**31 - 1, -2**31, 2, -2, 0, 2**31 - 1, -2**31, 2**31 - 1, 300, -1], dtype=torch.int32)),
      "s": ("i64[a=10]", torch.tensor([3 * 10**9, -3 * 10**9, 2, -2, 0, 2**63 - 1, -2**63, 2**63 - 1, 300, -1])),
      "t": ("u8[a=10]", torch.tensor([255, 0, 2, 0, 0, 255, 0, 255, 255, 0], dtype=torch.uint8)),
      "u": ("i32[a=10]", torch.tensor([2**31 - 1, -2**31, 2, -2, 0, 2**31 - 1, -2**31, 2**31 - 1, 300, -1], dtype=torch.int32))})

# ---- filled tensors, std, norm, flips, steps, ways to pad
x = normal(5, 4).requires_grad_()
XA = "dim a = 5, b = 4\ninput x: f64[a b]\n"
for text, value, axes in [
    ("std(x, b)", x.std(1, correction=0), "a=5"), ("std(x)", x.std(correction=0), ""), ("norm(x, a)", x.norm(dim=0), "b=4"), ("norm(x)", x.norm(), ""),
    ("flip(x, a)", x.flip(0), "a=5 b=4"), ("flip(x, b, a)", x.flip(0, 1), "a=5 b=4"), ("x[a = ::2]", x[::2], "a=3 b=4"), ("x[a = 1::3, b = :3:2]", x[1::3, :3:2], "a=2 b=2"),
    ("x[a = ::-1]", x.flip(0), "a=5 b=4"), ("x[a = 3:0:-2]", x[[3, 1]], "a=2 b=4"), ("x[a = -1:-5:-1]", x[[4, 3, 2, 1]], "a=4 b=4"), ("x[a = :2:-1]", x[[4, 3]], "a=2 b=4"),
    ("x[a = 5:1:-3]", x[[4]], "a=1 b=4"), ("x[a = 3::-1]", x[[3, 2, 1, 0]], "a=4 b=4"),
    ("pad(x, a = (2, 1), mode = \"reflect\")", F.pad(x.T[None], (2, 1), mode="reflect")[0].T, "a=8 b=4"),
    ("pad(x, a = (0, 3), b = (2, 0), mode = \"replicate\")", F.pad(x[None, None], (2, 0, 0, 3), mode="replicate")[0, 0], "a=8 b=6"),
    ("pad(x, a = (1, 2), b = (3, 4), mode = \"circular\")", F.pad(x[None, None], (3, 4, 1, 2), mode="circular")[0, 0], "a=8 b=11"),
    ("pad(x, b = (1, 0), mode = \"constant\", value = 2)", F.pad(x, (1, 0), value=2.0), "a=5 b=5"),
]:
    square = (value**2).sum()
    (dx,) = gradients(square, x)
    case("shape: " + text, XA + f"y = {text}\noutput r = y\noutput d = grad(sum(y^2), x)\n", {"x": x}, {"r": (f"f64[{axes}]", value), "d": ("f64[a=5 b=4]", dx)}, 1e-11)
case("a norm of 0 has no slope", "dim a = 2, b = 3\ninput x: f64[a b]\noutput r = norm(x, b)\noutput d = grad(sum(norm(x, b)), x)\n", {"x": torch.tensor([[0.0, 0, 0], [3, 0, 4]])},
     {"r": ("f64[a=2]", torch.tensor([0.0, 5.0])), "d": ("f64[a=2 b=3]", torch.tensor([[0.0, 0, 0], [0.6, 0, 0.8]]))})
case("filled", "dim a = 2\ninput x: f64[]\noutput p = zeros(a, k = 3)\noutput q = ones(a)\noutput r = full(a, 7)\noutput s = full(a, x)\noutput t = full(k = 2, value = 2.5)\noutput u = zeros()\n",
     {"x": torch.tensor(4.5)}, {"p": ("real[a=2 k=3]", torch.zeros(2, 3)), "q": ("real[a=2]", torch.ones(2)), "r": ("i32[a=2]", torch.full((2,), 7, dtype=torch.int32)),
      "s": ("f64[a=2]", torch.full((2,), 4.5)), "t": ("real[k=2]", torch.full((2,), 2.5)), "u": ("real[]", torch.tensor(0.0))})

# ---- cross-entropy with ignored targets and smoothing
logits = normal(2, 3, 5).requires_grad_()
targets = torch.tensor([[0, -100, 2], [1, 1, -100]], dtype=torch.int32)
for keywords, options in [("ignore = -100", {}), ("ignore = -100, smoothing = 0.1", {"label_smoothing": 0.1})]:
    loss = F.cross_entropy(logits.reshape(6, 5), targets.reshape(6).long(), reduction="none", **options).reshape(2, 3)
    case("cross_entropy: " + keywords, f"dim b = 2, s = 3, v = 5\ninput x: f64[b s v]\ninput t: i32[b s]\ny = cross_entropy(x, t, v, {keywords})\noutput y\noutput d = grad(sum(y), x)\n",
         {"x": logits, "t": targets}, {"y": ("f64[b=2 s=3]", loss), "d": ("f64[b=2 s=3 v=5]", gradients(loss.sum(), logits)[0])}, 1e-11)
small = torch.tensor([[3, 200, 1]], dtype=torch.uint8)
case("cross_entropy: bytes and a row's share", "dim s = 3, v = 5\ninput x: f64[v]\ninput t: u8[s]\noutput y = cross_entropy(x, t, v, ignore = 200, smoothing = 0.5)\n",
     {"x": logits[0, 0].detach(), "t": small[0]}, {"y": ("f64[s=3]", F.cross_entropy(logits[0, 0].detach().expand(3, 5), small[0].long(), reduction="none", ignore_index=200, label_smoothing=0.5))}, 1e-11)

# ---- sorts and what runs along an axis
x = torch.tensor([[3.0, -1.0, 2.0, 2.0, math.nan, 0.0], [1.0, math.inf, 1.0, -math.inf, 2.0, -0.5]])
xi = torch.tensor([4, 1, 4, -2**31, 1, 2**31 - 1], dtype=torch.int32)
SX = "dim a = 2, b = 6\ninput x: f64[a b]\ninput i: i32[b]\n"
up, down = x.sort(dim=1, stable=True), x.sort(dim=1, stable=True, descending=True)
case("sorts: stable, NaN the greatest", SX + "output r = sort(x, b)\noutput s = argsort(x, b)\noutput t = sort(x, b, descending = true)\noutput u = argsort(x, b, descending = true)\n"
     "output v = sort(i, b)\noutput w = argsort(i, b, descending = true)\noutput p = top_k(x, b, 2, smallest = true)\noutput q = top_k_index(i, b, 3, smallest = true)\noutput o = sort(i == 1, b)\n",
     {"x": x, "i": xi}, {"r": ("f64[a=2 b=6]", up.values), "s": ("i32[a=2 b=6]", up.indices.int()), "t": ("f64[a=2 b=6]", down.values), "u": ("i32[a=2 b=6]", down.indices.int()),
      "v": ("i32[b=6]", xi.sort().values), "w": ("i32[b=6]", xi.sort(dim=0, stable=True, descending=True).indices.int()), "p": ("f64[a=2 b=2]", up.values[:, :2]),
      "q": ("i32[b=3]", xi.sort(dim=0, stable=True).indices[:3].int()), "o": ("bool[b=6]", (xi == 1).sort().values)})
x = normal(3, 5).requires_grad_()
weights = normal(3, 5)
for text, value in [("sort(x, b)", x.sort(1).values), ("sort(x, a, descending = true)", x.sort(0, descending=True).values), ("cumprod(x, b)", x.cumprod(1)), ("cummax(x, b)", x.cummax(1).values),
                    ("cummin(x, a)", x.cummin(0).values), ("logcumsumexp(x, b)", x.logcumsumexp(1))]:
    (dx,) = gradients((value * weights).sum(), x)
    case(text, f"dim a = 3, b = 5\ninput x: f64[a b]\ninput w: f64[a b]\ny = {text}\noutput y\noutput d = grad(sum(y * w), x)\n", {"x": x, "w": weights},
         {"y": ("f64[a=3 b=5]", value), "d": ("f64[a=3 b=5]", dx)}, 1e-11)
z = torch.tensor([[2.0, 0.0, 3.0, 0.0, 4.0], [0.0, 2.0, 5.0, 1.0, 1.0]]).requires_grad_()
(dz,) = gradients((z.cumprod(1) * weights[:2]).sum(), z)
case("cumprod of zeros", "dim a = 2, b = 5\ninput x: f64[a b]\ninput w: f64[a b]\noutput y = cumprod(x, b)\noutput d = grad(sum(cumprod(x, b) * w), x)\n", {"x": z, "w": weights[:2]},
     {"y": ("f64[a=2 b=5]", z.cumprod(1)), "d": ("f64[a=2 b=5]", dz)})
ties = torch.tensor([1.0, 3.0, 2.0, 3.0, 3.0]).requires_grad_()
(dt,) = gradients((ties.cummax(0).values * torch.arange(1.0, 6)).sum(), ties)
case("cummax: the latest of equals", "dim a = 5\ninput x: f64[a]\noutput y = cummax(x, a)\noutput d = grad(sum(cummax(x, a) * (iota(a) + 1)), x)\noutput i = cumprod(cast(x, i32), a)\noutput j = cummin(cast(x, u8), a)\n",
     {"x": ties}, {"y": ("f64[a=5]", ties.cummax(0).values), "d": ("f64[a=5]", dt), "i": ("i64[a=5]", torch.tensor([1, 3, 6, 18, 54])), "j": ("u8[a=5]", torch.tensor([1] * 5, dtype=torch.uint8))})
steep = torch.tensor([-math.inf, -1000.0, 0.0, 1000.0, 999.0]).requires_grad_()
case("logcumsumexp of far numbers", "dim a = 5\ninput x: f64[a]\noutput y = logcumsumexp(x, a)\noutput z = logcumsumexp(cast(x, f32), a)\noutput k = logcumsumexp(iota(a), a)\noutput d = grad(sum(logcumsumexp(x, a)[a = 1:]), x)\n",
     {"x": steep}, {"y": ("f64[a=5]", steep.logcumsumexp(0)), "z": ("f32[a=5]", steep.float().logcumsumexp(0).double()), "k": ("real[a=5]", torch.arange(5).double().logcumsumexp(0)),
      "d": ("f64[a=5]", torch.tensor([0.0, 1.0, 1.0, 1 + 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))]))}, 1e-6)

# ---- segments
def segments(values, ids, nodes, reduction):  # of values [e ...] by ids [e]
    first = {"sum": 0.0, "mean": 0.0, "amax": -math.inf, "amin": math.inf}[reduction]
    index = ids.long().reshape(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    return torch.full((nodes, *values.shape[1:]), first).scatter_reduce(0, index, values, reduction, include_self=reduction in ("amax", "amin"))


values, ids = normal(9, 4).requires_grad_(), torch.tensor([3, 0, 3, 1, 1, 5, 3, 0, 5], dtype=torch.int32)
SEG = "dim e = 9, d = 4, node = 7\ninput v: f64[e d]\ninput i: i32[e]\ninput w: f64[node d]\n"
weights = normal(7, 4)
for name, reduction in [("sum", "sum"), ("mean", "mean"), ("max", "amax"), ("min", "amin")]:
    value = segments(values, ids, 7, reduction)
    finite = torch.where(value.isfinite(), value, 0.0)
    (dv,) = gradients((finite * weights).sum(), values)
    case("segment_" + name, SEG + f"y = segment_{name}(v, i, node)\noutput y\noutput dv = grad(sum(where(isfinite(y), y, 0) * w), v)\n", {"v": values, "i": ids, "w": weights},
         {"y": ("f64[node=7 d=4]", value), "dv": ("f64[e=9 d=4]", dv)})
batch_ids = torch.tensor([[3, 0, 1], [0, 0, 1]], dtype=torch.int32)
v3 = normal(2, 4, 3)
each = torch.stack([segments(v3[b].T.contiguous(), batch_ids[b], 4, "sum").T for b in range(2)])
both = segments(v3.permute(0, 2, 1).reshape(6, 4), batch_ids.reshape(6), 4, "sum")
case("segments: aligned axes, several axes, one number", "dim b = 2, d = 4, e = 3\ninput v: f64[b d e]\ninput i: i32[b e]\noutput r = segment_sum(v, i, n = 4, e)\n"
     + "output s = segment_sum(v, i, n = 4)\noutput t = segment_sum(1, i, n = 5)\noutput u = segment_max(i, i, n = 5)\noutput m = segment_mean(v, i, e, n = 4)\noutput k = segment_min(cast(i, u8), i, n = 5)\n",
     {"v": v3, "i": batch_ids}, {"r": ("f64[b=2 d=4 n=4]", each), "s": ("f64[n=4 d=4]", both), "t": ("i64[n=5]", torch.tensor([3, 2, 0, 1, 0])),
      "u": ("i32[n=5]", torch.tensor([0, 1, -2**31, 3, -2**31], dtype=torch.int32)),
      "m": ("f64[b=2 d=4 n=4]", torch.stack([segments(v3[b].T.contiguous(), batch_ids[b], 4, "mean").T for b in range(2)])),
      "k": ("u8[n=5]", torch.tensor([0, 1, 255, 3, 255], dtype=torch.uint8))})
case("segments: ties share", "dim e = 5\ninput v: f64[e]\ninput i: i32[e]\noutput d = grad(sum(segment_max(v, i, n = 2)), v)\n",
     {"v": torch.tensor([2.0, 1.0, 2.0, 3.0, 2.0]), "i": torch.tensor([0, 0, 0, 1, 0], dtype=torch.int32)}, {"d": ("f64[e=5]", torch.tensor([1 / 3, 0, 1 / 3, 1, 1 / 3]))})

sys.stdout.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
