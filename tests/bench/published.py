#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps that others have measured and published beside what einc predicts for the same model, mesh and devices.

    scripts/bench published [--rows=REGEX]

Runs nothing but reports. Of a row the prediction is made of
  micro     forward and backward of one device's sequences, by the report's schedule for that device, with what crosses devices of its
            model (or of its sequence) and no work hides
  again     what the run recomputes: the layers' forward (none of these frameworks recomputes the head and the loss: it wraps layers), or
            by ops (torchtitan's "selective op": every second product, and all that is neither product nor attention)
  update    the optimizer's launches, on a device's part of the params where the moments are split
  sent      the collectives along the data, each micro-batch's where params are split (ZeRO-3), else once a step
  exposed   what of them the report's schedule does not hide; what it hides grows with the work that it is hidden behind
  step      accumulation * (micro + again) + update + exposed, of each micro-batch where params are split
Of a pipeline the report tells each stage's forward and backward. einc has no stages of several pieces of layers (interleaved), no
recomputation of whole layers and no sends that the devices of a model share ("scatter and gather", arXiv 2104.04473), so that is put in here:
  stage     micro + again of the slowest stage, and its activations sent on and their gradients sent back
  step      accumulation * stage + bubble + update + exposed: the bubble is what the other stages take for one micro-batch, less by the
            number of pieces
Rates are those of the device table, links those of the row. One rate, the share of the clock that a long run keeps, was chosen from rows
whose id hashes even (FNV-1a, 64 bits); odd rows test it. What is predicted is einc's own step (its fused kernels, its collectives one by
one); what was published ran other programs: kernels apart, collectives of a block's params together. An error says how far such a
prediction is off, not which of the two is slow. Megatron's runs of 2021 and 2022 stored the scores of attention, and so does their
prediction.

Memory: of runs that tell it, the device with the most, as einc plans the step, and with the least that `--memory-limit` reaches, with which
a run that recomputes whole layers is compared. One that recomputes by ops lies between. einc's numbers are those of its plan, without what
the driver and libraries take (1.5 GB of what nvidia-smi shows). Scores of attention are not stored for it: a run that recomputes layers has
those of one layer at a time. A step of several micro-batches without stages is planned as one micro-batch.

Rows are those of a list of published runs that state device, mesh, batch and recomputation and whose figures agree with one another, all of
them, and two more (`told in part`) that do not state their micro-batch and are not in the sums. Left out: PaLM (TPUs, which einc does not
compile for), those that do not state what decides their time (Megatron-Core's 177B, MegaScale's two, Llama 3's 405B, torchtitan's 405B,
PaxML's 175B, Megatron-Bridge's 70B), fms-fsdp's 70B, whose figures disagree, and InternEvo's memory where tensors are split or
devices do not divide the model.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
EINC = ROOT / "build/release/einc"

