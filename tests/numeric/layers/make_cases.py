#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.json: layers of the bundled library, fns with gradients of their own, windows on an einsum's right, and what PyTorch
says of them.

Run it with a Python that has numpy and torch: `python3 make_cases.py > cases.json`. Everything is f64. Params are given by path,
so that both sides have the same ones; gradients by params are those of the loss. `mode` is training or inference.
"""
import json
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
generator = np.random.default_rng(11)
CASES = []


def normal(*shape):
    """Multiples of 1/64, which are short to write."""
    return torch.tensor(np.round(generator.standard_normal(shape) * 64) / 64, requires_grad=True)


def pack(tensor):
    names = {torch.float64: "f64", torch.int64: "i64", torch.int32: "i32"}
    flat = [float(f"{v:.13g}") if isinstance(v, float) else v for v in tensor.detach().reshape(-1).tolist()]
    return {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data": flat}


def case(name, program, inputs, outputs, params=None, states=None, after=None, gradients=None, mode="training", tolerance=1e-10):
    """outputs: {name: (axes, value)}; after: what states hold afterwards; gradients of params, of the program's loss."""
    groups = {"inputs": inputs, "params": params or {}, "states": states or {}, "after": after or {}, "gradients": gradients or {}}
    CASES.append({"name": name, "program": program, "mode": mode, "tolerance": tolerance,
                  "outputs": {k: {"axes": a, **pack(v)} for k, (a, v) in outputs.items()},
                  **{group: {k: pack(v) for k, v in values.items()} for group, values in groups.items()}})


def first(x):  # channels first, and last again
    return x.permute(0, 3, 1, 2)


def last(x):
    return x.permute(0, 2, 3, 1)


def set_params(module, **values):
    for name, value in values.items():
        module.get_parameter(name).data = value.detach()
    return module


# ---- windows of images
IMAGE = "import nn\ndim b = 2, y = 6, x = 5, c = 2, o = 3\ninput i: f64[b y x c]\n"
for kernel, stride, padding, dilation in [(3, 1, 1, 1), (3, 2, 1, 1), (2, 3, 0, 1), (3, 1, 2, 2), (2, 1, 1, 3)]:
    image, w, bias = normal(2, 6, 5, 2), normal(kernel, kernel, 2, 3), normal(3)
    settings = f"kernel = {kernel}, stride = {stride}, padding = {padding}, dilation = {dilation}"
    result = last(F.conv2d(first(image), w.permute(3, 2, 0, 1), bias, stride, padding, dilation))
    loss = (result**2).sum()
    case(f"conv {settings}", IMAGE + f"output r = conv(i, o, {settings})\nloss = sum(r^2)\noutput d = grad(loss, i)\nminimize loss using sgd(lr = 1)\n",
         {"i": image}, {"r": ("b y x o", result), "d": ("b y x c", torch.autograd.grad(loss, image, retain_graph=True)[0])},
         {"conv.w": w, "conv.b": bias}, gradients=dict(zip(["conv.w", "conv.b"], torch.autograd.grad(loss, [w, bias]))))
    result = last(F.conv_transpose2d(first(image), w.permute(2, 3, 0, 1), bias, stride, padding, dilation=dilation))
    loss = (result**2).sum()
    case(f"conv_transpose {settings}",
         IMAGE + f"output r = conv_transpose(i, o, {settings}) as up\nloss = sum(r^2)\noutput d = grad(loss, i)\nminimize loss using sgd(lr = 1)\n",
         {"i": image}, {"r": ("b y x o", result), "d": ("b y x c", torch.autograd.grad(loss, image, retain_graph=True)[0])},
         {"up.w": w, "up.b": bias}, gradients=dict(zip(["up.w", "up.b"], torch.autograd.grad(loss, [w, bias]))))
