# SPDX-License-Identifier: Apache-2.0
"""An einc block inside a PyTorch model: trained by torch's optimizer, checked against the same block in torch, and timed beside it.

    python examples/python/torch_block.py [--steps 100] [--embed 256]
"""

import argparse
import time
from pathlib import Path

import torch

import einc.torch

BLOCK = Path(__file__).with_name("block.ein")


class TorchBlock(torch.nn.Module):
    """The same in torch, on the einc block's parameters."""

    def __init__(self, block: einc.torch.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = dict(self.block.named_parameters())
        width = x.shape[-1:]
        h = torch.nn.functional.layer_norm(x, width, p["ln_1.scale"], p["ln_1.shift"])
        q, k, v = (torch.einsum("bse,ehd->bhsd", h, p[f"attn.{name}"]) for name in ("w_q", "w_k", "w_v"))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + torch.einsum("bhsd,hde->bse", mixed, p["attn.w_o"])
        h = torch.nn.functional.layer_norm(x, width, p["ln_2.scale"], p["ln_2.shift"])
        return x + torch.nn.functional.gelu(h @ p["mlp.w_up"]) @ p["mlp.w_down"]


class Model(torch.nn.Module):
    """Which of the tokens so far came first: a table, a block, a product with the table."""

    def __init__(self, block: torch.nn.Module, embed: int, vocab: int, seq: int) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(vocab, embed)
        self.places = torch.nn.Parameter(torch.randn(seq, embed) * 0.02)
        self.block = block
        self.head = torch.nn.Linear(embed, vocab)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.tokens(ids) + self.places))


def train(model: Model, ids: torch.Tensor, steps: int) -> tuple[list[float], float]:
    """Losses, and the median of the seconds of a step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    target = ids[:, :1].expand_as(ids)
    losses, seconds = [], []
    for _ in range(steps):
        start = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, sorted(seconds)[len(seconds) // 2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--embed", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=128)
    options = parser.parse_args()

    results = {}
    for name in ("einc", "torch"):
        torch.manual_seed(0)
        block = einc.torch.Module(BLOCK, dims={"embed": options.embed}, seed=1)
        model = Model(block if name == "einc" else TorchBlock(block), options.embed, vocab=64, seq=options.seq)
        ids = torch.randint(64, (options.batch, options.seq))
        results[name] = train(model, ids, options.steps)
        losses, seconds = results[name]
        print(f"{name:>5}: loss {losses[0]:.4f}, after {options.steps} steps {losses[-1]:.4f}; {seconds * 1e3:.1f} ms a step")
    apart = max(abs(a - b) for a, b in zip(results["einc"][0], results["torch"][0]))
    print(f"losses at most {apart:.1e} apart")
    assert apart < 1e-2 and results["einc"][0][-1] < results["einc"][0][0]


if __name__ == "__main__":
    main()
