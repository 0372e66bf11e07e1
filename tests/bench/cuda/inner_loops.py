#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of one turn of each loop with tensor cores in a kernel's machine code, along its shortest and its longest path.

    einc model.ein --emit=cubin --arch=sm_90 -o model.cubin
    tests/bench/cuda/inner_loops.py model.cubin [KERNEL...]

Needs no GPU, but cuobjdump and nvdisasm in PATH (a CUDA toolkit has them, and PyPI: nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm). A path
passes each block of instructions at most once and all products of the loop; the shortest is that of a tile that no mask cuts.
"""
import collections
import re
import subprocess
import sys

ENOUGH_PATHS = 5000  # of one loop
PRODUCTS = ("HMMA", "HGMMA")


def instructions(cubin, kernel):
    """[(address, text)] as cuobjdump prints them."""
    said = subprocess.run(["cuobjdump", "-sass", "-fun", kernel, cubin], capture_output=True, text=True, check=True).stdout
    found = (re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", line) for line in said.splitlines())
    return [(int(m[1], 16), m[2].strip()) for m in found if m]


def operation(text):
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")[0]


def following(code, place, i):
    """Where execution goes on after instruction i."""
    text = code[i][1]
    body = re.sub(r"^@!?U?P\w+\s+", "", text)
    rest = [i + 1] if i + 1 < len(code) else []
    if operation(text) == "BRA":
        target = place[int(re.search(r"0x([0-9a-f]+)", body)[1], 16)]
        conditional = body != text or re.search(r"^BRA(\.\w+)*\s+!?U?P|DIV", body)
        return [target, *rest] if conditional else [target]
    if operation(text) in ("EXIT", "RET"):
        return rest if body != text else []
    return rest


def blocks_of(code):
    """By first instruction: (end, products, following blocks)."""
    place = {address: i for i, (address, _) in enumerate(code)}
    goes = [following(code, place, i) for i in range(len(code))]
    starts = {0}
    for i, targets in enumerate(goes):
        if targets != [i + 1]:
            starts.update(targets, [i + 1])
    starts = sorted(s for s in starts if s < len(code))
    return {
        start: (end, sum(operation(code[i][1]) in PRODUCTS for i in range(start, end)), goes[end - 1])
        for start, end in zip(starts, [*starts[1:], len(code)])
    }


def paths(blocks, head, last):
    """Paths through the loop of those blocks: (instructions, products, blocks)."""
    found, open_ends = [], [(head, (head,))]
    while open_ends and len(found) < ENOUGH_PATHS:
        at, path = open_ends.pop()
        if at == last:
            found.append((sum(blocks[b][0] - b for b in path), sum(blocks[b][1] for b in path), path))
            continue
        open_ends += [(to, (*path, to)) for to in blocks[at][2] if head <= to <= last and to not in path]
    return found


def report(cubin, kernel):
    code = instructions(cubin, kernel)
    blocks = blocks_of(code)
    for last, (_, _, targets) in blocks.items():
        for head in (to for to in targets if to <= last):
            found = paths(blocks, head, last)
            products = max((p for _, p, _ in found), default=0)
            if products == 0:
                continue
            whole = sorted(f for f in found if f[1] == products)
            kinds = collections.Counter(operation(code[i][1]) for b in whole[0][2] for i in range(b, blocks[b][0]))
            print(f"{kernel}, loop at {code[head][0]:#x}: {products} products, {whole[0][0]} to {whole[-1][0]} instructions; the shortest path: "
                  + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))


def main():
    cubin, kernels = sys.argv[1], sys.argv[2:]
    if not kernels:
        said = subprocess.run(["cuobjdump", "-elf", cubin], capture_output=True, text=True, check=True).stdout
        kernels = sorted(set(re.findall(r"\.text\.(\w+)", said)), key=lambda k: (len(k), k))
    for kernel in kernels:
        report(cubin, kernel)


if __name__ == "__main__":
    main()
