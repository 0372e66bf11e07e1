# SPDX-License-Identifier: Apache-2.0
"""Examples beside PyTorch: scripts/bench examples [--threads=N] [--rounds=N] [NAME...]. A measurement, not a test.

Each row is a training step of an example, in the sizes of its file, beside the same model written for PyTorch, eager, with inputs drawn
once (programs that draw their own draw in the step). Processes of their own, round by round; the least time of each."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[3]
EINC = ROOT / "build/release/einc"


def digits(torch, batch):
    return torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))


def lstm(torch, nn, F):
    layer, head = nn.LSTM(2, 64, batch_first=True), nn.Linear(64, 1)
    time_of = torch.arange(50)

    def loss():
        lengths = torch.randint(40, 51, (64,))
        half = lengths // 2
        early, late = (torch.rand(64) * half).long(), half + (torch.rand(64) * half).long()
        marked = (time_of == early[:, None]) | (time_of == late[:, None])
        value = torch.rand(64, 50)
        x = nn.utils.rnn.pack_padded_sequence(torch.stack([value, marked.float()], -1), lengths, batch_first=True, enforce_sorted=False)
        return ((head(layer(x)[1][0][0])[:, 0] - (value * marked).sum(1))**2).mean()

    return [*layer.parameters(), *head.parameters()], loss, torch.optim.Adam, 1.0


def resnet(torch, nn, F):
    class Block(nn.Module):
        def __init__(self, c, filters, stride):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(c, filters, 3, stride, 1), nn.BatchNorm2d(filters), nn.ReLU(), nn.Conv2d(filters, filters, 3, 1, 1),
                                      nn.BatchNorm2d(filters))
            self.shortcut = nn.Sequential(nn.Conv2d(c, filters, 1, stride), nn.BatchNorm2d(filters)) if stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.body(x) + self.shortcut(x))

    model = nn.Sequential(nn.Conv2d(1, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    image, label = digits(torch, 32)
    return list(model.parameters()), lambda: F.cross_entropy(model(image), label), lambda p, lr: torch.optim.SGD(p, lr, 0.9, weight_decay=5e-4), None


def vit(torch, nn, F):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2, self.qkv, self.out = nn.LayerNorm(64), nn.LayerNorm(64), nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)
            self.up, self.down = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False)

        def forward(self, x):
            q, k, v = self.qkv(self.ln_1(x)).reshape(64, 17, 3, 4, 16).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(64, 17, 64))
            return x + self.down(F.gelu(self.up(self.ln_2(x))))

    blocks, patch, norm, head = nn.Sequential(*[Block() for _ in range(4)]), nn.Linear(49, 64), nn.LayerNorm(64), nn.Linear(64, 10)
    class_token, position = nn.Parameter(torch.randn(1, 64)), nn.Parameter(torch.randn(17, 64))
    image, label = digits(torch, 64)
    params = [p for m in (blocks, patch, norm, head) for p in m.parameters()] + [class_token, position]

    def loss():
        move = torch.randint(-3, 4, (2, 64))
        down, right = [(torch.arange(28) + m[:, None]).clamp(0, 27) for m in move]
        moved = image[torch.arange(64)[:, None, None], 0, down[:, :, None], right[:, None]]
        cut = moved.reshape(64, 4, 7, 4, 7).transpose(2, 3).reshape(64, 16, 49)
        h = blocks(torch.cat([class_token.expand(64, 1, 64), patch(cut)], 1) + position)
        return F.cross_entropy(head(norm(h[:, 0])), label)

    return params, loss, torch.optim.AdamW, 1.0


def moe(torch, nn, F):
    """The chosen pairs of each expert in a loop over experts, none dropped: what eager code usually does."""
    center, inner, outer = torch.randn(16, 16), torch.randn(16, 16, 16), torch.randn(16, 16, 16)
    router, up, down = [nn.Parameter(0.1 * torch.randn(*s)) for s in [(16, 16), (16, 16, 32), (16, 32, 16)]]

    def loss():
        kind = torch.randint(0, 16, (1024,))
        x = center[kind] + 0.5 * torch.randn(1024, 16)
        made = torch.einsum("bkh,kho->bko", torch.tanh(torch.einsum("bf,kfh->bkh", x, inner)), outer)
        target = made[torch.arange(1024), kind]
        liking = x @ router
        chosen = liking.argmax(1)
        y = torch.zeros_like(x)
        for e in range(16):
            rows = (chosen == e).nonzero()[:, 0]
            y = y.index_add(0, rows, F.gelu(x[rows] @ up[e]) @ down[e])
        share = torch.bincount(chosen, minlength=16) / 1024
        return ((y - target)**2).mean() + 0.01 * 16 * (share * liking.softmax(1).mean(0)).sum()

    return [router, up, down], loss, torch.optim.Adam, None


def graph(torch, nn, F):
    class Round(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.say, self.update = nn.LayerNorm(32), nn.Linear(32, 32, bias=False), nn.Linear(32, 32)

        def forward(self, h, sender, receiver):
            message = self.say(self.norm(h))
            heard = 0
            for source, target in [(sender, receiver), (receiver, sender)]:
                count = torch.bincount(target, minlength=512).clamp(min=1)
                heard = heard + torch.zeros_like(h).index_add(0, target, message[source]) / count[:, None]
            return h + self.update(F.gelu(heard))

    rounds, head = nn.ModuleList([Round() for _ in range(4)]), nn.Linear(32, 2)
    w, b = nn.Parameter(torch.randn(32)), nn.Parameter(torch.randn(32))
    community = torch.arange(512) % 2

    def loss():
        sender, same = torch.randint(0, 512, (2048,)), torch.rand(2048) < 0.85
        receiver = 2 * torch.randint(0, 256, (2048,)) + torch.where(same, sender % 2, 1 - sender % 2)
        told = torch.rand(512) < 0.1
        h = torch.where(told, 2 * community - 1, 0).float()[:, None] * w + b
        for r in rounds:
            h = r(h, sender, receiver)
        return F.cross_entropy(head(h), torch.where(told, -100, community))

    return [*rounds.parameters(), *head.parameters(), w, b], loss, torch.optim.Adam, 1.0


def diffusion(torch, nn, F):
    class Block(nn.Module):
        def __init__(self, c, filters):
            super().__init__()
            self.norm1, self.conv1, self.time = nn.GroupNorm(4, c), nn.Conv2d(c, filters, 3, 1, 1), nn.Linear(64, filters)
            self.norm2, self.conv2, self.shortcut = nn.GroupNorm(4, filters), nn.Conv2d(filters, filters, 3, 1, 1), nn.Conv2d(c, filters, 1)

        def forward(self, x, e):
            h = self.conv1(F.silu(self.norm1(x))) + self.time(e)[:, :, None, None]
            return self.conv2(F.silu(self.norm2(h))) + self.shortcut(x)

    net = nn.ModuleDict({"time": nn.Linear(64, 64), "enter": nn.Conv2d(1, 16, 3, 1, 1), "high": Block(16, 16), "down1": nn.Conv2d(16, 32, 2, 2),
                         "middle": Block(32, 32), "down2": nn.Conv2d(32, 32, 2, 2), "low": Block(32, 32), "up1": nn.ConvTranspose2d(32, 32, 2, 2),
                         "middle_up": Block(64, 32), "up2": nn.ConvTranspose2d(32, 16, 2, 2), "high_up": Block(32, 16), "norm": nn.GroupNorm(4, 16),
                         "leave": nn.Conv2d(16, 1, 3, 1, 1)})
    image, _ = digits(torch, 32)

    def loss():
        time_of, noise = torch.rand(32), torch.randn(32, 1, 28, 28)
        left = (torch.cos(1.5 * time_of)**2)[:, None, None, None]
        x = left.sqrt() * image + (1 - left).sqrt() * noise
        angle = 1000 * time_of[:, None] * 10000**(-torch.arange(32) / 32)
        e = F.silu(net["time"](torch.cat([angle.sin(), angle.cos()], 1)))
        high = net["high"](net["enter"](x), e)
        middle = net["middle"](net["down1"](high), e)
        low = net["low"](net["down2"](middle), e)
        middle = net["middle_up"](torch.cat([net["up1"](low), middle], 1), e)
        high = net["high_up"](torch.cat([net["up2"](middle), high], 1), e)
        return ((net["leave"](F.silu(net["norm"](high))) - noise)**2).mean()

    return list(net.parameters()), loss, torch.optim.Adam, 1.0


PEERS = {f.__name__: f for f in (lstm, resnet, vit, moe, graph, diffusion)}


def torch_seconds(name, threads, repeats):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    params, loss, make, clip = PEERS[name](torch, nn, F)
    optimizer = make(params, lr=1e-3)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        if clip:
            nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()

    for _ in range(5):
        step()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def our_seconds(name, threads, repeats):
    done = subprocess.run([EINC, "bench", ROOT / f"examples/{name}.ein", "--json", "--discard-outputs", f"--threads={threads}", f"--steps={repeats}"],
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return min(json.loads(done.stdout)["steps_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--torch", metavar="NAME", help="only PyTorch's seconds of one example")
    a = parser.parse_args()
    if a.torch:
        return print(torch_seconds(a.torch, a.threads, a.repeats))
    for name in a.names or PEERS:
        ours, theirs = [], []
        for _ in range(a.rounds):
            ours.append(our_seconds(name, a.threads, a.repeats))
            peer = subprocess.run([sys.executable, __file__, "--torch", name, f"--threads={a.threads}", f"--repeats={a.repeats}"], check=True,
                                  capture_output=True, text=True)
            theirs.append(float(peer.stdout))
        print(f"{name:12} einc {1e3 * min(ours):8.3f} ms   PyTorch {1e3 * min(theirs):8.3f} ms   {min(theirs) / min(ours):5.2f} times", flush=True)


if __name__ == "__main__":
    main()
