# SPDX-License-Identifier: Apache-2.0
"""einc beside PyTorch on an NVIDIA GPU: scripts/bench cuda [--rows REGEX] [--minutes N] [--out FOLDER]. A measurement, not a test.

Rows run in the order of rows.py until the time is up; each is written to FOLDER/cuda.json and cuda.md when it is done. Ours and PyTorch's are
processes of their own, one after the other. Times are medians, with half the distance of the tenth and ninetieth percentile; kernels are timed by
the GPU's events, GPT-2's steps by the clock. Nothing is timed on zeros. Rows with attention are measured once more with a plug-in's attention
(--attention-plugin), instead of our kernels wherever it has a way. --emulated FOLDER tries every row in tiny sizes without a GPU."""
import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from rows import ROWS

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parents[2]
LIMIT = 240  # seconds of one process of ours


class Bench:
    def __init__(self, arguments):
        self.options = arguments
        self.begin = time.monotonic()
        self.machine, self.torch, self.rows, self.left_out = {}, {}, {}, []
        self.worker = None
        pathlib.Path(arguments.out).mkdir(parents=True, exist_ok=True)
        self.cache = tempfile.TemporaryDirectory(prefix="einc_bench_cuda_")
        self.plugin = str(pathlib.Path(arguments.attention_plugin).resolve()) if arguments.attention_plugin else ""
        self.environment = {**os.environ, "EINC_ATTENTION_PLUGIN": "", "XDG_CACHE_HOME": arguments.cache or self.cache.name, "VIRTUAL_ENV": sys.prefix}
        if arguments.emulated:
            self.environment["EINC_CUDA_PATH"] = str(pathlib.Path(arguments.emulated).resolve())

    def seconds_left(self):
        return self.options.minutes * 60 - (time.monotonic() - self.begin)

    def dims(self, row):
        return row.tiny if self.options.emulated else row.dims

    def steps(self, row):
        return 2 if self.options.emulated else row.steps

    def ours(self, row, plugin=""):
        environment = self.environment | ({"EINC_ATTENTION_PLUGIN": plugin, "EINC_ATTENTION_ALWAYS": "1"} if plugin else {})
        command = [self.options.einc, "bench", row.program, "--target=cuda", "--json", f"--mode={row.mode}", f"--steps={self.steps(row)}"]
        command += ["--discard-outputs"] if row.mode == "training" else []  # PyTorch keeps none either
        command += [f"--precision={row.precision}"] if row.precision else []
        for name, value in self.dims(row).items():
            command += ["-D", f"{name}={value}"]
        try:
            done = subprocess.run([str(x) for x in command], env=environment, capture_output=True, text=True, timeout=max(5, min(LIMIT, self.seconds_left())))
        except subprocess.TimeoutExpired:
            return {"error": "took too long"}
        if done.returncode != 0:
            return {"error": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]}
        result = json.loads(done.stdout)
        if plugin and "warning" in done.stderr:
            return {"error": next(line for line in done.stderr.splitlines() if "warning" in line)}
        if not self.machine:
            self.machine = result["machine"]
        seconds = [result["compile_s"]] if row.unit == "seconds" else result["steps_s"] if row.mode == "training" else result["launches_s"]
        return {"seconds": seconds, "machine": result["machine"], "mfu": result["flops"]["mfu"], "memory": result["memory"]["planned"],
                "kernels": result["kernels"][:8]}

    def theirs(self, row):
        """Peers' measurements, as far as the worker comes in time; it waits for the next row, and is started anew after it failed."""
        if not self.worker or self.worker.poll() is not None:
            with open(pathlib.Path(self.options.out) / "torch.log", "a") as log:
                self.worker = subprocess.Popen([sys.executable, FOLDER / "worker.py"], env=self.environment, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
            self.answers = queue.Queue()
            threading.Thread(target=lambda out, to: [*map(to.put, out), to.put("")], args=(self.worker.stdout, self.answers), daemon=True).start()
        peers = {}
        row = {"name": row.name, "kind": row.peer[0], "settings": row.peer[1:], "dims": self.dims(row), "steps": self.steps(row)}
        try:
            self.worker.stdin.write(json.dumps(row) + "\n")
            while True:
                line = self.answers.get(timeout=max(1, min(LIMIT, self.seconds_left())))
                if not line:
                    return peers | {"PyTorch": {"error": "its process ended: see torch.log"}}
                if not line.startswith("{"):
                    continue
                said = json.loads(line)
                if said.get("done"):
                    return peers
                if said["row"]:
                    peers[said["peer"]] = said
                else:
                    self.torch = said
        except queue.Empty:
            self.worker.kill()
            self.worker.wait()
            return peers | {"PyTorch": {"error": "took too long"}}
        except BrokenPipeError:
            return peers | {"PyTorch": {"error": "its process ended: see torch.log"}}

    def run(self, chosen):
        has_torch = not self.options.no_torch and importlib.util.find_spec("torch") is not None
        if not has_torch:
            print(f"PyTorch is {'left out' if self.options.no_torch else 'not installed for ' + sys.executable}: einc's column stands alone", flush=True)
        for position, row in enumerate(chosen):
            if self.seconds_left() < 10:
                self.left_out = [r.name for r in chosen[position:]]
                break
            result = self.rows[row.name] = {"unit": row.unit, "work": row.work(self.dims(row)), "einc": self.ours(row), "peers": {}}
            if self.plugin and row.attends:
                result["plugin"] = self.ours(row, self.plugin)
            if has_torch and row.peer:
                result["peers"] = self.theirs(row)
            print(f"{time.monotonic() - self.begin:5.0f} s  {self.line(row)}", flush=True)
            self.write(chosen)
        for name in self.left_out:
            print(f"left out for want of time: {name}")
        self.write(chosen)
        if self.worker:
            self.worker.kill()
            self.worker.wait()

    def own_seconds(self, row, whose="einc"):
        seconds = self.rows[row.name].get(whose, {}).get("seconds")
        if not seconds or not row.minus:
            return seconds
        forward = self.rows.get(row.minus, {}).get(whose, {}).get("seconds")
        return [s - statistics.median(forward) for s in seconds] if forward else None

    def figures(self, row):
        """Our median, its spread, the rate, the share of the peak, and the fastest peer with its ratio."""
        result = self.rows[row.name]
        seconds = self.own_seconds(row)
        if not seconds or statistics.median(seconds) <= 0:
            return None
        median = statistics.median(seconds)
        spread = lambda s: (sorted(s)[int(len(s) * 0.9)] - sorted(s)[int(len(s) * 0.1)]) / 2 / statistics.median(s)
        machine = result["einc"]["machine"]
        peak = {"bytes": machine["copy_bytes"], "flops": machine["bf16_flops"]}.get(row.unit)
        found = {"median": median, "spread": spread(seconds), "rate": result["work"] / median, "mfu": result["einc"]["mfu"]}
        found["peak"] = found["rate"] / peak if peak else None
        times = {peer: statistics.median(said["seconds"]) for peer, said in result["peers"].items() if said.get("seconds")}
        found["times"] = times
        if times:
            found["peer"] = min(times, key=times.get)
            found["ratio"] = times[found["peer"]] / median
            found["peer_spread"] = spread(result["peers"][found["peer"]]["seconds"])
        if "flash" in times:
            found["ratio to flash"] = times["flash"] / median
        same = self.rows.get(row.name.replace("fp8", "nn"), {}).get("einc", {}).get("seconds")
        if "fp8" in row.name and same:
            found["ratio to bf16"] = statistics.median(same) / median
        found["seconds"] = median
        return found

    def goals(self, row, found):
        texts = []
        for what, goal in row.goals:
            value = found.get(what)
            wanted = f"{what} {'at most' if what == 'seconds' else 'at least'} {goal:g}"
            if value is None:
                texts.append(f"{wanted}: not known")
            else:
                texts.append(f"{wanted}: {'met' if (value <= goal if what == 'seconds' else value >= goal) else 'missed'} ({value:.4g})")
        return "; ".join(texts)

    def plugin_cell(self, row, scale, unit):
        """Time and rate with the plug-in's attention, or why it has none."""
        result = self.rows[row.name]
        if "plugin" not in result:
            return ""
        seconds = self.own_seconds(row, "plugin")
        if not seconds or statistics.median(seconds) <= 0:
            return result["plugin"].get("error", "no time beside the forward's")
        median = statistics.median(seconds)
        return f"{median * 1e3:.3f}, {result['work'] / median * scale:.1f} {unit}"

    def cells(self, row):
        result, found = self.rows[row.name], self.figures(row)
        if found is None:
            return [row.name, result["einc"].get("error", "no time beside the forward's"), "", "", "", "", "", ""]
        scale, unit = {"tokens": (1e-3, "k tokens/s"), "flops": (1e-12, "TFLOP/s"), "bytes": (1e-9, "GB/s"), "seconds": (0, "")}[row.unit]
        rate = f"{found['rate'] * scale:.1f} {unit}" if scale else ""
        share = f"{found['mfu']:.0%} MFU" if row.unit == "tokens" else f"{found['peak']:.0%}" if found["peak"] else ""
        peers = ", ".join(f"{p} {t * 1e3:.3f}" for p, t in sorted(found["times"].items(), key=lambda x: x[1]))
        failed = ", ".join(f"{p}: {said['error']}" for p, said in result["peers"].items() if "error" in said)
        return [row.name, f"{found['median'] * 1e3:.3f} ±{found['spread']:.0%}", rate, share, self.plugin_cell(row, scale, unit), "; ".join(x for x in (peers, failed) if x),
                f"{found['ratio']:.2f}" if "ratio" in found else "", self.goals(row, found)]

    def line(self, row):
        return "  ".join(cell for cell in self.cells(row) if cell)

    def write(self, chosen):
        out = pathlib.Path(self.options.out)
        machine = self.machine
        head = [f"# einc and PyTorch on {machine.get('gpu', 'no GPU')}", "",
                f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC. " + (
                    f"Measured here: {machine['bf16_flops'] * 1e-12:.0f} TFLOP/s in bf16, {machine['f32_flops'] * 1e-12:.0f} in f32, copies of "
                    f"{machine['copy_bytes'] * 1e-9:.0f} GB/s (bytes read and written). " if machine else "")
                + ("The emulated GPU, sizes are tiny: only the way through counts. " if self.options.emulated else "")
                + (f"PyTorch {self.torch['version']}, cuDNN {self.torch['cudnn']}." if self.torch else "No PyTorch."), "",
                "| row | einc, ms | rate | of the peak | with the plug-in's attention, ms | PyTorch, ms | ratio | goal |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        body = ["| " + " | ".join(cell.replace("|", "/") for cell in self.cells(row)) + " |" for row in chosen if row.name in self.rows]
        (out / "cuda.md").write_text("\n".join(head + body + [f"\nLeft out: {', '.join(self.left_out)}."] * bool(self.left_out)) + "\n")
        (out / "cuda.json").write_text(json.dumps({"machine": machine, "torch": self.torch, "rows": self.rows, "left_out": self.left_out}, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="those whose name this regular expression finds")
    parser.add_argument("--minutes", type=float, default=9.5, help="after which no row is begun")
    parser.add_argument("--out", default="build/bench_cuda", help="folder of cuda.md and cuda.json")
    parser.add_argument("--einc", default=str(ROOT / "build/gpu/einc"))
    parser.add_argument("--cache", default="", help="folder of compiled kernels; fresh when not given, so that the first row is a cold start")
    parser.add_argument("--emulated", default="", help="folder of the emulated GPU: tiny sizes")
    parser.add_argument("--attention-plugin", default=os.environ.get("EINC_ATTENTION_PLUGIN", ""), help="file of the plug-in")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--list", action="store_true", help="the rows, and nothing else")
    options = parser.parse_args()
    chosen = [row for row in ROWS if re.search(options.rows, row.name)]
    needed = {row.minus for row in chosen}
    chosen = [row for row in ROWS if row in chosen or row.name in needed]
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    bench = Bench(options)
    bench.run(chosen)
    print((pathlib.Path(options.out) / "cuda.md").read_text())
    failed = any("error" in result.get(whose, {}) for result in bench.rows.values() for whose in (["einc", "plugin"] if options.emulated else ["einc"])) or (options.emulated and bench.left_out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
