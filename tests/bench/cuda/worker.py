# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of scripts/bench cuda. It reads rows (a line of JSON: name, kind, settings, dims, steps) and answers with a line for each
measurement as soon as it is made (row, peer, seconds of each repeat by the GPU's events), and one that says "done". Without a GPU it runs on the
processor, to try the way through."""
import contextlib
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


def say(row, peer, **what):
    print(json.dumps({"row": row, "peer": peer, **what}), flush=True)


def compiled(function):
    return torch.compile(function) if GPU else torch.compile(function, backend="eager")


def timed(work, steps, warm=3):
    for _ in range(warm):
        work()
    if not GPU:
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return seconds
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]


def backend(name):
    if not GPU:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel({"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}[name])


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, s, width = x.shape
        q, k, v = (t.view(n, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(width, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, s, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocab, seq, layers, heads, head):
        super().__init__()
        width = heads * head
        self.wte, self.wpe, self.ln_f = nn.Embedding(vocab, width), nn.Embedding(seq, width), nn.LayerNorm(width)
        self.h = nn.ModuleList(Block(heads, width) for _ in range(layers))
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def gpt2(row):
    d = {"layers": 12, "heads": 12, "head": 64, **row["dims"]}
    ways = [("compile", "flash")] if "brief" in row["settings"] else [("compile", "flash"), ("eager", "flash"), ("compile", "cuDNN"), ("eager", "cuDNN")]
    for way, attention in ways:
        def measure():
            torch._dynamo.reset()
            model = Gpt2(d["vocab"], d["seq"], d["layers"], d["heads"], d["head"]).to(DEVICE)
            optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
            loss_of = compiled(model) if way == "compile" else model
            batches = [torch.randint(d["vocab"], (2, d["batch"], d["seq"]), device=DEVICE) for _ in range(4)]
            done = 0

            def step():
                nonlocal done
                tokens, targets = batches[done % 4]
                done += 1
                with torch.autocast(DEVICE, torch.bfloat16):
                    loss = loss_of(tokens, targets)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            with backend(attention):
                return timed(step, row["steps"])

        yield f"{way}, {attention}", measure


def attention(row):
    d = row["dims"]
    heads, backward = d["heads"] * d["groups"], "backward" in row["settings"]
    shape = lambda h: (d["batch"], h, d["seq"], d["head"])
    randn = lambda h: torch.randn(shape(h), device=DEVICE, dtype=torch.bfloat16, requires_grad=backward)
    for name in ("flash", "cuDNN"):
        def measure():
            q, k, v, dy = randn(heads), randn(d["heads"]), randn(d["heads"]), randn(heads).detach()
            with backend(name):
                forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=d["groups"] > 1)
                if not backward:
                    return timed(forward, row["steps"])
                y = forward()
                return timed(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), row["steps"])

        yield name, measure


def product(row):
    m, n, k = (row["dims"][x] for x in "mnk")
    kind = row["settings"][0]

    def measure():
        dtype = torch.float8_e4m3fn if kind == "fp8" else torch.bfloat16
        randn = lambda *shape: torch.randn(shape, device=DEVICE).to(dtype)
        if kind == "fp8":
            if not GPU:
                raise RuntimeError("fp8 needs a GPU")
            a, b, one = randn(m, k), randn(n, k).t(), torch.ones((), device=DEVICE)
            return timed(lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True), row["steps"])
        a, b = randn(k, m).t() if kind == "tn" else randn(m, k), randn(n, k).t() if kind == "nt" else randn(k, n)
        out = torch.empty(m, n, device=DEVICE, dtype=dtype)
        return timed(lambda: torch.matmul(a, b, out=out), row["steps"])

    yield "matmul", measure


def over_rows(row):
    kind = row["kind"]
    rows, cols = row["dims"]["rows"], row["dims"]["cols"]
    randn = lambda *shape: torch.randn(shape, device=DEVICE, dtype=torch.bfloat16)
    backward = kind.endswith("_backward")
    for way in ("compile", "eager"):
        def measure():
            torch._dynamo.reset()
            x = randn(rows, cols).requires_grad_(backward)
            scale, shift = (randn(cols).requires_grad_(backward) for _ in range(2))
            dy = randn(rows, cols)
            f = {"softmax": lambda x: F.softmax(x, -1), "layer_norm": lambda x: F.layer_norm(x, (cols,), scale, shift),
                 "rms_norm": lambda x: F.rms_norm(x, (cols,), scale)}[kind.removesuffix("_backward")]
            f = compiled(f) if way == "compile" else f
            if not backward:
                return timed(lambda: f(x), row["steps"])
            y = f(x)
            wanted = {"softmax": (x,), "layer_norm": (x, scale, shift), "rms_norm": (x, scale)}[kind.removesuffix("_backward")]
            return timed(lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True), row["steps"])

        yield way, measure


def adamw(row):
    for way in ("fused", "compile"):
        def measure():
            w = nn.Parameter(torch.randn(row["dims"]["n"], device=DEVICE) * 0.02)
            w.grad = torch.randn_like(w)
            step = torch.optim.AdamW([w], lr=1e-3, weight_decay=0.01, fused=way == "fused").step
            return timed(compiled(step) if way == "compile" else step, row["steps"])

        yield way, measure


KINDS = {"gpt2": gpt2, "attention": attention, "product": product, "adamw": adamw}


def main():
    torch.set_float32_matmul_precision("high")
    device = torch.cuda.get_device_name() if GPU else "the processor: no GPU"
    say("", "", version=torch.__version__, device=device, cudnn=torch.backends.cudnn.version())
    for line in sys.stdin:
        row = json.loads(line)
        for peer, measure in KINDS.get(row["kind"], over_rows)(row):
            try:
                say(row["name"], peer, seconds=measure())
            except Exception as error:  # the next peer may do
                say(row["name"], peer, error=(str(error).strip().splitlines() or [type(error).__name__])[0][:200])
            if GPU:
                torch.cuda.empty_cache()
        say(row["name"], "", done=True)


main()
