# SPDX-License-Identifier: Apache-2.0
"""Tensors filled by a formula that the tests repeat (tests/support/zoo.cpp), so that only what comes out of a model is kept in files.

Element k of a tensor is made of 32 bits, a hash of k and of the tensor's name: a real is scale * u + offset, rounded to f32, where u in
[-1, 1) has 16 bits; an integer is first + bits mod bound.
"""
import math

import numpy
import torch

torch.set_default_dtype(torch.float64)


def bits(name, count):
    start = 2166136261  # FNV-1a of the name
    for byte in name.encode():
        start = (start ^ byte) * 16777619 % 2**32
    x = (numpy.arange(count, dtype=numpy.uint64) * 0x9E3779B9 + start) % 2**32
    x = x.astype(numpy.uint32)  # Wellons' "lowbias32"
    x ^= x >> 16
    x *= numpy.uint32(0x7FEB352D)
    x ^= x >> 15
    x *= numpy.uint32(0x846CA68B)
    return x ^ (x >> 16)


class Tensors:
    """What a model is given. Each tensor is described as it is asked for; `params` are those to differentiate by."""

    def __init__(self):
        self.described, self.params = [], {}

    def _real(self, kind, name, shape, scale, offset):
        self.described.append({"name": name, "kind": kind, "shape": list(shape), "scale": scale, "offset": offset})
        u = (bits(name, math.prod(shape)) >> 16).astype(numpy.float64) / 32768 - 1
        values = (scale * u + offset).astype(numpy.float32).astype(numpy.float64)
        return torch.from_numpy(values).reshape(shape)

    def input(self, name, *shape, scale=1.0, offset=0.0):
        return self._real("input", name, shape, scale, offset)

    def state(self, name, *shape, scale=1.0, offset=0.0):
        return self._real("state", name, shape, scale, offset)

    def param(self, name, *shape, scale=0.5, offset=0.0):
        assert name not in self.params, name
        self.params[name] = self._real("param", name, shape, scale, offset).requires_grad_(True)
        return self.params[name]

    def ids(self, name, *shape, bound, first=0):
        """Integers; an input of reals takes them, too."""
        self.described.append({"name": name, "kind": "ids", "shape": list(shape), "bound": bound, "first": first})
        return torch.from_numpy(bits(name, math.prod(shape)).astype(numpy.int64) % bound + first).reshape(shape)

    # Params in the places where PyTorch has them.
    def linear(self, path, inputs, outputs, scale=0.4):
        """nn's linear_bias, as a function."""
        w = self.param(path + ".w", inputs, outputs, scale=scale)
        b = self.param(path + ".b", outputs, scale=0.2)
        return lambda x: torch.nn.functional.linear(x, w.T, b)

    def layer_norm(self, path, width):
        scale = self.param(path + ".scale", width, scale=0.3, offset=1.0)
        shift = self.param(path + ".shift", width, scale=0.2)
        return lambda x: torch.nn.functional.layer_norm(x, (width,), scale, shift, 1e-5)

    def rms_norm(self, path, width):
        scale = self.param(path + ".scale", width, scale=0.3, offset=1.0)
        return lambda x: torch.nn.functional.rms_norm(x, (width,), scale, 1e-5)

    def mlp(self, path, width, hidden):
        up = self.param(path + ".w_up", width, hidden)
        down = self.param(path + ".w_down", hidden, width)
        return lambda x: torch.nn.functional.gelu(x @ up) @ down

    def swiglu(self, path, width, hidden):
        gate = self.param(path + ".w_gate", width, hidden)
        up = self.param(path + ".w_up", width, hidden)
        down = self.param(path + ".w_down", hidden, width)
        return lambda x: (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down

    def conv(self, path, side, inputs, outputs, bias=True, stride=1, padding=0, scale=0.3):
        """Images stay [batch, height, width, channel]."""
        kernel = self.param(path + ".kernel", side, side, inputs, outputs, scale=scale)
        b = self.param(path + ".bias", outputs, scale=0.2) if bias else None

        def run(x):
            y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), b, stride=stride, padding=padding)
            return y.permute(0, 2, 3, 1)

        return run


def cross_entropy(logits, targets):
    """The mean over all positions; classes are the last axis."""
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def attention(q, k, v, mask=None, scale=None):
    """[..., place, head]; a mask is true where a query may look."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
