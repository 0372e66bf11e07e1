#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes generated.md: random pattern cases in the format of cases.md, with values and gradients from einops and torch.

usage: make_generated.py > generated.md     (needs torch and einops)
rearrange, reduce and repeat are einops' own results. An einsum (groups, units, diagonals, ellipses, windows) is computed
by opening every operand with torch's own reshape and index_select, then torch.einsum over letters. All in float64.
"""
import itertools
import random

import einops
import torch

LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAMES = ["batch", "seq", "h", "w", "c", "head", "t", "u2", "camelCase", "under_scored", "x", "y1"]


def operand(shape, t):
    n = 1
    for s in shape:
        n *= s
    k = torch.arange(n, dtype=torch.int64)
    return ((7 * k + 3 * t + 1) % 11 - 5).to(torch.float64).reshape(shape).requires_grad_(True)


def check_sum(y):
    flat = y.reshape(-1)
    return (flat * (torch.arange(flat.numel()) % 97 + 1).to(torch.float64)).sum()


def shape_text(shape):
    return "(" + ",".join(str(s) for s in shape) + ")"


def number(v):
    v = float(v.detach())
    return str(int(v)) if v == int(v) else f"{v:.6f}"


def row(name, op, pattern, xs, sizes, y, gradient=True):
    loss = check_sum(y)
    note = "chk=" + number(loss)
    if gradient:
        grads = torch.autograd.grad(loss, xs, allow_unused=True)
        note += " gchk=" + " ; ".join(number(check_sum(g)) if g is not None else "0" for g in grads)
    sizes_text = " ".join(f"{k}={v}" for k, v in sizes.items()) or "-"
    shapes = " ; ".join(shape_text(x.shape) for x in xs)
    print(f"{name} | {op} | {pattern} | {shapes} | {sizes_text} | {shape_text(y.shape)} | {note}")


def groups(rng, names):
    """Cuts a list of names into groups of one to three; units are thrown in."""
    out, i = [], 0
    while i < len(names):
        n = rng.choice([1, 1, 1, 2, 3])
        part = names[i:i + n]
        i += n
        if len(part) == 1 and rng.random() < 0.85:
            out.append(part[0])
        else:
            if rng.random() < 0.2:
                part = part[:1] + ["1"] + part[1:]
            out.append("(" + " ".join(part) + ")")
        if rng.random() < 0.12:
            out.append(rng.choice(["1", "()"]))
    return out


def sizes_of(atoms, size):
    shape = []
    for a in atoms:
        n = 1
        for name in a.strip("()").split():
            n *= 1 if name == "1" else size[name]
        shape.append(n)
    return shape


def unknown_sizes(rng, atoms, size, everything):
    """What must be given: all but one name of each group."""
    given = {}
    for a in atoms:
        names = [n for n in a.strip("()").split() if n != "1"]
        if a.startswith("(") and names:
            left_out = rng.choice(names)
            for n in names:
                if n != left_out or rng.random() < 0.1:
                    given[n] = size[n]
    return given


def single_operand(rng, name, op):
    count = rng.randint(1, 6)
    names = rng.sample(NAMES, count)
    size = {n: rng.choice([1, 2, 2, 3, 4, 5]) for n in names}
    left = groups(rng, names)
    dots = rng.random() < 0.35
    extra = [rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 2))] if dots else []
    place = rng.randint(0, len(left))
    shape = sizes_of(left[:place], size) + extra + sizes_of(left[place:], size)
    if dots:
        left = left[:place] + ["..."] + left[place:]
    given = unknown_sizes(rng, left, size, names)
    right = names[:]
    rng.shuffle(right)
    reduction = None
    if op == "reduce":
        right = right[:rng.randint(0, len(right))]
        reduction = rng.choice(["sum", "mean", "max", "min", "prod"])
    if op == "repeat":
        for fresh in rng.sample(["copies", "again"], rng.randint(1, 2)):
            size[fresh] = given[fresh] = rng.choice([1, 2, 3])
            right.insert(rng.randint(0, len(right)), fresh)
    right = groups(rng, right)
    if dots and not (op == "reduce" and rng.random() < 0.4):
        right.insert(rng.randint(0, len(right)), rng.choice(["...", "...", "(...)"]))
    pattern = " ".join(left) + " -> " + " ".join(right)
    x = operand(shape, 0)
    if op == "rearrange":
        row(name, op, pattern, [x], given, einops.rearrange(x, pattern, **given))
    elif op == "repeat":
        row(name, op, pattern, [x], given, einops.repeat(x, pattern, **given))
    else:
        y = einops.reduce(x, pattern, reduction, **given)
        row(name, "reduce:" + reduction, pattern, [x], given, y, gradient=reduction in ("sum", "mean"))


def open_axis(x, axis, atom, size):
    """Replaces one axis by the axes of its atom's names; returns them."""
    if "+" in atom or "*" in atom:
        terms = []
        for term in atom.strip("()").split("+"):
            factors = sorted(term.strip().split("*"), key=lambda f: not f.isdigit())
            terms.append((int(factors[0]) if len(factors) == 2 else 1, factors[-1]))
        index = torch.tensor([sum(c * i for (c, _), i in zip(terms, places)) for places in itertools.product(*[range(size[n]) for _, n in terms])])
        names = [n for _, n in terms]
        x = x.index_select(axis, index)
    else:
        names = [n for n in atom.strip("()").split() if n != "1"]
    shape = list(x.shape)
    return x.reshape(shape[:axis] + [size[n] for n in names] + shape[axis + 1:]), names


