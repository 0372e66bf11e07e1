#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes reference.txt: ten steps of each of PyTorch's optimizers in float64 on a small model, one line per case as
"case : w..., b... after step 1, then after step 2, ...". Run with a Python that has torch; the numbers are kept in the repository.
"""
import math
import os

import torch

torch.set_default_dtype(torch.float64)


def run(make, decay=0, clip=None, schedule=None, decay_all=False):
    w = torch.tensor([[0.5, -0.3], [0.1, 0.7], [-0.2, 0.4]], requires_grad=True)
    b = torch.tensor([0.05, -0.1], requires_grad=True)
    x = torch.tensor([1.0, -2.0, 0.5])
    optimizer = make([{"params": [w], "weight_decay": decay}, {"params": [b], "weight_decay": decay if decay_all else 0.0}])
    values = []
    for t in range(10):
        if schedule:
            for group in optimizer.param_groups:
                group["lr"] = schedule(t)
        optimizer.zero_grad()
        loss = ((x @ w + b) ** 2).mean() + torch.sin(w).sum()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_([w, b], clip)
        optimizer.step()
        values += w.flatten().tolist() + b.tolist()
    return values


def warm_up(peak, warmup, after):
    return lambda t: peak * (t + 1) / warmup if t < warmup else after(t)


def cosine(peak, warmup, total, floor):
    def after(t):
        done = min(1, (t - warmup) / (total - warmup))
        return floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * done))
    return warm_up(peak, warmup, after)


def linear(peak, warmup, total, floor):
    return warm_up(peak, warmup, lambda t: peak + (floor - peak) * min(1, (t - warmup) / (total - warmup)))


o = torch.optim
CASES = {
    "sgd()": run(lambda p: o.SGD(p)),
    "sgd(lr = 0.05, weight_decay = 0.1)": run(lambda p: o.SGD(p, lr=0.05), 0.1),
    "momentum(lr = 0.02)": run(lambda p: o.SGD(p, lr=0.02, momentum=0.9)),
    "momentum(lr = 0.1, momentum = 0.8, weight_decay = 0.1)": run(lambda p: o.SGD(p, lr=0.1, momentum=0.8), 0.1),
    "momentum(lr = 0.1, momentum = 0.8, nesterov = true)": run(lambda p: o.SGD(p, lr=0.1, momentum=0.8, nesterov=True)),
    "adagrad()": run(lambda p: o.Adagrad(p)),
    "adagrad(lr = 0.1, lr_decay = 0.2, eps = 1e-6, weight_decay = 0.1)": run(lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.2, eps=1e-6), 0.1),
    "rmsprop()": run(lambda p: o.RMSprop(p)),
    "rmsprop(lr = 0.02, alpha = 0.9, eps = 1e-6, weight_decay = 0.1)": run(lambda p: o.RMSprop(p, lr=0.02, alpha=0.9, eps=1e-6), 0.1),
    "rmsprop(momentum = 0.7)": run(lambda p: o.RMSprop(p, momentum=0.7)),
    "rmsprop(centered = true)": run(lambda p: o.RMSprop(p, centered=True)),
    "rmsprop(lr = 0.02, momentum = 0.5, centered = true)": run(lambda p: o.RMSprop(p, lr=0.02, momentum=0.5, centered=True)),
    "adam()": run(lambda p: o.Adam(p)),
    "adam(lr = 0.1, betas = (0.8, 0.9), eps = 1e-6, weight_decay = 0.1)": run(lambda p: o.Adam(p, lr=0.1, betas=(0.8, 0.9), eps=1e-6), 0.1),
    "adam(lr = 0.3, betas = (0.5, 0.6), amsgrad = true)": run(lambda p: o.Adam(p, lr=0.3, betas=(0.5, 0.6), amsgrad=True)),
    "adamw()": run(lambda p: o.AdamW(p), 0.01),
    "adamw(lr = 0.05, betas = (0.9, 0.95), weight_decay = 0.2, decay_all = true)":
        run(lambda p: o.AdamW(p, lr=0.05, betas=(0.9, 0.95)), 0.2, decay_all=True),
    "adamw(lr = 0.1, eps = 1e-6, weight_decay = 0.2, clip_norm = 0.5)": run(lambda p: o.AdamW(p, lr=0.1, eps=1e-6), 0.2, 0.5),
    "adamw(lr = 0.3, betas = (0.5, 0.6), amsgrad = true)": run(lambda p: o.AdamW(p, lr=0.3, betas=(0.5, 0.6), amsgrad=True), 0.01),
    "adamw(lr = cosine(0.1, warmup = 2, total = 7, floor = 0.01))": run(lambda p: o.AdamW(p), 0.01, None, cosine(0.1, 2, 7, 0.01)),
    "sgd(lr = linear(0.1, warmup = 2, total = 8, floor = 0.01))": run(lambda p: o.SGD(p, lr=1), 0, None, linear(0.1, 2, 8, 0.01)),
    "sgd(lr = constant(0.1, warmup = 3))": run(lambda p: o.SGD(p, lr=1), 0, None, warm_up(0.1, 3, lambda t: 0.1)),
}

if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.txt"), "w") as out:
        for name, values in CASES.items():
            out.write(name + " : " + " ".join(repr(v) for v in values) + "\n")
