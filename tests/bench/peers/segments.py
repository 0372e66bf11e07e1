# SPDX-License-Identifier: Apache-2.0
"""Sums by index beside PyTorch and the machine's copy: scripts/bench segments [--threads=N] [--rounds=N] [CASE...]. A measurement, not a test.

Each row sums 100 MB of f32 rows into rows found by ids: sorted, random, or all into 64. `copy` is the part of the copy bandwidth (einc
bench's own, bytes read and written) at which values and ids are read and the result is written once; a random or large table moves more.
PyTorch's `index_add_` and `scatter_add_` clear their result first, as ours does; the ratio is of the faster to ours. `one-hot` is the
product by a one-hot matrix in einc, where the table is small enough for anyone to want it. Processes of their own, round by round."""
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
BYTES = 100 << 20
WIDTHS = (1, 8, 16, 64, 128, 256, 1024)
KINDS = ("sorted", "random", "few")
PER_NODE = 10  # rows that fall on one


def sizes(width, kind):
    rows = BYTES // (4 * width) // PER_NODE * PER_NODE
    return rows, 64 if kind == "few" else rows // PER_NODE


def program(width, kind, one_hot):
    rows, nodes = sizes(width, kind)
    ids = f"iota(rows) // {PER_NODE}" if kind == "sorted" else "randint(0, nodes, rows)"
    axes = "rows" if width == 1 else "rows width"
    total = (f'einsum(one_hot(ids, nodes), x, "rows nodes, rows ... -> nodes ...")' if one_hot else "segment_sum(x, ids, nodes)")
    return (f"dim rows = {rows}, width = {width}, nodes = {nodes}\ninput x: f32[{axes}]\noutput ids = {ids}\noutput total = {total}\n")


def ours(width, kind, threads, repeats, folder, one_hot=False):
    path = pathlib.Path(folder) / "segments.ein"
    path.write_text(program(width, kind, one_hot))
    done = subprocess.run([EINC, "bench", path, "--json", "--mode=inference", f"--threads={threads}", f"--steps={repeats}"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr + path.read_text())
    result = json.loads(done.stdout)
    return sum(k["time_s"] for k in result["kernels"] if k["label"] != "ids"), result["machine"]["copy_bytes"]


def theirs(width, kind, name, repeats):
    import time

    import torch

    rows, nodes = sizes(width, kind)
    ids = torch.arange(rows) // PER_NODE if kind == "sorted" else torch.randint(0, nodes, (rows,))
    x = torch.randn(rows, width)
    out = torch.empty(nodes, width)
    spread = ids[:, None].expand(rows, width)
    run = {"index_add": lambda: out.zero_().index_add_(0, ids, x), "scatter_add": lambda: out.zero_().scatter_add_(0, spread, x)}[name]
    seconds = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(min(seconds[2:]))


def peer(width, kind, name, threads, repeats):
    command = [sys.executable, __file__, "--peer", json.dumps([width, kind, name, repeats])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    done = subprocess.run(command, env={**kept, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
                          capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else float("nan")  # without PyTorch


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench segments")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=10, help="in each process")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help="parts of rows' names")
    options = parser.parse_args()
    if options.peer:
        return theirs(*json.loads(options.peer))
    print(f"{options.threads} threads, 100 MB of rows; milliseconds, and PyTorch's time over ours")
    print(f"{'rows':<22} {'einc':>8} {'copy':>6} {'index':>8} {'scatter':>8} {'ratio':>6} {'one-hot':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for width in WIDTHS:
                name = f"{width} wide, {kind}"
                if options.case and not any(part in name for part in options.case):
                    continue
                rows, nodes = sizes(width, kind)
                own, copy, peers = [], [], {"index_add": [], "scatter_add": []}
                for _ in range(options.rounds):
                    seconds, rate = ours(width, kind, options.threads, options.repeats, folder)
                    own.append(seconds), copy.append(rate)
                    for peer_name, times in peers.items():
                        times.append(peer(width, kind, peer_name, options.threads, options.repeats))
                moved = 4 * (rows * width + rows + nodes * width)
                best = [min(pair) for pair in zip(*peers.values())]
                ratio = statistics.median(b / o for b, o in zip(best, own))
                hot = f"{1e3 * ours(width, kind, options.threads, 3, folder, True)[0]:>8.2f}" if kind == "few" else ""
                print(f"{name:<22} {1e3 * min(own):>8.2f} {moved / min(own) / max(copy):>6.0%} {1e3 * min(peers['index_add']):>8.2f} "
                      f"{1e3 * min(peers['scatter_add']):>8.2f} {ratio:>6.2f} {hot}", flush=True)


if __name__ == "__main__":
    main()
