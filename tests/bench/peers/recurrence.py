# SPDX-License-Identifier: Apache-2.0
"""Recurrences beside PyTorch and JAX: scripts/bench recurrence [--threads=N] [--rounds=N] [CASE...]. A measurement, not a test.

Each row is a training step (forward, backward, plain gradient descent) of one cell over a sequence, or its forward alone. PyTorch runs
`nn.LSTM` and `nn.GRU`, JAX a jitted `lax.scan` with the input's product outside of it. Processes of their own, round by round; the ratio
is the peer's time over ours, median over rounds, with the range. `unrolled` is the same program with `for` instead of `scan`, where that
is compiled in reasonable time; `compiled` are the seconds from text to machine code at 10, 100 and 1,000 steps."""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[3]
EINC = ROOT / "build/release/einc"
# cell, batch, steps, features, hidden
CASES = [("lstm", 32, 100, 64, 128), ("lstm", 64, 50, 256, 512), ("lstm", 1, 100, 128, 256), ("gru", 32, 100, 64, 128),
         ("gru", 64, 50, 256, 512)]
WAYS = ("forward", "training")
CELLS = {
    "lstm": """  r = einsum(h, u, "batch k, k gate hidden -> batch gate hidden")
  z = einsum(x[time = t], w, "batch feat, feat gate hidden -> batch gate hidden") + b + r
  c = sigmoid(z[gate = 1]) * c + sigmoid(z[gate = 0]) * tanh(z[gate = 2])
  h = sigmoid(z[gate = 3]) * tanh(c)
""",
    "gru": """  z = einsum(x[time = t], w, "batch feat, feat gate hidden -> batch gate hidden") + b
  r = einsum(h, u, "batch k, k gate hidden -> batch gate hidden") + b2
  new = tanh(z[gate = 2] + sigmoid(z[gate = 0]) * r[gate = 2])
  keep = sigmoid(z[gate = 1] + r[gate = 1])
  h = (1 - keep) * new + keep * h
""",
}


def program(cell, batch, steps, features, hidden, way, loop="scan t in time"):
    gates = 4 if cell == "lstm" else 3
    start = "h: [batch hidden] = zeros(batch, hidden)\n" + ("c = h\n" if cell == "lstm" else "")
    collected = "  collect hs = h\n" if loop.startswith("scan") else f"  total = total + h * y[time = t]\n"
    total = "sum(hs * y)" if loop.startswith("scan") else "sum(total)"
    asked = "output last = h\n" if way == "forward" else (
        f"minimize {total} using sgd(lr = 0.001)\n")
    extra = "param b2: [gate hidden] ~ zeros\n" if cell == "gru" else ""
    first = "" if loop.startswith("scan") else "total: [batch hidden] = zeros(batch, hidden)\n"
    return (f"dim batch = {batch}, time = {steps}, feat = {features}, hidden = {hidden}, gate = {gates}\n"
            f"input x: f32[time batch feat]\ninput y: f32[time batch hidden]\n"
            f"param w: [feat gate hidden] ~ normal(std = 0.1)\nparam u: [k=hidden gate hidden] ~ normal(std = 0.1)\n"
            f"param b: [gate hidden] ~ zeros\n{extra}{start}{first}{loop} {{\n{CELLS[cell]}{collected}}}\n{asked}")


def ours(text, threads, repeats, folder):
    path = pathlib.Path(folder) / "recurrence.ein"
    path.write_text(text)
    mode = "training" if "minimize" in text else "inference"
    done = subprocess.run([EINC, "bench", path, "--json", f"--mode={mode}", f"--threads={threads}", f"--steps={repeats}"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr + text)
    result = json.loads(done.stdout)
    return min(result["steps_s"]), result["compile_s"]


def timed(run, repeats):
    import time

    for _ in range(3):
        run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(min(seconds))


def torch_peer(cell, batch, steps, features, hidden, way, repeats):
    import torch

    layer = (torch.nn.LSTM if cell == "lstm" else torch.nn.GRU)(features, hidden)
    x, y = torch.randn(steps, batch, features), torch.randn(steps, batch, hidden)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.001)

    def forward():
        with torch.no_grad():
            layer(x)

    def training():
        optimizer.zero_grad(set_to_none=True)
        (layer(x)[0] * y).sum().backward()
        optimizer.step()

    timed(forward if way == "forward" else training, repeats)


