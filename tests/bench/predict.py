"""The report's time beside a measured step: scripts/bench predict [--threads=N]. A measurement, not a test.

Each program is timed by `einc bench` in a process of its own, which also measures the machine's peaks; the report then predicts the step for
a device file of just these peaks, so that what differs is the model and not the machine. The cache and the cost of a launch are those of the
device row given. A ratio above 1: the step takes longer than predicted. By kind: what launches of that kind take, measured and predicted."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
EINC = ROOT / "build/release/einc"
CASES = [
    ("mlp.ein", [], 100),
    ("two_layer.ein", [], 20),
    ("cnn.ein", [], 60),
    ("attention.ein", [], 20),
    ("shakespeare_char.ein", [], 20),
    ("shakespeare_llama.ein", [], 20),
    ("nanogpt.ein", ["-D", "batch=1", "-D", "seq=256"], 5),
    ("gpt2.ein", ["-D", "batch=1", "-D", "seq=256"], 5),
    ("gpt2.ein", ["-D", "batch=4", "-D", "seq=256"], 3),
    ("gpt2.ein", ["-D", "batch=1", "-D", "seq=256", "--precision", "bf16"], 5),
]


def run(*command):
    return json.loads(subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True).stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--threads", type=int, default=2)
    # Of the device row `cpu`: 2 cores of a Zen 5.
    options.add_argument("--cache-bytes", type=float, default=32e6)
    options.add_argument("--cache-bandwidth", type=float, default=230e9)
    options.add_argument("--launch", type=float, default=1e-6)
    asked = options.parse_args()
    print(f"{'program':<48} {'measured':>10} {'predicted':>10} {'ratio':>6}   GFLOP/s f32, GB/s")
    ratios = []
    for file, dims, steps in CASES:
        path = ROOT / "examples" / file
        bench = run(EINC, "bench", path, *dims, "--json", "--discard-outputs", f"--steps={steps}", f"--threads={asked.threads}")
        machine = bench["machine"]
        device = {"name": "here", "f32": machine["f32_flops"], "f64": machine["f32_flops"] / 2, "memory_bytes": 64e9,
                  "bandwidth": max(machine["copy_bytes"], machine["triad_bytes"]), "cache_bytes": asked.cache_bytes,
                  "cache_bandwidth": asked.cache_bandwidth, "launch_s": asked.launch}
        if machine["bf16_flops"]:
            device["bf16"] = machine["bf16_flops"]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as row:
            json.dump(device, row)
            row.flush()
            predicted = run(EINC, path, *dims, "--report=json", "--device", row.name)["device"]["step_time_s"]
        measured = min(bench["steps_s"])
        ratios.append(measured / predicted)
        print(f"{file + ' ' + ' '.join(d for d in dims if d != '-D'):<48} {1e3 * measured:>8.3f}ms {1e3 * predicted:>8.3f}ms {ratios[-1]:>6.2f}"
              f"   {machine['f32_flops'] * 1e-9:.0f}, {device['bandwidth'] * 1e-9:.0f}; cores {machine['cores']}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}; "
          f"median error {statistics.median(abs(math.log(r)) for r in ratios):.0%}")


main()