for kernel, stride, padding in [(2, 2, 0), (3, 2, 1), (2, 1, 0)]:
    image = normal(2, 6, 5, 2)
    for name, function in [("max_pool", F.max_pool2d), ("avg_pool", F.avg_pool2d)]:
        result = last(function(first(image), kernel, stride, padding))
        weight = normal(*result.shape)
        case(f"{name} {kernel} {stride} {padding}",
             "import nn\ndim b = 2, c = 2\ninput i: f64[b y=6 x=5 c]\n" f"r = {name}(i, {kernel}, {stride}, {padding})\ninput w: f64[b p={result.shape[1]} q={result.shape[2]} c]\noutput r\n"
             "s: [b p q c] = r\noutput d = grad(sum(s * w), i)\n",
             {"i": image, "w": weight}, {"r": ("b y x c", result), "d": ("b y x c", torch.autograd.grad((result * weight).sum(), image)[0])})
image = normal(2, 6, 5, 2)
case("max_pool's stride is its kernel", IMAGE + "output r = max_pool(i, kernel = 3)\n", {"i": image}, {"r": ("b y x c", last(F.max_pool2d(first(image), 3)))})

# ---- einsums with windows on the right
x, w = normal(2, 5, 3), normal(3, 4, 4)
result = F.conv_transpose1d(x.transpose(1, 2), w, stride=3, dilation=2).transpose(1, 2)
loss = (result**3).sum()
dx, dw = torch.autograd.grad(loss, [x, w], create_graph=True)
case("a window on the right", "dim b = 2, y = 5, c = 3, o = 4\ninput x: f64[b y c]\ninput w: f64[c o ky=4]\n"
     'r = einsum(x, w, "b y c, c o ky -> b (3*y + 2*ky) o")\noutput r\nloss = sum(r^3)\noutput dx = grad(loss, x)\noutput dw = grad(loss, w)\n'
     "output dd = grad(sum(dx^2), w)\n", {"x": x, "w": w},
     {"r": ("b (3*y + 2*ky) o", result), "dx": ("b y c", dx), "dw": ("c o ky", dw), "dd": ("c o ky", torch.autograd.grad((dx**2).sum(), w)[0])})
spread = torch.zeros(2, 13, 3)
spread[:, ::3] = x.detach()
case("zeros between", "dim b = 2, y = 5, c = 3\ninput x: f64[b y c]\noutput r = einsum(x, \"b y c -> b (3*y) c\")\noutput s = einsum(x, \"b y c -> c (b) (1*y)\")\n",
     {"x": x}, {"r": ("b (3*y) c", spread), "s": ("c b (y)", x.permute(2, 0, 1))})
p, q = normal(2, 3), normal(4, 2)
case("named ellipses", "dim a = 2, b = 3, c = 4\ninput p: f64[a b]\ninput q: f64[c d=2]\n"
     'output r = einsum(p, q, "...u, ...v -> ...v ...u")\noutput s = einsum(p, q, "a ...u, ...v -> ...u (...v)")\noutput t = einsum(p, p, "...u, ...u -> ...u")\n'
     'output u = rearrange(q, "c ...rest -> ...rest c")\n', {"p": p, "q": q},
     {"r": ("c d a b", torch.einsum("ab,cd->cdab", p, q)), "s": ("b (c d)", torch.einsum("ab,cd->bcd", p, q).reshape(3, 8)), "t": ("a b", p * p),
      "u": ("d c", q.T)})

# ---- normalisation
for mode in ["training", "inference"]:
    image, scale, shift, mean, var = normal(2, 3, 2, 3), normal(3), normal(3), normal(3), normal(3)**2
    norm = set_params(nn.BatchNorm2d(3, momentum=0.2, eps=1e-3), weight=scale, bias=shift).train(mode == "training")
    norm.running_mean.copy_(mean.detach())
    norm.running_var.copy_(var.detach())
    result = last(norm(first(image)))
    weight = normal(*result.shape)
    loss = (result * weight).sum()
    dx, dscale, dshift = torch.autograd.grad(loss, [image, norm.weight, norm.bias])
    case("batch_norm in " + mode, "import nn\ndim b = 2, y = 3, x = 2, c = 3\ninput i: f64[b y x c]\ninput w: f64[b y x c]\n"
         "output r = batch_norm(i, momentum = 0.2, epsilon = 1e-3) as norm\nloss = sum(r * w)\noutput d = grad(loss, i)\n"
         "output ds = grad(sum(batch_norm(i) as second), i)\nminimize loss using sgd(lr = 1)\n",
         {"i": image, "w": weight}, {"r": ("b y x c", result), "d": ("b y x c", dx),
          "ds": ("b y x c", torch.zeros_like(image) if mode == "training" else torch.ones_like(image) / np.sqrt(1 + 1e-5))},
         {"norm.scale": scale, "norm.shift": shift, "second.scale": torch.ones(3), "second.shift": torch.zeros(3)},
         {"norm.running_mean": mean, "norm.running_var": var, "second.running_mean": torch.zeros(3), "second.running_var": torch.ones(3)},
         {"norm.running_mean": norm.running_mean, "norm.running_var": norm.running_var} if mode == "training" else None,
         {"norm.scale": dscale, "norm.shift": dshift} if mode == "training" else None, mode, 1e-6)  # states are f32
