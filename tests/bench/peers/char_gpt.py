# SPDX-License-Identifier: Apache-2.0
"""The character-level GPT of examples/shakespeare_char.ein beside PyTorch.

  char_gpt.py time TEXT [--steps 2000] [--threads 2]     whole runs: einc in f32 and bf16, eager PyTorch, torch.compile; compile times apart
  char_gpt.py agree TEXT                                 the same weights and batches: ten steps in f64, 100 losses in f32

TEXT is tiny Shakespeare (input.txt of char-rnn). `agree` exits with 1 when a bound is broken: 1e-9 relative in f64; in f32 three
times the largest difference between PyTorch's own runs on one and two threads. PyTorch's model is functional and takes our tensors by
name; attention is scaled_dot_product_attention in f32 and written out in f64.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

EINC = "build/release/einc"
MODEL = "examples/shakespeare_char.ein"
LAYERS, HEADS, HEAD, VOCAB, SEQ, BATCH = 4, 4, 32, 65, 64, 12
WIDTH = HEADS * HEAD


def norm(x, scale):
    import torch.nn.functional as F

    return F.layer_norm(x, (WIDTH,), scale, None, 1e-5)


def loss_of(w, tokens, targets):
    import torch
    import torch.nn.functional as F

    x = w["wte"][tokens] + w["wpe"]
    rows = tokens.shape[0]
    for i in range(LAYERS):
        p = f"h.{i}."
        qkv = norm(x, w[p + "ln_1.scale"]) @ w[p + "attn.w_qkv"].reshape(WIDTH, -1)
        q, k, v = qkv.view(rows, SEQ, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        if x.dtype == torch.float64:
            scores = (q @ k.transpose(-1, -2)) / math.sqrt(HEAD)
            mask = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
            mixed = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(rows, SEQ, WIDTH) @ w[p + "attn.w_out"].reshape(WIDTH, WIDTH)
        up = F.gelu(norm(x, w[p + "ln_2.scale"]) @ w[p + "mlp.w_up"])
        x = x + up @ w[p + "mlp.w_down"]
    logits = norm(x, w["ln_f.scale"]) @ w["wte"].T
    return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def learning_rate(step, total=2000, high=1e-3, low=1e-4, warmup=100):
    if step < warmup:
        return high * (step + 1) / warmup
    if step >= total:
        return low
    return low + 0.5 * (high - low) * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


class Training:
    def __init__(self, weights, dtype, compiled=False):
        import torch

        self.w = {name: torch.tensor(value).to(dtype).requires_grad_() for name, value in weights.items()}
        decayed = [t for t in self.w.values() if t.dim() > 1]
        plain = [t for t in self.w.values() if t.dim() <= 1]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, fused=dtype == torch.float32)
        self.loss = torch.compile(loss_of) if compiled else loss_of
        self.done = 0

    def step(self, tokens, targets, rate=None):
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = rate or learning_rate(self.done)
        loss = self.loss(self.w, tokens, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.w.values(), 1.0)
        self.optimizer.step()
        self.done += 1
        return loss


def einc(*arguments):
    done = subprocess.run([EINC, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"einc {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def prepare(folder, text):
    at = lambda name: os.path.join(folder, name)
    einc("tokenize", text, "-o", at("train.bin"), "--kind", "chars", "--split", "0.9")
    return at


def log_lines(path, kind):
    with open(path) as lines:
        return [line for line in map(json.loads, lines) if line["kind"] == kind]


def windows(data, generator, rows):
    import torch

    start = torch.randint(len(data) - SEQ, (rows,), generator=generator)
    take = lambda shift: torch.stack([data[s + shift : s + shift + SEQ] for s in start])
    return take(0), take(1)


def time_runs(text, steps, threads):
    import numpy as np
    import torch
    from safetensors.numpy import load_file

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        at = prepare(folder, text)
        files = ["--data", f"tokens={at('train.bin')}", "--val", f"tokens={at('val.bin')}"]
        einc("train", MODEL, *files, "--steps", "0", "--save", at("first.safetensors"), "--quiet")
        ours = {}
        for precision in ("f32", "bf16"):
            log, start = at(f"{precision}.jsonl"), time.perf_counter()
            einc("train", MODEL, *files, "--steps", str(steps), "--eval-batches", "200", "--threads", str(threads), f"--precision={precision}",
                 "--log", log, "--quiet")
            whole = time.perf_counter() - start
            ours[precision] = log_lines(log, "end")[0]["step_seconds"]
            loss = log_lines(log, "evaluation")[-1]["validation_loss"]
            print(f"{'einc ' + precision:14} {ours[precision]:7.1f} s  validation loss {loss:.4f}  (the whole process {whole:.1f} s, compilation "
                  "and evaluation in it)", flush=True)
        weights = load_file(at("first.safetensors"))
        data = [torch.from_numpy(np.fromfile(at(name), dtype=np.uint16).astype(np.int64)) for name in ("train.bin", "val.bin")]
    seconds = {}
    for name, compiled in (("eager", False), ("torch.compile", True)):
        generator = torch.Generator().manual_seed(0)
        start = time.perf_counter()
        warm = Training(weights, torch.float32, compiled)
        warm.step(*windows(data[0], generator, BATCH))
        first = time.perf_counter() - start
        run = Training(weights, torch.float32)
        run.loss = warm.loss
        start = time.perf_counter()
        for _ in range(steps):
            run.step(*windows(data[0], generator, BATCH))
        seconds[name] = time.perf_counter() - start
        with torch.no_grad():
            losses = [loss_of(run.w, *windows(data[1], generator, BATCH)).item() for _ in range(200)]
        print(f"{name:14} {seconds[name]:7.1f} s  validation loss {sum(losses) / len(losses):.4f}  (first step {first:.1f} s)")
    print(f"PyTorch {torch.__version__}, {threads} threads; f32; the faster takes {min(seconds.values()) / ours['f32']:.2f} x einc's time, "
          f"{min(seconds.values()) / ours['bf16']:.2f} x that in bf16")


def torch_losses(weights, batches, rates, dtype, threads):
    import torch

    torch.set_num_threads(threads)
    run = Training(weights, dtype)
    take = lambda name, n: torch.from_numpy(batches[name][n]).long()
    return [run.step(take("tokens", n), take("targets", n), rate).item() for n, rate in enumerate(rates)], run.w


def agree(text):
    import numpy as np
    import torch
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        at = prepare(folder, text)
        with open(MODEL) as model, open(at("f64.ein"), "w") as wide:
            wide.write(re.sub(r"(param \w+:\s*)\[", r"\1f64[", model.read()))
        common = ["--data", f"tokens={at('train.bin')}", "--log-every", "1", "--quiet", "--seed", "7"]
        einc("train", MODEL, *common, "--steps", "0", "--save", at("first.safetensors"))
        einc("train", MODEL, *common, "--steps", "100", "--log", at("f32.jsonl"), "--record-batches", at("batches.npz"))
        begin = ["--weights", at("first.safetensors"), "--save", at("last.safetensors")]
        einc("train", at("f64.ein"), *common, "--steps", "10", "--log", at("f64.jsonl"), *begin)
        weights, last = load_file(at("first.safetensors")), load_file(at("last.safetensors"))
        batches = dict(np.load(at("batches.npz")))
        lines = log_lines(at("f32.jsonl"), "step")
        ours32, rates = [line["loss"] for line in lines], [line["learning_rate"] for line in lines]
        ours64 = [line["loss"] for line in log_lines(at("f64.jsonl"), "step")]
    # Schedules are f32 numbers in einc whatever the params are.
    off = max(abs(rate - learning_rate(n)) / learning_rate(n) for n, rate in enumerate(rates))
    theirs64, w = torch_losses(weights, batches, rates[:10], torch.float64, 1)
    error64 = max(abs(a - b) / abs(b) for a, b in zip(ours64, theirs64))
    moved = max(float(np.abs(last[n] - w[n].detach().numpy()).max()) for n in last)
    print(f"f64: ten losses agree to {error64:.1e}, params after them to {moved:.1e} (bound 1e-9)")
    one, _ = torch_losses(weights, batches, rates, torch.float32, 1)
    two, _ = torch_losses(weights, batches, rates, torch.float32, 2)
    spread = max(abs(a - b) for a, b in zip(one, two))
    error32 = max(abs(a - b) for a, b in zip(ours32, one))
    print(f"learning rates agree to {off:.1e}, as f32 does")
    print(f"f32: 100 losses differ by {error32:.1e}; PyTorch's own on one and two threads by {spread:.1e} (bound three times that)")
    return len(ours32) == 100 and off <= 1e-7 and max(error64, moved) <= 1e-9 and error32 <= 3 * spread


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["time", "agree"])
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.what == "agree":
        sys.exit(0 if agree(arguments.text) else 1)
    time_runs(arguments.text, arguments.steps, arguments.threads)


if __name__ == "__main__":
    main()