def gpt(layers, embed, heads, seq, vocab):
    return "gpt2.ein", dict(layers=layers, heads=heads, head=embed // heads, seq=seq, vocab=vocab)


def llama(layers, embed, heads, kv_heads, ffn, seq, vocab):
    return "llama.ein", dict(layers=layers, embed=embed, heads=heads, kv_heads=kv_heads, ffn=ffn, seq=seq, vocab=vocab)


class Run(NamedTuple):
    name: str
    model: tuple
    device: str
    data: int  # devices along that axis
    sequences: int  # of a micro-batch on one device, or on those that share a model
    seconds: float  # a step as published, or FLOPs or tokens over the published rate
    source: str
    tensor: int = 1  # heads, hidden and vocab
    context: int = 1  # the sequence, for attention alone
    stages: int = 1
    pieces: int = 1  # of layers on each stage
    accumulate: int = 1
    split: str = ""  # over data
    recompute: str = "none"
    precision: str = "bf16"
    stores_scores: bool = False
    network: float = 0  # bytes per second of a device, where it is not that of the device table
    memory: float = 0  # likewise
    told: bool = True  # all that decides the time
    fullest: float = 0  # bytes of the device with the most, as published


OMNI_PATH = ROCE = 6.25e9
HBM2E = 2.4e12
SC21, K22, BLOOM = "arXiv 2104.04473", "arXiv 2205.05198", "bigscience train/tr11-176B-ml"
RUNS = [
    Run("llmc-124M-8a100", gpt(12, 768, 12, 1024, 50304), "a100-80gb", 8, 64, 0.300, "llm.c scripts/run_gpt2_124M.sh", split="states"),
    Run("nanogpt-124M-8a100", gpt(12, 768, 12, 1024, 50257), "a100-80gb", 8, 12, 0.562, "nanoGPT issue 110", accumulate=5,
        stores_scores=True),
    Run("flash-gpt3-2.7B", gpt(32, 2560, 20, 2048, 50264), "a100-80gb", 8, 8, 512 * 2048 / 85e3, "flash-attention training/README.md",
        accumulate=8, told=False),
    Run("mpt-13b-a100_80-8-s2048", gpt(40, 5120, 40, 2048, 50368), "a100-80gb", 8, 2, 5.43, "llm-foundry benchmarking/README.md",
        accumulate=3, split="params"),
    Run("tt-a100-13B-noac", llama(40, 5120, 40, 40, 13824, 4096, 32000), "a100-80gb", 64, 2, 3.79,
        "torchtitan docs/performance.md, 2024-08", split="params"),
    Run("tt-a100-l3-70B-full", llama(80, 8192, 64, 8, 28672, 8192, 128256), "a100-80gb", 64, 1, 24.75,
        "torchtitan docs/performance.md, 2024-08", split="params", recompute="full"),
    Run("internevo-7B-1024-nock", llama(32, 4096, 32, 32, 11008, 2048, 103168), "a100-80gb", 1024, 2, 4.52,
        "InternEvo train_performance.md", accumulate=4, split="states", network=ROCE),
    Run("sc21-t1-1.7B", gpt(24, 2304, 24, 2048, 51200), "a100-80gb", 32, 16, 3.53, f"{SC21} table 1", recompute="full",
        stores_scores=True),
    Run("sc21-t1-7.5B", gpt(36, 4096, 32, 2048, 51200), "a100-80gb", 32, 16, 3.70, f"{SC21} table 1", tensor=4, recompute="full",
        stores_scores=True),
    Run("sc21-t1-39B", gpt(48, 8192, 64, 2048, 51200), "a100-80gb", 32, 4, 14.45, f"{SC21} table 1", tensor=8, stages=2, accumulate=12,
        recompute="full", stores_scores=True),
    Run("sc21-t1-145B", gpt(80, 12288, 96, 2048, 51200), "a100-80gb", 24, 2, 24.82, f"{SC21} table 1", tensor=8, stages=8, pieces=2,
        accumulate=48, recompute="full", stores_scores=True),
    Run("sc21-t1-530B", gpt(105, 20480, 128, 2048, 51200), "a100-80gb", 9, 1, 54.08, f"{SC21} table 1", tensor=8, stages=35, pieces=3,
        accumulate=280, recompute="full", stores_scores=True),
    Run("sc21-t2-ptd-175B-384", gpt(96, 12288, 96, 2048, 51200), "a100-80gb", 4, 1, 76.8, f"{SC21} table 2", tensor=8, stages=12,
        accumulate=384, recompute="full", stores_scores=True),
    Run("sc21-t2-z3-175B-384", gpt(96, 12288, 96, 2048, 51200), "a100-80gb", 384, 4, 81.6, f"{SC21} table 2", split="params",
        recompute="full", stores_scores=True),
    Run("k22-22B-full", gpt(48, 6144, 64, 2048, 51200), "a100-80gb", 1, 4, 1.42, f"{K22} tables 3, 5", tensor=8, recompute="full",
        stores_scores=True),
    Run("k22-175B-full", gpt(96, 12288, 96, 2048, 51200), "a100-80gb", 1, 1, 18.13, f"{K22} tables 3, 5", tensor=8, stages=8, pieces=3,
        accumulate=64, recompute="full", stores_scores=True),
    Run("k22-530B-full", gpt(105, 20480, 128, 2048, 51200), "a100-80gb", 1, 1, 49.05, f"{K22} tables 3, 5", tensor=8, stages=35, pieces=3,
        accumulate=280, recompute="full", stores_scores=True),
    Run("k22-1T-full", gpt(128, 25600, 160, 2048, 51200), "a100-80gb", 1, 1, 94.42, f"{K22} tables 3, 5", tensor=8, stages=64,
        accumulate=512, recompute="full", stores_scores=True),
    # Recomputes attention's scores and weights alone, which a fused attention does as well. Sequence parallelism sends the same bytes.
    Run("k22-530B-dp8", gpt(105, 20480, 128, 2048, 51200), "a100-80gb", 8, 1, 39.15, f"{K22} section 6.3", tensor=8, stages=35, pieces=3,
        accumulate=280),
    Run("bloom-176B-prod", gpt(70, 14336, 112, 2048, 250880), "a100-80gb", 8, 2, 104.7, f"{BLOOM}/README.md", tensor=4, stages=12,
        accumulate=128, split="states", recompute="full", stores_scores=True, network=OMNI_PATH),
    Run("bloom-176B-tp8pp12", gpt(70, 14336, 64, 2048, 250880), "a100-80gb", 4, 2, 121.63, f"{BLOOM}/chronicles-prequel.md", tensor=8,
        stages=12, accumulate=256, split="states", recompute="full", stores_scores=True, network=OMNI_PATH, fullest=40e9),
    Run("bloom-177B-pp48", gpt(96, 12288, 64, 2048, 250880), "a100-80gb", 8, 1, 142.17, f"{BLOOM}/chronicles-prequel.md", stages=48,
        accumulate=256, split="states", recompute="full", stores_scores=True, network=OMNI_PATH, fullest=58e9),
    Run("mcore-h100-1.7B", gpt(24, 2048, 16, 4096, 131072), "h100-sxm", 48, 4, 0.452, "Megatron-LM README", split="states", told=False),
    Run("mpt-7b-h100-512-s2048", gpt(32, 4096, 32, 2048, 50368), "h100-sxm", 512, 6, 1.27, "llm-foundry benchmarking/README.md",
        split="params"),
    Run("mpt-70b-h100-512-s2048", gpt(80, 8192, 64, 2048, 50368), "h100-sxm", 512, 8, 16.27, "llm-foundry benchmarking/README.md",
        split="params", recompute="full"),
    Run("mpt-7b-h100-8-s65536", gpt(32, 4096, 32, 65536, 50368), "h100-sxm", 8, 1, 66.98, "llm-foundry benchmarking/README.md",
        accumulate=2, split="params", recompute="full"),
    Run("mpt-3b-h100-8-s2048-fp8", gpt(32, 2560, 20, 2048, 50368), "h100-sxm", 8, 10, 4.02, "llm-foundry benchmarking/README.md",
        accumulate=6, split="params", precision="fp8"),
    Run("tt-h100-8B-8-compile", llama(32, 4096, 32, 8, 14336, 8192, 128256), "h100-sxm", 8, 2, 2.46,
        "torchtitan llama3_h100_202412 (500 W)", split="params", recompute="by ops", memory=HBM2E, fullest=77.0 * 2**30),
    Run("tt-h100-8B-cp8", llama(32, 4096, 32, 8, 14336, 262144, 128256), "h100-sxm", 1, 1, 59.80,
        "torchtitan llama3_h100_202412 (500 W)", context=8, split="params", recompute="full", precision="fp8", memory=HBM2E,
        fullest=84.5 * 2**30),
    Run("automodel-70B-64", llama(80, 8192, 64, 8, 28672, 8192, 128256), "h100-sxm", 32, 1, 18.90, "Automodel docs/performance-summary",
        context=2, accumulate=4, split="params", recompute="full"),
]

INTERNEVO_7B = llama(32, 4096, 32, 32, 11008, 2048, 103168)
# Runs that tell their memory alone.
MEMORY_RUNS = [
    Run(f"internevo-7B-{name}", INTERNEVO_7B, "a100-80gb", data, 1, 0, "InternEvo train_performance.md", stages=stages, accumulate=4,
        split=split, recompute="full", fullest=fullest)
    for name, data, stages, split, fullest in [("z3-4", 4, 1, "params", 56e9), ("pp3", 1, 3, "", 75e9), ("pp4", 1, 4, "", 69e9),
                                               ("pp5", 1, 5, "", 62e9), ("pp6", 1, 6, "", 56e9)]
]


def is_even(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value % 2 == 0


def einc_report(*arguments):
    done = subprocess.run([EINC, *arguments, "--report=json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"einc {' '.join(str(word) for word in arguments)}\n{done.stderr}")
    return json.loads(done.stdout)


def device_of(run, folder):
    """The row of the table, or a file like it with the run's own memory and network, the last link, in place of the row's."""
    if not run.network and not run.memory:
        return run.device
    device = {"name": run.device, "like": run.device}
    if run.memory:
        device["bandwidth"] = run.memory
    if run.network:
        device["links"] = einc_report(ROOT / "examples/mlp.ein", "--device", run.device)["device"]["links"]
        device["links"][-1]["bandwidth"] = run.network
    file = pathlib.Path(folder) / f"{run.device}-{run.network:.0f}-{run.memory:.0f}.json"
    file.write_text(json.dumps(device))
    return file


def arguments_of(run, folder):
    file, sizes = run.model
    micro = run.accumulate if run.stages > 1 else 1  # without stages a step of one microbatch is reported
    sizes = {**sizes, "batch": run.sequences * run.data * micro}
    axes = [("stage", run.stages), ("data", run.data), ("context", run.context), ("model", run.tensor)]
    axes = [(axis, size) for axis, size in axes if size > 1]
    # What is split over data is, in FSDP, split over the devices of a sequence as well.
    spread = ",".join(axis for axis, size in (("data", run.data), ("context", run.context)) if size > 1)
    # Context parallelism of PyTorch and Transformer Engine keeps a device's own keys, and meets those of others one after the other.
    context = ["seq=context", "keys=context"] * (run.context > 1)
    shards = ["batch=data"] * (run.data > 1) + context + ["heads,hidden,vocab=model"] * (run.tensor > 1)
    shards += [f"{run.split}={spread}"] * bool(run.split) + [f"layers=stage(microbatches={micro})"] * (run.stages > 1)
    return [ROOT / "examples" / file, *[f"-D{name}={value}" for name, value in sizes.items()], "--device", device_of(run, folder),
            "--precision", run.precision, "--mesh", ",".join(f"{axis}={size}" for axis, size in axes), "--shard", "; ".join(shards)]


def report(run, folder):
    return einc_report(*arguments_of(run, folder), *["--disable=attention"] * run.stores_scores)


def planned_bytes(run, folder):
    """Of the device with the most: as the step is, and the least under a limit."""
    arguments = [*arguments_of(run, folder), "--discard-outputs"]
    r = einc_report(*arguments)
    stages = r["mesh"]["pipeline"]["stages"] if run.stages > 1 else [r["per_device"]["planned"]]
    refused = subprocess.run([EINC, *arguments, "--memory-limit=1", "--report=json"], capture_output=True, text=True).stderr
    return max(stage["peak"] for stage in stages), int(re.search(r"(\d+) bytes if the backward recomputes", refused)[1])


class Step(NamedTuple):
    seconds: float
    micro: float  # of a microbatch, on the slowest stage
    sent: float  # along the data
    exposed: float


def again_of(run, launch):
    """The share of a launch of the forward that is run once more."""
    if run.recompute == "by ops":
        return {"attention": 0, "contraction": 0.5}.get(launch["kind"], 1)
    return 1 if run.recompute == "full" and "*" in launch["name"] else 0


def along_data(r):
    rows = [row for row in r["communication"] if row["axis"] == "data"]
    return sum(row["time_s"] for row in rows), sum(row["exposed_s"] for row in rows)


def predict_alone(run, r):
    # The schedule is the whole program's on one device. A device of the mesh does the same share of each phase.
    phases = {"forward": 0.0, "backward": 0.0, "optimizer": 0.0}
    again = 0.0
    for launch in r["schedule"]:
        phases[launch["phase"]] += launch["count"] * launch["time_s"]
        if launch["phase"] == "forward":
            again += launch["count"] * launch["time_s"] * again_of(run, launch)
    update = phases["optimizer"] / run.tensor / (max(run.data, run.context) if run.split else 1)
    work = r["per_device"]["compute_s"] - update
    forward = work * phases["forward"] / (phases["forward"] + phases["backward"])
    along = {"forward": 0.0, "backward": 0.0}
    for row in r["communication"]:
        if row["axis"] != "data" and row["phase"] in along:
            along[row["phase"]] += row["exposed_s"]
    forward, backward = forward + along["forward"], work - forward + along["backward"]
    micro = forward * (1 + again / phases["forward"]) + backward
    sent, exposed = along_data(r)
    left = max(0.0, sent - (sent - exposed) * micro / (forward + backward))
    return Step(run.accumulate * micro + update + left * (run.accumulate if run.split == "params" else 1), micro, sent, left)


def predict_stages(run, r):
    """The slowest stage works all the time but while the first microbatch comes and the last one goes: through all others, or with several
    pieces of layers on each stage through that share of them. A stage sends and receives once for each piece, forward and backward."""
    sends = [row["time_s"] / row["count"] for row in r["communication"] if row["axis"] == "stage" and row["count"] == run.accumulate]
    passed = 2 * run.pieces * max(sends) / run.tensor
    stages = r["mesh"]["pipeline"]["stages"]
    layer = min(stage["forward_s"] / stage["iterations"] for stage in stages)  # of a stage that has nothing else
    again = [stage["iterations"] * layer if run.recompute == "full" else 0 for stage in stages]
    micros = [stage["forward_s"] + more + stage["backward_s"] + passed for stage, more in zip(stages, again)]
    slowest = max(range(run.stages), key=lambda stage: micros[stage])
    update = stages[slowest]["update_s"]
    others = (sum(micros) - micros[slowest]) / run.pieces
    sent, exposed = along_data(r)
    return Step(run.accumulate * micros[slowest] + others + update, micros[slowest], sent, exposed)


def predict(run, folder):
    r = report(run, folder)
    return predict_stages(run, r) if run.stages > 1 else predict_alone(run, r)


def print_memory(rows):
    if not rows:
        return
    print(f"\n{'memory of':24} {'devices':>17}  {'published':>9}  {'as it is':>9} {'at least':>9} {'error':>6}  source")
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for run in rows:
            as_is, least = planned_bytes(run, folder)
            judged = run.recompute == "full"
            error = f"{least / run.fullest - 1:+6.0%}" if judged else "between"
            errors += [abs(least / run.fullest - 1)] * judged
            devices = run.data * run.context * run.tensor * run.stages
            print(f"{run.name:24} {devices:5} {run.device:>11}  {run.fullest / 1e9:6.1f} GB  {as_is / 1e9:6.1f} GB {least / 1e9:6.1f} GB"
                  f" {error:>7}  {run.source}", flush=True)
    if errors:
        print(f"memory: median error {statistics.median(errors):.0%}, {sum(e <= 0.2 for e in errors)} of {len(errors)} within 20 %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="those whose name matches")
    pattern = parser.parse_args().rows
    rows = [run for run in RUNS if re.search(pattern, run.name)]
    of_memory = [run for run in RUNS + MEMORY_RUNS if run.fullest and re.search(pattern, run.name)]
    print(f"{'run':24} {'hash':4} {'devices':>17}  {'published':>9}  {'predicted':>9} {'error':>6}   micro    sent exposed  source")
    errors = {}
    with tempfile.TemporaryDirectory() as folder:
        for run in rows:
            step = predict(run, folder)
            errors[run.name] = step.seconds / run.seconds - 1
            devices = run.data * run.context * run.tensor * run.stages
            told = "" if run.told else ", told in part"
            print(f"{run.name:24} {'even' if is_even(run.name) else 'odd':4} {devices:5} {run.device:>11}  {run.seconds:8.3f}s"
                  f"  {step.seconds:8.3f}s {errors[run.name]:+6.0%}  {step.micro:6.3f}s {step.sent:6.3f}s {step.exposed:6.3f}s"
                  f"  {run.source}{', scores stored' * run.stores_scores}{told}", flush=True)
    judged = [run for run in rows if run.told]
    kinds = {"all": judged, "odd": [run for run in judged if not is_even(run.name)],
             "one stage": [run for run in judged if run.stages == 1],
             "several stages, as reports predict them": [run for run in judged if run.stages > 1]}
    for kind, chosen in kinds.items():
        sizes = [abs(errors[run.name]) for run in chosen]
        if sizes:
            print(f"{kind}: median error {statistics.median(sizes):.0%}, {sum(e <= 0.2 for e in sizes)} of {len(sizes)} within 20 %")
    print_memory(of_memory)


if __name__ == "__main__":
    main()