image, scale, shift = normal(2, 4, 3, 6), normal(6), normal(6)
for groups in [1, 3, 6]:
    result = last(F.group_norm(first(image), groups, scale, shift, 1e-5))
    loss = (result**3).sum()
    dx, dscale, dshift = torch.autograd.grad(loss, [image, scale, shift])
    case(f"group_norm {groups}", f"import nn\ndim b = 2, y = 4, x = 3, c = 6\ninput i: f64[b y x c]\noutput r = group_norm(i, {groups})\n"
         "loss = sum(r^3)\noutput d = grad(loss, i)\nminimize loss using sgd(lr = 1)\n", {"i": image}, {"r": ("b y x c", result), "d": ("b y x c", dx)},
         {"group_norm.scale": scale, "group_norm.shift": shift}, gradients={"group_norm.scale": dscale, "group_norm.shift": dshift})
rows = normal(2, 3, 6)
case("layer_norm and rms_norm", "import nn\ndim b = 2, s = 3, c = 6\ninput x: f64[b s c]\noutput l = layer_norm(x)\noutput r = rms_norm(x)\n", {"x": rows},
     {"l": ("b s c", F.layer_norm(rows, [6], scale, shift)), "r": ("b s c", F.rms_norm(rows, [6], scale, 1e-5))},
     {"layer_norm.scale": scale, "layer_norm.shift": shift, "rms_norm.scale": scale})

# ---- attention: PyTorch's layer without biases; its weights are [out in], heads outermost in `out`
x, memory = normal(2, 5, 6), normal(2, 7, 6)
wq, wk, wv, wo = normal(6, 3, 2), normal(6, 3, 2), normal(6, 3, 2), normal(3, 2, 6)
layer = nn.MultiheadAttention(6, 3, bias=False, batch_first=True)
layer.in_proj_weight.data = torch.cat([w.detach().reshape(6, 6).T for w in [wq, wk, wv]])
layer.out_proj.weight.data = wo.detach().reshape(6, 6).T
paths = ["w_q", "w_k", "w_v", "w_o"]
for name, call, key, mask in [("attention", "attention(x, heads, head)", x, None), ("causal attention", "attention(x, heads, head, causal = true)", x, True),
                              ("cross_attention", "cross_attention(x, memory, heads, head)", memory, None)]:
    causal = torch.triu(torch.full((5, 5), -torch.inf), 1) if mask else None
    result = layer(x, key, key, attn_mask=causal, need_weights=False)[0]
    loss = (result**2).sum()
    dx, din, dout = torch.autograd.grad(loss, [x, layer.in_proj_weight, layer.out_proj.weight])
    d = [part.T.reshape(6, 3, 2) for part in din.split(6)] + [dout.T.reshape(3, 2, 6)]
    fn = call.split("(")[0]
    case(name, "import nn\ndim b = 2, s = 5, t = 7, c = 6, heads = 3, head = 2\ninput x: f64[b s c]\ninput memory: f64[b t c]\n"
         f"output r = {call}\nloss = sum(r^2)\noutput d = grad(loss, x)\nminimize loss using sgd(lr = 1)\n", {"x": x, "memory": memory},
         {"r": ("b s c", result), "d": ("b s c", dx)}, {f"{fn}.{p}": w for p, w in zip(paths, [wq, wk, wv, wo])},
         gradients={f"{fn}.{p}": g for p, g in zip(paths, d)})

