# SPDX-License-Identifier: Apache-2.0
"""Models with a state that goes from place to place, and gates."""
import torch
import torch.nn.functional as F

from .tensors import cross_entropy


def lstm(t, batch=3, seq=5, vocab=7, hidden=6, layers=2):
    """By PyTorch's own LSTM: its weights are [gate unit, input], its gates in the same order."""
    tokens, targets = t.ids("tokens", batch, seq, bound=vocab), t.ids("targets", batch, seq, bound=vocab)
    table = t.param("table", vocab, hidden)
    x = table[tokens]
    for i in range(layers):
        path = f"layer.{i}."
        w_x, w_h = t.param(path + "w_x", hidden, 4, hidden), t.param(path + "w_h", hidden, 4, hidden)
        b, h0, c0 = t.param(path + "b", 4, hidden, scale=0.2), t.param(path + "h0", hidden), t.param(path + "c0", hidden)
        weights = {"weight_ih_l0": w_x.reshape(hidden, -1).T, "weight_hh_l0": w_h.reshape(hidden, -1).T, "bias_ih_l0": b.reshape(-1),
                   "bias_hh_l0": torch.zeros(4 * hidden)}
        start = tuple(s.expand(1, batch, hidden).contiguous() for s in (h0, c0))
        x, _ = torch.func.functional_call(torch.nn.LSTM(hidden, hidden, batch_first=True), weights, (x, start))
    logits = x @ t.param("w_head", hidden, vocab) + t.param("b_head", vocab, scale=0.2)
    return {"logits": logits}, cross_entropy(logits, targets)


def gru(t, batch=4, seq=5, features=3, hidden=8, classes=3):
    """By PyTorch's own GRU over series packed by their lengths."""
    x, length = t.input("x", batch, seq, features), t.ids("length", batch, bound=seq, first=1)
    label = t.ids("label", batch, bound=classes)
    w_x, w_h = t.param("w_x", features, 3, hidden), t.param("w_h", hidden, 3, hidden)
    b_x, b_h, h0 = t.param("b_x", 3, hidden, scale=0.2), t.param("b_h", 3, hidden, scale=0.2), t.param("h0", hidden)
    weights = {"weight_ih_l0": w_x.reshape(features, -1).T, "weight_hh_l0": w_h.reshape(hidden, -1).T, "bias_ih_l0": b_x.reshape(-1),
               "bias_hh_l0": b_h.reshape(-1)}
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False)
    start = h0.expand(1, batch, hidden).contiguous()
    _, last = torch.func.functional_call(torch.nn.GRU(features, hidden, batch_first=True), weights, (packed, start))
    logits = last[0] @ t.param("w_head", hidden, classes) + t.param("b_head", classes, scale=0.2)
    return {"last": last[0], "logits": logits}, cross_entropy(logits, label)


def mamba(t, batch=2, seq=5, vocab=9, layers=2, embed=8, inner=12, memory=3, rank=2, taps=3):
    """The state as the sum of all that entered, each times the product of the decays since: no recurrence."""
    tokens, targets = t.ids("tokens", batch, seq, bound=vocab), t.ids("targets", batch, seq, bound=vocab)
    table = t.param("table", vocab, embed)
    x = table[tokens]
    for i in range(layers):
        path = f"layer.{i}."
        w_in = t.param(path + "w_in", embed, 2, inner)
        kernel, b_kernel = t.param(path + "kernel", taps, inner), t.param(path + "b_kernel", inner, scale=0.2)
        w_rank, w_delta = t.param(path + "w_rank", inner, rank), t.param(path + "w_delta", rank, inner)
        b_delta = t.param(path + "b_delta", inner, scale=0.2)
        w_enter, w_read = t.param(path + "w_enter", inner, memory), t.param(path + "w_read", inner, memory)
        log_decay, w_past = t.param(path + "log_decay", inner, memory), t.param(path + "w_past", inner, scale=0.3, offset=1.0)
        w_out = t.param(path + "w_out", inner, embed)
        into, gate = (t.rms_norm(f"norm.{i}", embed)(x) @ w_in.reshape(embed, -1)).chunk(2, -1)
        u = F.conv1d(F.pad(into.transpose(1, 2), (taps - 1, 0)), kernel.T[:, None, :], b_kernel, groups=inner)
        u = F.silu(u.transpose(1, 2))
        delta = F.softplus(u @ w_rank @ w_delta + b_delta)
        enters = (delta * u)[..., None] * (u @ w_enter)[:, :, None, :]
        so_far = torch.cumsum(-delta[..., None] * log_decay.exp(), 1)  # [batch seq inner memory]
        since = (so_far[:, :, None] - so_far[:, None]).masked_fill(torch.ones(seq, seq).triu(1).bool()[:, :, None, None], -torch.inf)
        states = (since.exp() * enters[:, None]).sum(2)
        y = (states * (u @ w_read)[:, :, None, :]).sum(-1) + u * w_past
        x = x + (y * F.silu(gate)) @ w_out
    logits = t.rms_norm("norm", embed)(x) @ table.T
    return {"logits": logits}, cross_entropy(logits, targets)


def highway(t, batch=5, features=10, width=16, layers=3, classes=4):
    x, label = t.input("x", batch, features), t.ids("label", batch, bound=classes)
    h = t.linear("first", features, width)(x)
    for i in range(layers):
        candidate = F.relu(t.linear(f"layer.{i}.candidate", width, width)(h))
        gate = torch.sigmoid(t.linear(f"layer.{i}.gate", width, width)(h))
        h = torch.lerp(h, candidate, gate)
    logits = t.linear("head", width, classes)(h)
    return {"logits": logits}, cross_entropy(logits, label)


def gated(t, batch=6, features=7, width=16, hidden=24, narrow=4):
    x, target = t.input("x", batch, features), t.input("target", batch, width)

    def channel_gate(path, x):
        return torch.sigmoid((x @ t.param(path + ".w_squeeze", width, narrow)) @ t.param(path + ".w_excite", narrow, width))

    h = torch.tanh(t.linear("first", features, width)(x))
    first_gate = channel_gate("squeeze", h)
    h = h * first_gate
    w_value, w_gate = t.param("glu.w_value", width, hidden), t.param("glu.w_gate", width, hidden)
    h = h + F.glu(torch.cat([h @ w_value, h @ w_gate], -1)) @ t.param("glu.w_out", hidden, width)
    gate, value = (h @ t.param("geglu.w_both", width, 2, hidden).reshape(width, -1)).chunk(2, -1)
    h = h + (F.gelu(gate) * value) @ t.param("geglu.w_out", hidden, width)
    last_gate = channel_gate("squeeze_again", h)
    y = h * last_gate
    return {"first_gate": first_gate, "last_gate": last_gate, "y": y}, F.mse_loss(y, target)


MODELS = [lstm, gru, mamba, highway, gated]
