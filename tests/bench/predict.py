# SPDX-License-Identifier: Apache-2.0
"""The report's time beside a measured step: scripts/bench predict [--threads=N]. A measurement, not a test.

`einc bench` times the step, measures the machine and predicts the step for just that machine, so that what differs is the model. A ratio
above 1: the step takes longer than predicted. By kernel: the share of the time in kernels that are within 25 % of their prediction."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
EINC = ROOT / "build/release/einc"
SMALL = ["-D", "batch=1", "-D", "seq=256"]
CASES = [
    ("mlp.ein", [], 100),
    ("two_layer.ein", [], 20),
    ("deep_linear.ein", [], 20),
    ("lora.ein", [], 20),
    ("cnn.ein", [], 60),
    ("attention.ein", [], 20),
    ("shakespeare_char.ein", [], 20),
    ("shakespeare_llama.ein", [], 20),
    ("nanogpt.ein", SMALL, 5),
    ("gpt2.ein", SMALL, 5),
    ("gpt2.ein", ["-D", "batch=4", "-D", "seq=256"], 3),
    ("gpt2.ein", [*SMALL, "--precision", "bf16"], 5),
    ("resnet.ein", [], 10),
    ("vit.ein", [], 10),
    ("lstm.ein", [], 20),
    ("graph.ein", [], 60),
    ("moe.ein", [], 10),
    ("diffusion.ein", [], 10),
    ("../tests/zoo/models/unet.ein", [], 100),
    ("../tests/zoo/models/mamba.ein", [], 100),
]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--threads", type=int, default=2)
    asked = options.parse_args()
    print(f"{'program':<44} {'measured':>10} {'predicted':>10} {'ratio':>6} {'kernels within 25 %':>20}   GFLOP/s, GB/s, cache GB/s, us a launch")
    ratios = []
    for file, dims, steps in CASES:
        command = [EINC, "bench", ROOT / "examples" / file, *dims, "--json", "--discard-outputs", f"--steps={steps}", f"--threads={asked.threads}"]
        bench = json.loads(subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True).stdout)
        machine, kernels = bench["machine"], bench["kernels"]
        measured, predicted = min(bench["steps_s"]), bench["predicted_s"]
        ratios.append(measured / predicted)
        near = sum(k["time_s"] for k in kernels if 0.8 <= k["time_s"] / max(k["predicted_s"], 1e-12) <= 1.25) / sum(k["time_s"] for k in kernels)
        name = " ".join([pathlib.Path(file).name, *(d for d in dims if d != "-D")])
        print(f"{name:<44} {1e3 * measured:>8.3f}ms {1e3 * predicted:>8.3f}ms {ratios[-1]:>6.2f} {near:>20.0%}   "
              f"{machine['f32_flops'] * 1e-9:.0f}, {max(machine['copy_bytes'], machine['triad_bytes']) * 1e-9:.0f}, "
              f"{machine['cache_bytes_per_s'] * 1e-9:.0f}, {machine['launch_s'] * 1e6:.1f}; cores {machine['cores']}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}; "
          f"median error {statistics.median(abs(math.log(r)) for r in ratios):.0%}; "
          f"{sum(0.9 <= r <= 1.1 for r in ratios)} of {len(ratios)} within 10 %, {sum(2 / 3 <= r <= 1.5 for r in ratios)} within 1.5x")


main()
