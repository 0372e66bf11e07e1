#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes reference.json: losses and gradients of small models by PyTorch in float64.

Run with a Python that has torch; the result is committed, so tests need no Python. Tensors are filled by a formula that
the test repeats: element k of the t-th param or real input (in the order listed) is scale * sin(1.3 * k + t + 1), plus
`offset`; integer input t holds (7 * k + 3 * t) mod its bound.
"""
import json
import math
import os

import torch

torch.set_default_dtype(torch.float64)


def fill(shape, t, scale, offset=0.0):
    n = math.prod(shape)
    k = torch.arange(n, dtype=torch.float64)
    return (scale * torch.sin(1.3 * k + t + 1) + offset).reshape(shape)


def ids(shape, t, bound):
    k = torch.arange(math.prod(shape))
    return ((7 * k + 3 * t) % bound).reshape(shape)


class Model:
    def __init__(self, file, dims, tensors, loss):
        self.file, self.dims, self.tensors, self.loss = file, dims, tensors, loss

    def reference(self):
        values, params, inputs, described = {}, {}, {}, []
        for t, (kind, name, shape, arg) in enumerate(self.tensors):
            if kind == "ids":
                values[name] = ids(shape, t, arg)
            else:
                scale, offset = arg
                values[name] = fill(shape, t, scale, offset)
                if kind == "param":
                    values[name].requires_grad_(True)
                    params[name] = values[name]
            described.append({"kind": kind, "name": name, "shape": list(shape), "arg": arg if kind == "ids" else list(arg)})
        loss = self.loss(values)
        loss.backward()
        return {
            "file": self.file, "dims": self.dims, "tensors": described, "loss": loss.item(),
            "gradients": {name: p.grad.flatten().tolist() for name, p in params.items()},
        }


def two_layer(v):
    h = torch.einsum("bd,de->be", v["x"], v["w1"])
    return (torch.einsum("be,ek->bk", h, v["w2"]) ** 2).mean()


def mlp(v):
    h = torch.nn.functional.gelu(v["x"] @ v["w1"] + v["b1"])
    return torch.nn.functional.cross_entropy(h @ v["w2"] + v["b2"], v["label"])


def causal(scores):
    s = scores.shape[-1]
    return scores.masked_fill(torch.triu(torch.ones(s, s, dtype=torch.bool), 1), float("-inf"))


def attention(v):
    qkv = torch.einsum("bse,ethd->tbhsd", v["x"], v["w_qkv"])
    q, k, u = qkv[0], qkv[1], qkv[2]
    scores = causal(torch.einsum("bhsd,bhkd->bhsk", q, k) / math.sqrt(q.shape[-1]))
    mixed = torch.einsum("bhsk,bhkd->bshd", scores.softmax(-1), u)
    return ((torch.einsum("bshd,hde->bse", mixed, v["w_out"]) - v["target"]) ** 2).mean()


def gpt2(v, layers):
    def norm(x, path):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], v[path + ".scale"], v[path + ".shift"], 1e-5)

    x = v["wte"][v["tokens"]] + v["wpe"]
    for i in range(layers):
        p = f"h.{i}."
        n = norm(x, p + "ln_1")
        qkv = torch.einsum("bse,ethd->tbhsd", n, v[p + "attn.w_qkv"]) + v[p + "attn.b_qkv"][:, None, :, None, :]
        q, k, u = qkv[0], qkv[1], qkv[2]
        scores = causal(torch.einsum("bhsd,bhkd->bhsk", q, k) / math.sqrt(q.shape[-1]))
        mixed = torch.einsum("bhsk,bhkd->bshd", scores.softmax(-1), u)
        x = x + torch.einsum("bshd,hde->bse", mixed, v[p + "attn.w_out"]) + v[p + "attn.b_out"]
        n = norm(x, p + "ln_2")
        up = torch.nn.functional.gelu(n @ v[p + "mlp.w_up"] + v[p + "mlp.b_up"], approximate="tanh")
        x = x + up @ v[p + "mlp.w_down"] + v[p + "mlp.b_down"]
    logits = norm(x, "ln_f") @ v["wte"].T
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), v["targets"].flatten())


def gpt2_model(batch=2, seq=5, vocab=11, layers=2, heads=2, head=3):
    embed = heads * head
    w = (0.5, 0.0)
    tensors = [("ids", "tokens", (batch, seq), vocab), ("ids", "targets", (batch, seq), vocab),
               ("param", "wte", (vocab, embed), w), ("param", "wpe", (seq, embed), w)]
    for i in range(layers):
        p = f"h.{i}."
        tensors += [("param", p + "ln_1.scale", (embed,), (0.2, 1.0)), ("param", p + "ln_1.shift", (embed,), (0.1, 0.0)),
                    ("param", p + "attn.w_qkv", (embed, 3, heads, head), w), ("param", p + "attn.b_qkv", (3, heads, head), (0.1, 0.0)),
                    ("param", p + "attn.w_out", (heads, head, embed), w), ("param", p + "attn.b_out", (embed,), (0.1, 0.0)),
                    ("param", p + "ln_2.scale", (embed,), (0.2, 1.0)), ("param", p + "ln_2.shift", (embed,), (0.1, 0.0)),
                    ("param", p + "mlp.w_up", (embed, 4 * embed), w), ("param", p + "mlp.b_up", (4 * embed,), (0.1, 0.0)),
                    ("param", p + "mlp.w_down", (4 * embed, embed), w), ("param", p + "mlp.b_down", (embed,), (0.1, 0.0))]
    tensors += [("param", "ln_f.scale", (embed,), (0.2, 1.0)), ("param", "ln_f.shift", (embed,), (0.1, 0.0))]
    dims = {"batch": batch, "seq": seq, "vocab": vocab, "layers": layers, "heads": heads, "head": head}
    return Model("examples/gpt2.ein", dims, tensors, lambda v: gpt2(v, layers))


MODELS = [
    Model("examples/two_layer.ein", {"batch": 4, "width": 5, "out": 3},
          [("input", "x", (4, 5), (1.0, 0.0)), ("param", "w1", (5, 5), (0.6, 0.0)), ("param", "w2", (5, 3), (0.6, 0.0))], two_layer),
    Model("tests/numeric/models/mlp.ein", {"batch": 3, "features": 6, "hidden": 5, "classes": 4},
          [("input", "x", (3, 6), (1.0, 0.0)), ("ids", "label", (3,), 4), ("param", "w1", (6, 5), (0.6, 0.0)), ("param", "b1", (5,), (0.2, 0.0)),
           ("param", "w2", (5, 4), (0.6, 0.0)), ("param", "b2", (4,), (0.2, 0.0))], mlp),
    Model("examples/attention.ein", {"batch": 2, "seq": 4, "heads": 2, "head": 3},
          [("input", "x", (2, 4, 6), (1.0, 0.0)), ("input", "target", (2, 4, 6), (1.0, 0.0)), ("param", "w_qkv", (6, 3, 2, 3), (0.5, 0.0)),
           ("param", "w_out", (2, 3, 6), (0.5, 0.0))], attention),
    gpt2_model(),
]


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "reference.json"), "w") as out:
        json.dump({"models": [m.reference() for m in MODELS]}, out, indent=0)
        out.write("\n")