def jax_peer(cell, batch, steps, features, hidden, way, repeats):
    import jax
    import jax.numpy as jnp

    gates = 4 if cell == "lstm" else 3
    key = jax.random.PRNGKey(0)
    x, y = jax.random.normal(key, (steps, batch, features)), jax.random.normal(key, (steps, batch, hidden))
    w, u = jax.random.normal(key, (features, gates * hidden)) * 0.1, jax.random.normal(key, (hidden, gates * hidden)) * 0.1
    zero = jnp.zeros((batch, hidden))

    def run_cell(w, u, b, x):
        z = x @ w + b

        def lstm(carry, z):
            h, c = carry
            i, f, g, o = jnp.split(z + h @ u, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        def gru(h, z):
            zr, zz, zn = jnp.split(z, 3, axis=1)
            r = h @ u
            rr, rz, rn = jnp.split(r, 3, axis=1)
            n = jnp.tanh(zn + jax.nn.sigmoid(zr + rr) * rn)
            k = jax.nn.sigmoid(zz + rz)
            h = (1 - k) * n + k * h
            return h, h

        return jax.lax.scan(lstm, (zero, zero), z)[1] if cell == "lstm" else jax.lax.scan(gru, zero, z)[1]

    b = jnp.zeros((gates * hidden,))
    if way == "forward":
        step = jax.jit(lambda w, u, b, x: run_cell(w, u, b, x)[-1])
    else:
        slopes = jax.grad(lambda w, u, b, x: jnp.sum(run_cell(w, u, b, x) * y), argnums=(0, 1, 2))
        step = jax.jit(lambda w, u, b, x: [p - 0.001 * g for p, g in zip((w, u, b), slopes(w, u, b, x))])
    timed(lambda: jax.block_until_ready(step(w, u, b, x)), repeats)


def peer(which, case, way, threads, repeats):
    command = [sys.executable, __file__, "--peer", json.dumps([which, *case, way, repeats])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    flags = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
             "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} intra_op_parallelism_threads={threads}"}
    if threads == 1:
        command = ["taskset", "-c", "0", *command]
    done = subprocess.run(command, env={**kept, **flags}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout)


def main():
    if sys.argv[1:2] == ["--peer"]:
        which, *rest = json.loads(sys.argv[2])
        return (torch_peer if which == "torch" else jax_peer)(*rest)
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    peers = [name for name in ("torch", "jax") if importlib.util.find_spec(name)]
    print(f"{options.threads} threads; ms of ours, and how many times as long the others take (least to most of {options.rounds} rounds)")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            name = f"{case[0]}-b{case[1]}-t{case[2]}-f{case[3]}-h{case[4]}"
            if options.cases and not any(c in name for c in options.cases):
                continue
            for way in WAYS:
                rounds = []
                for _ in range(options.rounds):
                    own = ours(program(*case, way), options.threads, options.repeats, folder)[0]
                    rounds.append((own, {p: peer(p, case, way, options.threads, options.repeats) / own for p in peers}))
                text = f"{name} {way}: {statistics.median(r[0] for r in rounds) * 1e3:.3f} ms"
                for p in peers:
                    ratios = sorted(r[1][p] for r in rounds)
                    text += f", {p} {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
                print(text, flush=True)
        cell = CASES[0]
        short = (cell[0], cell[1], 20, cell[3], cell[4])
        loop = ours(program(*short, "training", "for t in 20"), options.threads, options.repeats, folder)
        scan = ours(program(*short, "training"), options.threads, options.repeats, folder)
        print(f"20 steps: scan {scan[0] * 1e3:.3f} ms, unrolled {loop[0] * 1e3:.3f} ms, {loop[0] / scan[0]:.2f} times as long; "
              f"compiled in {scan[1]:.3f} s and {loop[1]:.3f} s")
        for steps in (10, 100, 1000):
            compiled = ours(program(cell[0], cell[1], steps, *cell[3:], "training"), options.threads, 1, folder)[1]
            print(f"compiled at {steps} steps: {compiled:.3f} s")


if __name__ == "__main__":
    main()
