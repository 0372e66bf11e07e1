# SPDX-License-Identifier: Apache-2.0
"""llm.c's GPT-2 124M step on the processor, batch 4 x 64, f32: llm_c.py FOLDER REPEATS, where FOLDER is a checkout of llm.c
(git clone https://github.com/karpathy/llm.c). Builds its train_gpt2 where that is not there yet, starts it on random weights and tokens, in
files of its own formats, and prints JSON: seconds of each repeat, without the first two. Its step clips no gradients."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

LAYERS, WIDTH, POSITIONS, VOCABULARY, PADDED = 12, 768, 1024, 50257, 50304


def header(*numbers):
    words = numpy.zeros(256, numpy.int32)
    words[: len(numbers)] = numbers
    return words.tobytes()


def write_model(path, random):
    """Version 3: f32, each kind of tensor for all layers in turn."""
    matrix = lambda *shape: random.standard_normal(shape, numpy.float32) * numpy.float32(0.02)
    zeros, ones = (lambda n: numpy.zeros((LAYERS, n), numpy.float32)), (lambda n: numpy.ones((LAYERS, n), numpy.float32))
    with open(path, "wb") as file:
        file.write(header(20240326, 3, POSITIONS, VOCABULARY, LAYERS, LAYERS, WIDTH, PADDED))
        for tensor in (matrix(PADDED, WIDTH), matrix(POSITIONS, WIDTH), ones(WIDTH), zeros(WIDTH), matrix(LAYERS, 3 * WIDTH, WIDTH),
                       zeros(3 * WIDTH), matrix(LAYERS, WIDTH, WIDTH), zeros(WIDTH), ones(WIDTH), zeros(WIDTH),
                       matrix(LAYERS, 4 * WIDTH, WIDTH), zeros(4 * WIDTH), matrix(LAYERS, WIDTH, 4 * WIDTH), zeros(WIDTH),
                       ones(WIDTH)[0], zeros(WIDTH)[0]):
            file.write(tensor.tobytes())


def built(folder):
    program = folder / "train_gpt2"
    if not program.exists():
        if not (folder / "train_gpt2.c").exists():
            sys.exit(f"{folder} holds no train_gpt2.c: LLMC names a checkout of https://github.com/karpathy/llm.c")
        subprocess.run(["make", "-C", str(folder), "train_gpt2"], check=True, stdout=sys.stderr)
    return program


def main():
    program, repeats = built(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2])
    random, seconds = numpy.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder / "gpt2_124M.bin", random)
        data = folder / "dev/data/tinyshakespeare"
        data.mkdir(parents=True)
        for part in ("train", "val"):
            tokens = random.integers(0, VOCABULARY, 16384, numpy.uint16)
            (data / f"tiny_shakespeare_{part}.bin").write_bytes(header(20240520, 1, tokens.size) + tokens.tobytes())
        process = subprocess.Popen(["stdbuf", "-oL", str(program)], cwd=folder, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if match := re.match(r"step (\d+): .*took ([0-9.]+) ms", line):
                seconds += [float(match[2]) * 1e-3] if int(match[1]) >= 2 else []
            if len(seconds) == repeats:
                break
        process.kill()
        process.wait()
    if len(seconds) < repeats:
        sys.exit(f"{program} ended after {len(seconds)} steps")
    print(json.dumps({"seconds": seconds}))


main()