def einsum_reference(pattern, xs, size):
    left, right = [side.strip() for side in pattern.split("->")]
    letter = {}
    terms, opened = [], []
    for x, term in zip(xs, left.split(",")):
        atoms = split_atoms(term)
        labels, axis = [], 0
        fixed = sum(a != "..." for a in atoms)
        for a in atoms:
            if a == "...":
                depth = x.dim() - axis - sum(1 for b in atoms[atoms.index("...") + 1:])
                labels += [f"dots{depth - 1 - k}" for k in range(depth)]
                axis += depth
            else:
                x, names = open_axis(x, axis, a, size)
                labels += names
                axis += len(names)
        for n in labels:
            letter.setdefault(n, LETTERS[len(letter)])
        terms.append("".join(letter[n] for n in labels))
        opened.append(x)
    dots = sorted((n for n in letter if n.startswith("dots")), key=lambda n: -int(n[4:]))
    out_atoms, out_labels = split_atoms(right), []
    shape_plan = []
    for a in out_atoms:
        names = []
        for n in a.strip("()").split() if a != "..." else ["..."]:
            names += dots if n == "..." else [] if n == "1" else [n]
        shape_plan.append((a == "...", names))
        out_labels += names
    y = torch.einsum(",".join(terms) + "->" + "".join(letter[n] for n in out_labels), *opened)
    lengths = dict(zip(out_labels, y.shape))
    shape = []
    for is_dots, names in shape_plan:
        if is_dots:
            shape += [lengths[n] for n in names]
        else:
            n = 1
            for m in names:
                n *= lengths[m]
            shape.append(n)
    return y.reshape(shape)


def split_atoms(term):
    atoms, depth = [], 0
    for word in term.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            depth += 1
            atoms.append("(")
        elif word == ")":
            depth -= 1
            atoms[-1] = atoms[-1].strip() + ")"
        elif depth:
            atoms[-1] += word + " "
        else:
            atoms.append(word)
    return ["1" if a == "()" else a for a in atoms]


def einsum(rng, name):
    names = rng.sample(NAMES, rng.randint(2, 7))
    size = {n: rng.choice([1, 2, 3, 4]) for n in names}
    count = rng.choice([1, 2, 2, 2, 3, 4])
    dots = [rng.choice([1, 2, 3]) for _ in range(2)] if rng.random() < 0.3 else None
    terms, shapes, used, given = [], [], [], {}
    some_dots = False
    for _ in range(count):
        mine = rng.sample(names, rng.randint(0 if count > 1 else 1, min(4, len(names))))
        if mine and rng.random() < 0.2:
            mine.insert(rng.randint(0, len(mine)), rng.choice(mine))
        used += mine
        atoms = groups(rng, mine) if rng.random() < 0.3 else list(mine)
        if any(a.startswith("(") and len(set(a.strip("()").split())) != len(a.strip("()").split()) for a in atoms):
            atoms = list(mine)
        shape = sizes_of(atoms, size)
        for a in atoms:
            if a.startswith("("):
                for n in a.strip("()").split():
                    if n != "1":
                        given[n] = size[n]
        if dots and rng.random() < 0.7:
            depth = rng.randint(0, 2)
            place = rng.randint(0, len(atoms))
            atoms.insert(place, "...")
            shape = shape[:place] + dots[2 - depth:] + shape[place:]
            some_dots = True
        terms.append(" ".join(atoms))
        shapes.append(shape)
    out = rng.sample(sorted(set(used)), rng.randint(0, min(4, len(set(used)))))
    out = groups(rng, out) if rng.random() < 0.25 else out
    if some_dots and rng.random() < 0.8:
        out.insert(rng.randint(0, len(out)), "...")
    pattern = ", ".join(terms) + " -> " + " ".join(out)
    xs = [operand(s, t) for t, s in enumerate(shapes)]
    row(name, "einsum", pattern, xs, given, einsum_reference(pattern, xs, size))


