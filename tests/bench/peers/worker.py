# SPDX-License-Identifier: Apache-2.0
"""One peer on one case, in a process of its own: worker.py PEER CASE THREADS REPEATS. Prints JSON: seconds of each repeat, version."""
import json
import os
import sys
import time

ADAMW = 124_439_808


def torch_case(name, compiled):
    import torch
    import torch.nn.functional as F

    randn = torch.randn
    a, b, c, d = (randn(4096, 3072) for _ in range(4)) if name in ("chain", "gelu") else (None,) * 4
    if name == "softmax":
        x, f = randn(4096, 1024), lambda x: F.softmax(x, -1)
    elif name == "layer_norm":
        x, scale, shift = randn(4096, 768), randn(768), randn(768)
        f = lambda x: F.layer_norm(x, (768,), scale, shift)
    elif name == "gelu":
        x, f = a, lambda x: F.gelu(x, approximate="tanh")
    elif name == "chain":
        x, f = a, lambda x: (x * b + c) * d + x
    elif name == "heads_apart":
        x, f = randn(8, 1024, 768), lambda x: x.view(8, 1024, 12, 64).permute(0, 2, 1, 3).contiguous()
    elif name == "heads_turned":
        x, f = randn(8, 1024, 768), lambda x: x.view(8, 1024, 12, 64).permute(0, 2, 3, 1).contiguous()
    elif name == "transpose":
        x, f = randn(4096, 4096), lambda x: x.t().contiguous()
    elif name in ("attention", "attention_step"):
        return torch_attention(name == "attention_step", compiled)
    elif name == "adamw":
        w = torch.nn.Parameter(randn(ADAMW) * 0.02)
        w.grad = randn(ADAMW)
        step = torch.optim.AdamW([w], lr=1e-3, weight_decay=0.01, fused=True).step
        return torch.compile(step) if compiled else step
    else:
        return torch_gpt2(compiled)
    f = torch.compile(f) if compiled else f
    return lambda: f(x)


def torch_attention(backward, compiled):
    import torch
    import torch.nn.functional as F

    q, k, v = (torch.randn(4, 12, 1024, 64, requires_grad=backward) for _ in range(3))
    target = torch.randn(4, 12, 1024, 64)
    f = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    step = lambda: (f() * target).sum().backward()
    run = step if backward else f
    return torch.compile(run) if compiled else run


