#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps that others have measured and published beside what einc predicts for the same model, mesh and devices.

    scripts/bench published [--rows=REGEX]

Runs nothing but reports. Of a row the prediction is made of
  micro     forward and backward of one device's sequences, by the report's schedule for that device
  again     the forward's time once more where the run recomputes all activations
  update    the optimizer's launches, on a device's part of the params where the moments are split
  sent      the collectives of the mesh, each micro-batch's where params are split (ZeRO-3), else once a step
  exposed   what of them the report's schedule does not hide; what it hides grows with the work that it is hidden behind
  step      accumulation * (micro + again) + update + exposed, of each micro-batch where params are split
Rates are those of the device table. One of them, the share of the clock that a long run keeps, was chosen from rows whose id hashes even
(FNV-1a, 64 bits); odd rows test it. What is predicted is einc's own step (its fused kernels, its collectives one by one); what was
published ran other programs: kernels apart, collectives of a block's params together. An error says how far such a prediction is off, not
which of the two is slow. Runs of 2021 stored the scores of attention, and so does their prediction.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EINC = ROOT / "build/release/einc"

def gpt(layers, embed, heads, seq, vocab):
    return "gpt2.ein", dict(layers=layers, heads=heads, head=embed // heads, seq=seq, vocab=vocab)


def llama(layers, embed, heads, kv_heads, ffn, seq, vocab):
    return "llama.ein", dict(layers=layers, embed=embed, heads=heads, kv_heads=kv_heads, ffn=ffn, seq=seq, vocab=vocab)


# id, model, device, devices, sequences a device and micro-batch, accumulation, what is split over data, recompute, precision,
# seconds a step as published (or FLOPs and tokens over the published rate), source
RUNS = [
    ("llmc-124M-8a100", gpt(12, 768, 12, 1024, 50304), "a100-80gb", 8, 64, 1, "states", "none", "bf16", 0.300,
     "llm.c scripts/run_gpt2_124M.sh"),
    ("flash-gpt3-2.7B", gpt(32, 2560, 20, 2048, 50264), "a100-80gb", 8, 8, 8, "", "none", "bf16", 512 * 2048 / 85e3,
     "flash-attention training/README.md"),
    ("mpt-13b-a100_80-8-s2048", gpt(40, 5120, 40, 2048, 50368), "a100-80gb", 8, 2, 3, "params", "none", "bf16", 5.43,
     "llm-foundry benchmarking/README.md"),
    ("tt-a100-13B-noac", llama(40, 5120, 40, 40, 13824, 4096, 32000), "a100-80gb", 64, 2, 1, "params", "none", "bf16", 3.79,
     "torchtitan docs/performance.md, 2024-08"),
    ("internevo-7B-1024-nock", llama(32, 4096, 32, 32, 11008, 2048, 103168), "a100-80gb", 1024, 2, 4, "states", "none", "bf16", 4.52,
     "InternEvo train_performance.md"),
    ("tt-a100-l3-70B-full", llama(80, 8192, 64, 8, 28672, 8192, 128256), "a100-80gb", 64, 1, 1, "params", "full", "bf16", 24.75,
     "torchtitan docs/performance.md, 2024-08"),
    ("sc21-t1-1.7B", gpt(24, 2304, 24, 2048, 51200), "a100-80gb", 32, 16, 1, "", "full", "bf16", 3.53, "arXiv 2104.04473 table 1, scores stored"),
    ("sc21-t2-z3-175B-384", gpt(96, 12288, 96, 2048, 51200), "a100-80gb", 384, 4, 1, "params", "full", "bf16", 81.6, "arXiv 2104.04473 table 2, scores stored"),
    ("mcore-h100-1.7B", gpt(24, 2048, 16, 4096, 131072), "h100-sxm", 48, 4, 1, "states", "none", "bf16", 0.452,
     "Megatron-LM README (micro-batch and recompute not said)"),
    ("mpt-7b-h100-512-s2048", gpt(32, 4096, 32, 2048, 50368), "h100-sxm", 512, 6, 1, "params", "none", "bf16", 1.27,
     "llm-foundry benchmarking/README.md"),
    ("mpt-70b-h100-512-s2048", gpt(80, 8192, 64, 2048, 50368), "h100-sxm", 512, 8, 1, "params", "full", "bf16", 16.27,
     "llm-foundry benchmarking/README.md"),
    ("mpt-7b-h100-8-s65536", gpt(32, 4096, 32, 65536, 50368), "h100-sxm", 8, 1, 2, "params", "full", "bf16", 66.98,
     "llm-foundry benchmarking/README.md"),
    ("mpt-3b-h100-8-s2048-fp8", gpt(32, 2560, 20, 2048, 50368), "h100-sxm", 8, 10, 6, "params", "none", "fp8", 4.02,
     "llm-foundry benchmarking/README.md"),
    ("tt-h100-8B-8-compile", llama(32, 4096, 32, 8, 14336, 8192, 128256), "h100-sxm", 8, 2, 1, "params", "none", "bf16", 2.46,
     "torchtitan llama3_h100_202412 (500 W, HBM2e; recomputes a part)"),
]


def is_even(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value % 2 == 0


def report(model, dims, batch, device, precision, *more):
    file, sizes = model
    given = [f"-D{name}={value}" for name, value in {**sizes, **dims, "batch": batch}.items()]
    command = [EINC, ROOT / "examples" / file, *given, "--device", device, "--precision", precision, "--report=json", *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def phases(schedule):
    """Seconds of forward, backward and optimizer."""
    seconds = {"forward": 0.0, "backward": 0.0, "optimizer": 0.0}
    for launch in schedule:
        seconds[launch["phase"]] += launch["count"] * launch["time_s"]
    return seconds


def predict(run):
    _, model, device, devices, batch, accumulate, split, recompute, precision, _, source = run
    stored = ["--disable=attention"] if source.endswith("scores stored") else []
    one = report(model, {}, batch, device, precision, *stored)
    shards = "batch=data" + (f"; {split}=data" if split else "")
    mesh = report(model, {}, batch * devices, device, precision, "--mesh", f"data={devices}", "--shard", shards)
    time = phases(one["schedule"])
    sent = sum(row["time_s"] for row in mesh["communication"])
    micro = time["forward"] + time["backward"] + (time["forward"] if recompute == "full" else 0)
    update = time["optimizer"] / (devices if split else 1)
    hidden = (sent - mesh["per_device"]["exposed_s"]) * micro / (time["forward"] + time["backward"])
    exposed = max(0, sent - hidden)
    return accumulate * micro + update + exposed * (accumulate if split == "params" else 1), micro, sent, exposed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="those whose name matches")
    rows = [run for run in RUNS if re.search(parser.parse_args().rows, run[0])]
    print(f"{'run':24} {'hash':4} {'devices':>17}  {'published':>9}  {'predicted':>9} {'error':>6}   micro    sent exposed  source")
    errors = []
    for run in rows:
        measured = run[9]
        predicted, micro, sent, exposed = predict(run)
        errors.append(predicted / measured - 1)
        print(f"{run[0]:24} {'even' if is_even(run[0]) else 'odd':4} {run[3]:5} {run[2]:>11}  {measured:8.3f}s  {predicted:8.3f}s"
              f" {errors[-1]:+6.0%}  {micro:6.3f}s {sent:6.3f}s {exposed:6.3f}s  {run[10]}", flush=True)
    for kind, chosen in (("all", rows), ("odd", [run for run in rows if not is_even(run[0])])):
        sizes = [abs(e) for run, e in zip(rows, errors) if run in chosen]
        if sizes:
            print(f"{kind}: median error {statistics.median(sizes):.0%}, {sum(e <= 0.2 for e in sizes)} of {len(sizes)} within 20 %")


if __name__ == "__main__":
    main()