WINDOWS = [
    # pattern, shapes, sizes of all names, sizes to give
    ("b (y + ky) (z + kz) c, ky kz c o -> b y z o", [(2, 6, 5, 3), (3, 2, 3, 4)], dict(b=2, y=4, z=4, ky=3, kz=2, c=3, o=4), {}),
    ("b (2*y + ky) (z*2 + kz) c, ky kz c o -> b y z o", [(2, 8, 7, 2), (3, 2, 2, 3)], dict(b=2, y=3, z=3, ky=3, kz=2, c=2, o=3), {}),
    ("b (2*y + 3*ky) c, ky c o -> b o y", [(1, 12, 2), (3, 2, 2)], dict(b=1, y=3, ky=3, c=2, o=2), {}),
    ("b c (y + ky), c ky -> b c y", [(2, 3, 9), (3, 4)], dict(b=2, c=3, y=6, ky=4), {}),
    ("b (y + ky) c, b y o -> ky c o", [(2, 7, 2), (2, 5, 3)], dict(b=2, y=5, ky=3, c=2, o=3), {}),
    ("(3*y) z -> z y", [(8, 2)], dict(y=3, z=2), {}),
    ("(y + k + m), k, m -> y", [(9,), (3,), (2,)], dict(y=6, k=3, m=2), {}),
    ("b (y + ky) (g c), ky g c o -> b y (g o)", [(2, 5, 6), (2, 3, 2, 2)], dict(b=2, y=4, ky=2, g=3, c=2, o=2), {}),
    ("b (4*y + ky) -> b y", [(2, 12)], dict(b=2, y=3, ky=4), dict(ky=4)),
]


POOLS = [
    ("b (2*y + ky) c -> b y c", "max", (2, 9, 3), dict(b=2, y=4, ky=3, c=3), dict(ky=3)),
    ("b (2*y + ky) (2*z + kz) c -> b c y z", "mean", (2, 6, 5, 2), dict(b=2, y=3, z=2, ky=2, kz=2, c=2), dict(ky=2, kz=2)),
    ("(y + 2*k) c -> y", "sum", (9, 2), dict(y=5, k=3, c=2), dict(k=3)),
    ("b (3*y + ky) -> (b y)", "min", (2, 8), dict(b=2, y=2, ky=3), dict(ky=3)),
]


def pool(name, pattern, reduction, shape, size, given):
    x = operand(shape, 0)
    left, right = pattern.split("->")
    opened, labels = x, []
    for atom in split_atoms(left):
        opened, names = open_axis(opened, len(labels), atom, size)
        labels += names
    y = einops.reduce(opened, " ".join(labels) + " ->" + right, reduction)
    row(name, "reduce:" + reduction, pattern, [x], given, y, gradient=reduction in ("sum", "mean"))


def main():
    print("# Generated pattern cases\n\nWritten by make_generated.py; the format is that of cases.md.\n\n## generated\n")
    print("id | op | pattern | input shapes | axis sizes | expected | note\n--- | --- | --- | --- | --- | --- | ---")
    rng = random.Random(7)
    for i in range(60):
        single_operand(rng, f"GR{i}", "rearrange")
    for i in range(50):
        single_operand(rng, f"GD{i}", "reduce")
    for i in range(40):
        single_operand(rng, f"GP{i}", "repeat")
    for i in range(120):
        einsum(rng, f"GN{i}")
    for i, (pattern, shapes, size, given) in enumerate(WINDOWS):
        xs = [operand(s, t) for t, s in enumerate(shapes)]
        row(f"GW{i}", "einsum", pattern, xs, given, einsum_reference(pattern, xs, size))
    for i, (pattern, reduction, shape, size, given) in enumerate(POOLS):
        pool(f"GM{i}", pattern, reduction, shape, size, given)


main()