# ---- losses
y, target = normal(4, 3), normal(4, 3)
share = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))
signs = torch.where(target > 0, 1.0, -1.0)
labels = torch.tensor([0, 2, 1, 1], dtype=torch.int32)
shares = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
LOSSES = {"mean_squared_error(y, t)": F.mse_loss(y, target), "mean_absolute_error(y, t)": F.l1_loss(y, target), "huber_loss(y, t)": F.huber_loss(y, target),
          "huber_loss(y, t, delta = 0.5)": F.huber_loss(y, target, delta=0.5), "binary_cross_entropy(y, share)": F.binary_cross_entropy_with_logits(y, share),
          "kl_divergence(log_softmax(y, n), shares)": F.kl_div(y.log_softmax(1), shares, reduction="batchmean"),
          "hinge_loss(y, signs)": F.relu(1 - y * signs).mean(),
          "token_cross_entropy(y, labels)": F.cross_entropy(y, labels.long())}
for text, value in LOSSES.items():
    case("loss: " + text, "import nn\ndim m = 4, n = 3\ninput y: f64[m n]\ninput t: f64[m n]\ninput share: f64[m n]\ninput shares: f64[m n]\ninput signs: f64[m n]\n"
         f"input labels: i32[m]\nloss = {text}\noutput loss\noutput d = grad(loss, y)\n",
         {"y": y, "t": target, "share": share, "shares": shares, "signs": signs, "labels": labels},
         {"loss": ("", value), "d": ("m n", torch.autograd.grad(value, y)[0])})

# ---- derivatives
x, v, w = normal(3), normal(3), normal(3, 4)


def layer_of(x):
    return torch.softmax(torch.tanh(x @ w), 0) * x.sum()


y, change = torch.autograd.functional.jvp(layer_of, x, v)
back = torch.autograd.functional.vjp(layer_of, x, y.detach())[1]
case("jvp and vjp", "dim n = 3, m = 4\ninput x: f64[n]\ninput v: f64[n]\ninput w: f64[n m]\ny = softmax(tanh(einsum(x, w, \"n, n m -> m\")), m) * sum(x)\n"
     "output y\noutput j = jvp(y, x, v)\noutput g = vjp(y, x, y)\n", {"x": x, "v": v, "w": w}, {"y": ("m", y), "j": ("m", change), "g": ("n", back)})


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        g = dy.clamp(-0.5, 0.5)
        return w @ g, torch.outer(x, g)


result = Clipped.apply(x, w)
dx, dw = torch.autograd.grad((result**3).sum(), [x, w])
case("a gradient block", "dim n = 3, m = 4\ninput x: f64[n]\ninput w: f64[n m]\n"
     'fn clipped(x: [n], w: [n m]) { return einsum(x, w, "n, n m -> m") } gradient(dy) {\n  g = min(max(dy, -0.5), 0.5)\n'
     '  return einsum(g, w, "m, n m -> n"), einsum(x, g, "n, m -> n m")\n}\nr = clipped(x, w)\noutput r\noutput dx = grad(sum(r^3), x)\noutput dw = grad(sum(r^3), w)\n',
     {"x": x, "w": w}, {"r": ("m", result), "dx": ("n", dx), "dw": ("n m", dw)})

