# SPDX-License-Identifier: Apache-2.0
"""Convolutions beside PyTorch: scripts/bench convolution [--threads=N] [--rounds=N] [CASE...]. A measurement, not a test.

Each row is one layer of a ResNet (batch 8) in one direction: forward, the data's gradient, the weights' gradient. Both sides run in
processes of their own, round by round, PyTorch with the images' channels first and last; the ratio is of the faster of its two to ours,
median over rounds, with the range. `peak`: the part of this machine's multiply-adds that ours reaches."""
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
BATCH = 8
# channels, size of the image, side of the kernel, stride
CASES = [(32, 112, 3, 1), (64, 56, 3, 1), (64, 56, 1, 1), (64, 56, 3, 2), (128, 28, 3, 1), (128, 28, 1, 1), (128, 28, 3, 2),
         (256, 14, 3, 1), (256, 14, 1, 1), (256, 14, 3, 2), (512, 7, 3, 1), (512, 7, 1, 1)]
WAYS = ("forward", "data", "weights")


def program(channels, size, side, stride, way):
    half = side // 2
    padded = f"pad(x, y = ({half}, {half}), x = ({half}, {half}))" if half else "x"
    step = "" if stride == 1 else f"{stride}*"
    out = (size + 2 * half - side) // stride + 1
    asked = {"forward": "output z = conv", "data": "output z = grad(sum(conv * t), x)", "weights": "output z = grad(sum(conv * t), k)"}[way]
    weighted = "" if way == "forward" else f"input t: f32[b p={out} q={out} o]\n"
    return (f"input x: f32[b={BATCH} y={size} x={size} c={channels}]\ninput k: f32[ky={side} kx={side} c o={channels}]\n{weighted}"
            f'conv = einsum({padded}, k, "b ({step}p + ky) ({step}q + kx) c, ky kx c o -> b p q o")\n{asked}\n')


def flops(channels, size, side, stride):
    out = (size + 2 * (side // 2) - side) // stride + 1
    return 2 * BATCH * out * out * channels * channels * side * side


def ours(case, way, threads, repeats, folder):
    path = pathlib.Path(folder) / "convolution.ein"
    path.write_text(program(*case, way))
    done = subprocess.run([EINC, "bench", path, "--json", "--mode=inference", f"--threads={threads}", f"--steps={repeats}"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr + path.read_text())
    result = json.loads(done.stdout)
    return min(result["steps_s"]), result["machine"]["f32_flops"]


def theirs(channels, size, side, stride, way, last, repeats):
    import time

    import torch

    half, form = side // 2, torch.channels_last if last else torch.contiguous_format
    x = torch.randn(BATCH, channels, size, size).to(memory_format=form)
    k = torch.randn(channels, channels, side, side).to(memory_format=form)
    y = torch.nn.functional.conv2d(x, k, stride=stride, padding=half)
    t = torch.randn_like(y)
    mask = [way == "data", way == "weights", False]
    run = (lambda: torch.nn.functional.conv2d(x, k, stride=stride, padding=half)) if way == "forward" else (
        lambda: torch.ops.aten.convolution_backward(t, x, k, None, [stride] * 2, [half] * 2, [1, 1], False, [0, 0], 1, mask))
    seconds = []
    for i in range(repeats + 3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(min(seconds[3:]))


def peer(case, way, last, threads, repeats):
    command = [sys.executable, __file__, "--peer", json.dumps([*case, way, last, repeats])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    done = subprocess.run(command, env={**kept, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
                          capture_output=True, text=True, check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench convolution")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=15, help="in each process")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help="parts of rows' names")
    options = parser.parse_args()
    if options.peer:
        return theirs(*json.loads(options.peer))
    print(f"{options.threads} threads, batch {BATCH}; milliseconds, and PyTorch's time over ours")
    print(f"{'layer':<34} {'einc':>8} {'peak':>6} {'first':>8} {'last':>8} {'ratio':>6}   of rounds")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            for way in WAYS:
                channels, size, side, stride = case
                name = f"{channels} of {size} x {size}, {side} x {side} by {stride}, {way}"
                if options.case and not any(part in name for part in options.case):
                    continue
                own, peak, first, last = [], [], [], []
                for _ in range(options.rounds):
                    seconds, rate = ours(case, way, options.threads, options.repeats, folder)
                    own.append(seconds), peak.append(rate)
                    first.append(peer(case, way, False, options.threads, options.repeats))
                    last.append(peer(case, way, True, options.threads, options.repeats))
                rounds = [min(f, l) / o for f, l, o in zip(first, last, own)]
                ratios.append(statistics.median(rounds))
                print(f"{name:<34} {1e3 * min(own):>8.3f} {flops(*case) / min(own) / max(peak):>6.0%} {1e3 * min(first):>8.3f} "
                      f"{1e3 * min(last):>8.3f} {ratios[-1]:>6.2f}   {min(rounds):.2f} to {max(rounds):.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}; {sum(r >= 1 for r in ratios)} of {len(ratios)} at least as fast as PyTorch")


if __name__ == "__main__":
    main()
