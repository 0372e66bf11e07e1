# SPDX-License-Identifier: Apache-2.0
"""einc beside PyTorch and JAX: scripts/bench peers [--threads=N] [--rounds=N] [CASE...]. A measurement, not a test.

Every candidate runs in processes of its own, one after the other, round by round; a row shows the median over rounds of a process'
median, and how far rounds lay apart. Exported OPENBLAS_* halve a library's speed and are removed. PyTorch runs as it comes and "tuned":
with huge pages and without giving memory back, which costs it page faults on each large tensor otherwise. LLMC names a checkout of llm.c,
which has the case gpt2 alone."""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parents[2]
EINC = ROOT / "build/release/einc"
TUNED = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=34359738368"
MIB = 2**20
# case: bytes that must move at least (inputs once, outputs once); 0: FLOPs decide
CASES = {"softmax": 2 * 16 * MIB, "layer_norm": 2 * 12 * MIB, "gelu": 2 * 48 * MIB, "chain": 5 * 48 * MIB, "heads_apart": 2 * 24 * MIB,
         "heads_turned": 2 * 24 * MIB, "transpose": 2 * 64 * MIB, "adamw": 7 * 4 * 124_439_808, "attention": 0, "attention_step": 0,
         "gpt2": 0}
PEERS = {"torch": ("eager", {}), "torch tuned": ("eager", {"GLIBC_TUNABLES": TUNED}), "compile tuned": ("compile", {"GLIBC_TUNABLES": TUNED}),
         "jax": ("jax", {})}


def environment(threads, extra):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "GLIBC_TUNABLES"))}
    return {**kept, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), **extra}


def run(command, threads, extra=None):
    done = subprocess.run([str(x) for x in command], env=environment(threads, extra or {}), capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout[done.stdout.index("{"):])


def ours(case, threads, repeats):
    file = [ROOT / "examples/gpt2.ein", "-D", "batch=4", "-D", "seq=64"] if case == "gpt2" else [FOLDER / f"{case.removesuffix('_step')}.ein"]
    mode = ["--mode=training", "--discard-outputs"] if case in ("gpt2", "attention_step") else ["--mode=inference"]
    result = run([EINC, "bench", *file, "--json", *mode, f"--threads={threads}", f"--steps={repeats}"], threads)
    return result if "error" in result else {"seconds": result["steps_s"], "machine": result["machine"]}


def theirs(peer, case, threads, repeats):
    if peer == "llm.c":
        return run([sys.executable, FOLDER / "llm_c.py", os.environ["LLMC"], repeats], threads) if case == "gpt2" else {"seconds": []}
    name, extra = PEERS[peer]
    return run([sys.executable, FOLDER / "worker.py", name, case, threads, repeats], threads, extra)


def installed():
    names = []
    for module, peers in {"torch": ["torch", "torch tuned", "compile tuned"], "jax": ["jax"]}.items():
        if importlib.util.find_spec(module):
            names += peers
        else:
            print(f"missing: {module} is not installed for {sys.executable} (pip install {module}); PYTHON=... names another interpreter")
    if "LLMC" in os.environ:
        names.append("llm.c")
    else:
        print("missing: llm.c; LLMC=... names a checkout of https://github.com/karpathy/llm.c")
    return names


def cell(values):
    middle = statistics.median(values)
    return middle, f"{middle * 1e3:9.2f} ±{(max(values) - min(values)) / middle * 50:3.0f}%"


def row(case, threads, rounds, repeats, peers):
    times, machines, notes = {name: [] for name in ["einc", *peers]}, [], []
    for _ in range(rounds):
        for name in times:
            result = ours(case, threads, repeats) if name == "einc" else theirs(name, case, threads, repeats)
            if "error" in result:
                notes.append(f"{name}: {result['error']}")
            elif result["seconds"]:
                times[name].append(statistics.median(result["seconds"]))
            machines += [result["machine"]] if "machine" in result else []
    if not times["einc"]:
        return f"{case:<13}  {'; '.join(sorted(set(notes)))}", machines
    own, text = cell(times["einc"])
    rate = f"{CASES[case] / own * 1e-9:7.1f}" if CASES[case] else f"{'':>7}"
    for name in peers:
        if times[name]:
            peer, shown = cell(times[name])
            text += f" | {shown} {peer / own:5.2f}x"
        else:
            text += f" | {'-':>21}"
    return f"{case:<13} {rate} | {text}" + "".join(f"\n  {note[:150]}" for note in sorted(set(notes))), machines


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench peers")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=7, help="in each process")
    parser.add_argument("case", nargs="*", choices=[*CASES, []], default=list(CASES))
    options = parser.parse_args()
    peers = installed()
    print(f"{options.threads} threads; milliseconds, half the spread of {options.rounds} rounds, and their time over ours")
    print(f"{'case':<13} {'GB/s':>7} | {'einc':>15}" + "".join(f" | {name:>21}" for name in peers))
    machines = []
    for case in options.case:
        text, measured = row(case, options.threads, options.rounds, options.repeats, peers)
        machines += measured
        print(text, flush=True)
    if machines:
        print("\nthe machine meanwhile, worst to best: " + "; ".join(
            f"{label} {min(m[key] or 0 for m in machines) * scale:.0f} to {max(m[key] or 0 for m in machines) * scale:.0f} {unit}"
            for label, key, scale, unit in [("f32", "f32_flops", 1e-9, "GFLOP/s"), ("bf16", "bf16_flops", 1e-9, "GFLOP/s"),
                                            ("copy", "copy_bytes", 1e-9, "GB/s"), ("triad", "triad_bytes", 1e-9, "GB/s"),
                                            ("core to core and back", "round_trip_s", 1e9, "ns")]))


main()