# ---- recurrences: PyTorch's over series packed by their lengths; [gate unit, input] there is [input gate unit] here
def recurrence(kind, lengths):
    gates, feat, hidden = (4 if kind == "lstm" else 3), 2, 3
    x, w_x, w_h, b_x, b_h = normal(3, 4, feat), normal(feat, gates, hidden), normal(hidden, gates, hidden), normal(gates, hidden), normal(gates, hidden)
    if kind == "lstm":
        b_h = torch.zeros(gates, hidden, requires_grad=True)  # one bias
    layer = nn.LSTM(feat, hidden, batch_first=True) if kind == "lstm" else nn.GRU(feat, hidden, batch_first=True)
    weights = {"weight_ih_l0": w_x.reshape(feat, -1).T, "weight_hh_l0": w_h.reshape(hidden, -1).T, "bias_ih_l0": b_x.reshape(-1), "bias_hh_l0": b_h.reshape(-1)}
    given = x if lengths is None else nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    y, last = torch.func.functional_call(layer, weights, (given,))
    if lengths is not None:
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=4)[0]
    states = [s[0] for s in (last if kind == "lstm" else (last,))]
    loss = (y**2).sum() + sum((s**3).sum() for s in states)
    names = ["h", "c"][:len(states)]
    by = {"w_x": w_x, "w_h": w_h, **({"b": b_x} if kind == "lstm" else {"b_x": b_x, "b_h": b_h})}
    dx, *dw = torch.autograd.grad(loss, [x, *by.values()])
    case(f"{kind} {'of all steps' if lengths is None else 'of lengths'}",
         "import nn\ndim b = 3, time = 4, feat = 2, hidden = 3\ninput x: f64[b time feat]\n" + ("" if lengths is None else "input n: i32[b]\n")
         + f"y, {', '.join(names)} = {kind}(x, hidden{'' if lengths is None else ', n'}) as cell\noutput y\n" + "".join(f"output {n}\n" for n in names)
         + "loss = sum(y^2)" + "".join(f" + sum({n}^3)" for n in names) + "\noutput d = grad(loss, x)\nminimize loss using sgd(lr = 1)\n",
         {"x": x, **({} if lengths is None else {"n": torch.tensor(lengths, dtype=torch.int32)})},
         {"y": ("b time hidden", y), "d": ("b time feat", dx), **{n: ("b hidden", s) for n, s in zip(names, states)}},
         {f"cell.{k}": w for k, w in by.items()}, gradients={f"cell.{k}": d for k, d in zip(by, dw)})


for kind in ["lstm", "gru"]:
    recurrence(kind, None)
    recurrence(kind, [4, 1, 3])


# ---- mixture of experts: all experts of all tokens, times a gate that is 0 for those not chosen or full
def experts_of(x, router, up, down, top, slots):
    flat = x.reshape(-1, x.shape[-1])
    liking = flat @ router
    most, chosen = liking.topk(top)
    gates = most.softmax(1)
    count, kept = [0] * router.shape[1], torch.zeros_like(gates)
    for n in range(len(flat)):
        for k in range(top):
            kept[n, k] = count[chosen[n, k]] < slots
            count[chosen[n, k]] += 1
    share = torch.tensor(count) / (len(flat) * top)
    each = torch.einsum("enf,efc->nec", F.gelu(torch.einsum("nc,ecf->enf", flat, up)), down)
    y = ((gates * kept)[:, :, None] * each.gather(1, chosen[:, :, None].expand(-1, -1, x.shape[-1]))).sum(1)
    return y.reshape(x.shape), router.shape[1] * (share * liking.softmax(1).mean(0)).sum(), int(kept.sum())


x, router, up, down = normal(2, 5, 3), normal(3, 4), normal(4, 3, 6), normal(4, 6, 3)
for top, capacity, whole in [(2, 200, True), (2, 80, False), (1, 50, False), (3, 90, False)]:
    slots = -(-capacity * top * 10 // 400)
    y, balance, kept = experts_of(x, router, up, down, top, slots)
    assert (kept == top * 10) == whole  # the cases are of both kinds
    loss = (y**2).sum() + balance
    grads = torch.autograd.grad(loss, [x, router, up, down])
    case(f"mixture_of_experts of {top}, capacity {capacity}", "import nn\ndim b = 2, s = 5, c = 3, hidden = 6, experts = 4\ninput x: f64[b s c]\n"
         f"y, balance = mixture_of_experts(x, hidden, experts, {top}, {capacity}) as moe\noutput y\noutput balance\n"
         "loss = sum(y^2) + balance\noutput d = grad(loss, x)\nminimize loss using sgd(lr = 1)\n",
         {"x": x}, {"y": ("b s c", y), "balance": ("", balance), "d": ("b s c", grads[0])},
         {"moe.w_router": router, "moe.w_up": up, "moe.w_down": down},
         gradients=dict(zip(["moe.w_router", "moe.w_up", "moe.w_down"], grads[1:])))

sys.stdout.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
