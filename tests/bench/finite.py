# SPDX-License-Identifier: Apache-2.0
"""What the look at updates costs: scripts/bench finite [--threads=N] [--rounds=N]. A measurement, not a test.

The same step with and without it (`einc bench --disable=finite_state`), in processes of their own that take turns. A row shows the
least of all steps of both, and the ratio of each round's pair, median and range. interface.md allows 1 % where gradients' magnitude
suffices. Where a step clips, it takes the norm anyway; without clipping the magnitude is read in addition."""
import argparse
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
EINC = ROOT / "build/release/einc"
GPT2 = ["-D", "batch=4", "-D", "seq=64"]
# name: file, dims, steps of a process, replacements in the text
CASES = {
    "mlp": ("mlp.ein", [], 200, {}),
    "cnn": ("cnn.ein", ["-D", "batch=64"], 40, {}),
    "shakespeare_char": ("shakespeare_char.ein", [], 20, {}),
    "gpt2, clipping": ("gpt2.ein", GPT2, 3, {}),
    "gpt2, not clipping": ("gpt2.ein", GPT2, 3, {", clip_norm = 1.0": ""}),
}


def program(file, replacements):
    if not replacements:
        return ROOT / "examples" / file
    text = (ROOT / "examples" / file).read_text()
    for old, new in replacements.items():
        assert old in text, f"{file} has no '{old}'"
        text = text.replace(old, new)
    changed = ROOT / "build/release" / f"finite_{file}"
    changed.write_text(text)
    return changed


def steps(file, dims, count, threads, more):
    command = [EINC, "bench", file, *dims, "--json", "--discard-outputs", f"--steps={count}", *([f"--threads={threads}"] if threads else []), *more]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["steps_s"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    print(f"{'step':<20} {'with, ms':>10} {'without':>10} {'ratio':>7}   of rounds: median, range")
    for name, (file, dims, count, replacements) in CASES.items():
        path = program(file, replacements)
        looked, bare, ratios = [], [], []
        for round_number in range(asked.rounds):
            # Who goes first changes, so that a machine that grows slower favours neither.
            for which in (0, 1) if round_number % 2 == 0 else (1, 0):
                (looked, bare)[which].append(min(steps(path, dims, count, asked.threads, ([], ["--disable=finite_state"])[which])))
            ratios.append(looked[-1] / bare[-1])
        print(f"{name:<20} {1e3 * min(looked):>10.2f} {1e3 * min(bare):>10.2f} {min(looked) / min(bare):>7.3f}   "
              f"{statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
