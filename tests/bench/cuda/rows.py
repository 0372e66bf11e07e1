# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench cuda measures, the most telling first. `tiny`: sizes for the emulated GPU, where only the way through counts."""
import dataclasses
import pathlib

PROGRAMS = pathlib.Path(__file__).parent / "programs"
GPT2 = PROGRAMS.parents[3] / "examples/gpt2.ein"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    program: pathlib.Path
    dims: dict
    tiny: dict
    unit: str  # of the rate: tokens, flops or bytes a second; or seconds to start
    work: object  # of a step, by the dims: tokens, FLOPs or bytes
    peer: tuple = ()  # kind of the PyTorch worker, and its settings besides the dims
    mode: str = "inference"
    precision: str = ""
    minus: str = ""  # a row whose time is not of this one's (the forward, of a backward)
    goals: tuple = ()  # of rate, peak (share of the measured peak), mfu, ratio (peer's time over ours) or seconds: (what, at least or at most)
    steps: int = 20
    attends: bool = False  # also measured with the attention plug-in, where there is one


def gpt2(name, batch, goals, peer=("gpt2",), **dims):
    return Row(name, GPT2, {"batch": batch, "seq": 1024, "vocab": 50304, **dims},
               {"batch": 2, "seq": 8, "vocab": 16, "layers": 1, "heads": 2, "head": 8}, "tokens", lambda d: d["batch"] * d["seq"],
               peer, "training", "bf16", goals=goals, steps=10, attends=True)


def attention_flops(d):
    return 2 * d["batch"] * d["heads"] * d["groups"] * d["seq"] ** 2 * d["head"]  # two products of the causal half


def attention(seq, head, heads, groups=1):
    dims = {"batch": max(1, 16384 // seq), "heads": heads, "groups": groups, "seq": seq, "head": head}
    tiny = {"batch": 1, "heads": 1, "groups": groups, "seq": 16, "head": 64}
    of = f"attention S={seq} d={head}" + (f" {heads * groups}:{heads} heads" if groups > 1 else "")
    goal = (("ratio to flash", 0.8),)
    return [Row(of + ", forward", PROGRAMS / "attention.ein", dims, tiny, "flops", attention_flops, ("attention", "forward"), goals=goal, attends=True),
            Row(of + ", backward", PROGRAMS / "attention_step.ein", dims, tiny, "flops", lambda d: 2.5 * attention_flops(d),
                ("attention", "backward"), minus=of + ", forward", goals=goal, attends=True)]


def product(m, n, k, kind="nn", goal=("ratio", 0.95), **extra):
    return Row(f"product {m} x {n} x {k} {kind}", PROGRAMS / f"product_{kind}.ein", {"m": m, "n": n, "k": k}, {"m": 32, "n": 16, "k": 32}, "flops",
               lambda d: 2 * d["m"] * d["n"] * d["k"], ("product", kind), goals=(goal,), **extra)


def rows_of(name, tensors, goal, peer):
    return Row(name, PROGRAMS / f"{peer}.ein", {"rows": 65536, "cols": 4096}, {"rows": 5, "cols": 64}, "bytes",
               lambda d: 2 * tensors * d["rows"] * d["cols"], (peer,), goals=(("peak", goal),))


def start(name, most):
    row = gpt2(name, 16, (("seconds", most),), ())
    return dataclasses.replace(row, unit="seconds", steps=1, attends=False)


ROWS = [
    start("cold start of GPT-2's step", 5), start("warm start of GPT-2's step", 0.5),
    gpt2("GPT-2 124M, batch 16", 16, (("ratio", 1.15), ("rate", 475e3))),
    *attention(1024, 64, 12), product(16384, 3072, 768), product(16384, 768, 3072),
    rows_of("softmax forward", 2, 0.9, "softmax"), rows_of("layer norm forward", 2, 0.9, "layer_norm"),
    rows_of("layer norm backward", 3, 0.8, "layer_norm_backward"),
    Row("AdamW of 124M", PROGRAMS / "adamw.ein", {"n": 124439808}, {"n": 999}, "bytes", lambda d: 28 * d["n"], ("adamw",), goals=(("peak", 0.9),)),
    gpt2("GPT-2 1.5B, batch 8", 8, (("mfu", 0.5),), (), layers=48, heads=25),
    product(8192, 8192, 8192), product(8192, 8192, 8192, "fp8", ("ratio to bf16", 1.0)),
    gpt2("GPT-2 124M, batch 32", 32, (("ratio", 1.15), ("rate", 475e3)), ("gpt2", "brief")),
    rows_of("softmax backward", 3, 0.8, "softmax_backward"), rows_of("RMS norm forward", 2, 0.9, "rms_norm"),
    rows_of("RMS norm backward", 3, 0.8, "rms_norm_backward"), product(16384, 50304, 768, "nt"), product(768, 3072, 16384, "tn"),
    *attention(4096, 128, 16), *attention(2048, 128, 8, groups=8), *attention(16384, 64, 12),
]
