# SPDX-License-Identifier: Apache-2.0
"""A Mamba block (Gu and Dao 2023) beside PyTorch: scripts/bench mamba [--threads=N] [--rounds=N] [CASE...]. A measurement, not a test.

Each row is the block's forward, or a training step of it by plain gradient descent. PyTorch runs the same block with a loop over time,
eager and by torch.compile, which unrolls it and fuses what it can; compiling takes it a minute and more, which is not counted. Processes of
their own, round by round; the ratio is the peer's time over ours, median over rounds, with the range."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[3]
EINC = ROOT / "build/release/einc"
# batch, steps, embed, inner, memory
CASES = [(8, 64, 64, 128, 16), (2, 128, 128, 256, 16)]
WAYS = ("forward", "training")
RANK, TAPS = 8, 4


def program(batch, steps, embed, inner, memory, way):
    asked = "output z" if way == "forward" else "minimize sum(z * y) using sgd(lr = 0.001)"
    return f"""dim batch = {batch}, seq = {steps}, embed = {embed}, inner = {inner}, memory = {memory}, rank = {RANK}, taps = {TAPS}
input x: f32[batch seq embed]
input y: f32[batch seq embed]
param w_in:      [embed two=2 inner] ~ normal(std = 0.05)
param kernel:    [tap=taps inner] ~ normal(std = 0.3)
param b_kernel:  [inner] ~ zeros
param w_rank:    [inner rank] ~ normal(std = 0.05)
param w_delta:   [rank inner] ~ normal(std = 0.3)
param b_delta:   [inner] ~ zeros
param w_enter:   [inner memory] ~ normal(std = 0.05)
param w_read:    [inner memory] ~ normal(std = 0.05)
param log_decay: [inner memory] ~ zeros
param w_past:    [inner] ~ ones
param w_out:     [inner embed] ~ normal(std = 0.05)
both = einsum(x, w_in, "batch seq embed, embed two inner -> two batch seq inner")
recent = pad(both[two = 0], seq = (taps - 1, 0))
u = silu(einsum(recent, kernel, "batch (seq + tap) inner, tap inner -> batch seq inner") + b_kernel)
low = einsum(u, w_rank, "batch seq inner, inner rank -> batch seq rank")
delta = softplus(einsum(low, w_delta, "batch seq rank, rank inner -> batch seq inner") + b_delta)
enter = einsum(u, w_enter, "batch seq inner, inner memory -> batch seq memory")
read = einsum(u, w_read, "batch seq inner, inner memory -> batch seq memory")
h = zeros(batch, inner, memory)
scan t in seq {{
  d = delta[seq = t]
  h = exp(-(d * exp(log_decay))) * h + d * u[seq = t] * enter[seq = t]
  collect past = einsum(h, read[seq = t], "batch inner memory, batch memory -> batch inner")
}}
kept = rearrange(past, "seq batch inner -> batch seq inner") + u * w_past
z = einsum(kept * silu(both[two = 1]), w_out, "batch seq inner, inner embed -> batch seq embed")
{asked}
"""


def ours(case, way, threads, repeats, folder):
    path = pathlib.Path(folder) / "mamba.ein"
    path.write_text(program(*case, way))
    mode = "inference" if way == "forward" else "training"
    done = subprocess.run([EINC, "bench", path, "--json", f"--mode={mode}", f"--threads={threads}", f"--steps={repeats}"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr + path.read_text())
    return min(json.loads(done.stdout)["steps_s"])


def theirs(batch, steps, embed, inner, memory, way, compiled, repeats):
    import time

    import torch
    from torch.nn.functional import conv1d, linear, silu, softplus

    def param(*shape, std=0.05):
        return torch.nn.Parameter(torch.randn(*shape) * std)

    p = dict(w_in=param(2 * inner, embed), kernel=param(inner, 1, TAPS, std=0.3), b_kernel=param(inner, std=0), w_rank=param(RANK, inner),
             w_delta=param(inner, RANK, std=0.3), b_delta=param(inner, std=0), w_enter=param(memory, inner), w_read=param(memory, inner),
             log_decay=param(inner, memory, std=0), w_past=torch.nn.Parameter(torch.ones(inner)), w_out=param(embed, inner))
    x, y = torch.randn(batch, steps, embed), torch.randn(batch, steps, embed)

    def block(x):
        first, gate = linear(x, p["w_in"]).chunk(2, dim=2)
        mixed = conv1d(first.transpose(1, 2), p["kernel"], p["b_kernel"], padding=TAPS - 1, groups=inner)[:, :, :steps]
        u = silu(mixed.transpose(1, 2))
        delta = softplus(linear(linear(u, p["w_rank"]), p["w_delta"], p["b_delta"]))
        enter, read = linear(u, p["w_enter"]), linear(u, p["w_read"])
        rate = -torch.exp(p["log_decay"])
        h, past = torch.zeros(batch, inner, memory), []
        for t in range(steps):
            d = delta[:, t, :, None]
            h = torch.exp(d * rate) * h + d * u[:, t, :, None] * enter[:, t, None, :]
            past.append((h * read[:, t, None, :]).sum(2))
        return linear((torch.stack(past, 1) + u * p["w_past"]) * silu(gate), p["w_out"])

    run = torch.compile(block) if compiled else block

    def forward():
        with torch.no_grad():
            run(x)

    def training():
        (run(x) * y).sum().backward()
        with torch.no_grad():
            for w in p.values():
                w -= 0.001 * w.grad
                w.grad = None

    step = forward if way == "forward" else training
    for _ in range(3):
        step()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(min(seconds))


def peer(case, way, compiled, threads, repeats):
    command = [sys.executable, __file__, "--peer", json.dumps([*case, way, compiled, repeats])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    done = subprocess.run(command, env={**kept, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench mamba")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20, help="in each process")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help="parts of rows' names")
    options = parser.parse_args()
    if options.peer:
        return theirs(*json.loads(options.peer))
    print(f"{options.threads} threads; ms of ours, and how many times as long PyTorch takes (least to most of {options.rounds} rounds)")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            for way in WAYS:
                name = "b{}-t{}-e{}-i{}-m{} ".format(*case) + way
                if options.case and not any(part in name for part in options.case):
                    continue
                own, ratios = [], {"compiled": [], "eager": []}
                for _ in range(options.rounds):
                    own.append(ours(case, way, options.threads, options.repeats, folder))
                    for which, rounds in ratios.items():
                        rounds.append(peer(case, way, which == "compiled", options.threads, options.repeats) / own[-1])
                text = f"{name}: {statistics.median(own) * 1e3:.3f} ms"
                for which, rounds in ratios.items():
                    text += f", {which} {statistics.median(rounds):.2f} ({min(rounds):.2f} to {max(rounds):.2f})"
                print(text, flush=True)


if __name__ == "__main__":
    main()