def torch_gpt2(compiled):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(768), nn.LayerNorm(768)
            self.qkv, self.out, self.up, self.down = nn.Linear(768, 2304), nn.Linear(768, 768), nn.Linear(768, 3072), nn.Linear(3072, 768)

        def forward(self, x):
            n, s, _ = x.shape
            q, k, v = (t.view(n, s, 12, 64).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(768, 2))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, s, 768))
            return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe, self.ln_f = nn.Embedding(50257, 768), nn.Embedding(1024, 768), nn.LayerNorm(768)
            self.h = nn.ModuleList(Block() for _ in range(12))

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
            for block in self.h:
                x = block(x)
            logits = F.linear(self.ln_f(x), self.wte.weight)
            return F.cross_entropy(logits.view(-1, 50257), targets.view(-1))

    model = Gpt2()
    for weight in model.parameters():  # GPT-2's own: with larger embeddings gradients are denormal, and slow
        if weight.dim() == 2:
            nn.init.normal_(weight, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1, fused=True)
    forward = torch.compile(model) if compiled else model
    tokens, targets = torch.randint(50257, (4, 64)), torch.randint(50257, (4, 64))

    def step():
        optimizer.zero_grad(set_to_none=True)
        forward(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def jax_case(name):
    import jax
    import jax.numpy as jnp

    key = iter(jax.random.split(jax.random.PRNGKey(0), 64))
    randn = lambda *shape: jax.random.normal(next(key), shape)
    if name == "softmax":
        x, f = (randn(4096, 1024),), lambda x: jax.nn.softmax(x, -1)
    elif name == "layer_norm":
        x = (randn(4096, 768), randn(768), randn(768))
        f = lambda x, s, t: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * s + t
    elif name == "gelu":
        x, f = (randn(4096, 3072),), lambda x: jax.nn.gelu(x, approximate=True)
    elif name == "chain":
        x, f = tuple(randn(4096, 3072) for _ in range(4)), lambda a, b, c, d: (a * b + c) * d + a
    elif name == "heads_apart":
        x, f = (randn(8, 1024, 768),), lambda x: x.reshape(8, 1024, 12, 64).transpose(0, 2, 1, 3) + 0
    elif name == "heads_turned":
        x, f = (randn(8, 1024, 768),), lambda x: x.reshape(8, 1024, 12, 64).transpose(0, 2, 3, 1) + 0
    elif name == "transpose":
        x, f = (randn(4096, 4096),), lambda x: x.T + 0
    elif name == "adamw":
        def f(w, g, m, v, t):
            t, m, v = t + 1, 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return w * (1 - 1e-5) - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v, t

        g, state = randn(ADAMW), [randn(ADAMW) * 0.02, jnp.zeros(ADAMW), jnp.zeros(ADAMW), jnp.float32(0)]
        compiled = jax.jit(f, donate_argnums=(0, 2, 3))

        def step():
            state[:] = jax.block_until_ready(compiled(state[0], g, *state[1:]))

        return step
    elif name == "gpt2":
        return jax_gpt2(randn)
    else:
        return None
    compiled = jax.jit(f)
    return lambda: jax.block_until_ready(compiled(*x))


def jax_gpt2(randn):
    import jax
    import jax.numpy as jnp

    w = lambda *shape: randn(*shape) * 0.02
    norm = lambda: {"scale": jnp.ones(768), "shift": jnp.zeros(768)}
    linear = lambda rows, columns: {"w": w(rows, columns), "b": jnp.zeros(columns)}
    block = lambda: {"ln_1": norm(), "qkv": linear(768, 2304), "out": linear(768, 768), "ln_2": norm(), "up": linear(768, 3072),
                     "down": linear(3072, 768)}
    params = {"wte": w(50257, 768), "wpe": w(1024, 768), "h": [block() for _ in range(12)], "ln_f": norm()}

    def layer_norm(p, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["shift"]

    def attention(p, x):
        n, s, _ = x.shape
        q, k, v = (t.reshape(n, s, 12, 64) for t in jnp.split(layer_norm(p["ln_1"], x) @ p["qkv"]["w"] + p["qkv"]["b"], 3, -1))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(n, s, 768) @ p["out"]["w"] + p["out"]["b"]

    def loss(params, tokens, targets):
        x = params["wte"][tokens] + params["wpe"][: tokens.shape[1]]
        for p in params["h"]:
            x = x + attention(p, x)
            x = x + jax.nn.gelu(layer_norm(p["ln_2"], x) @ p["up"]["w"] + p["up"]["b"]) @ p["down"]["w"] + p["down"]["b"]
        scores = jax.nn.log_softmax(layer_norm(params["ln_f"], x) @ params["wte"].T)
        return -jnp.take_along_axis(scores, targets[..., None], -1).mean()

    def update(params, m, v, t, tokens, targets):
        each = jax.tree_util.tree_map
        g = jax.grad(loss)(params, tokens, targets)
        norm = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree_util.tree_leaves(g)))
        g = each(lambda x: x * jnp.minimum(1, 1 / (norm + 1e-6)), g)
        t, m, v = t + 1, each(lambda m, g: 0.9 * m + 0.1 * g, m, g), each(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        direction = lambda m, v: m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return each(lambda w, m, v: w * (1 - 6e-5) - 6e-4 * direction(m, v), params, m, v), m, v, t

    zeros = lambda: jax.tree_util.tree_map(jnp.zeros_like, params)
    state = [params, zeros(), zeros(), jnp.float32(0)]
    tokens, targets = (jax.random.randint(jax.random.PRNGKey(seed), (4, 64), 0, 50257) for seed in (1, 2))
    compiled = jax.jit(update, donate_argnums=(0, 1, 2))

    def step():
        state[:] = jax.block_until_ready(compiled(*state, tokens, targets))

    return step


def main():
    peer, case, threads, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if peer == "jax":
        import jax

        version, work = jax.__version__, jax_case(case)
    else:
        import torch

        torch.set_num_threads(threads)
        version, work = torch.__version__, torch_case(case, peer == "compile")
    seconds = []
    for i in range(repeats + 2 if work else 0):
        start = time.perf_counter()
        work()
        if i >= 2:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"version": version, "seconds": seconds}))


main()
