# SPDX-License-Identifier: Apache-2.0
"""Models of text."""
import math

import torch
import torch.nn.functional as F

from .tensors import attention, cross_entropy


def rotary(x, base=10000.0):
    """[..., seq, d]: pairs (i, i + d/2) as complex numbers, turned."""
    seq, d = x.shape[-2:]
    angle = torch.outer(torch.arange(seq, dtype=x.dtype), base ** (-2 * torch.arange(d // 2, dtype=x.dtype) / d))
    turned = torch.complex(x[..., : d // 2], x[..., d // 2:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


def grouped_attention(t, path, x, groups, share, head, mask):
    batch, seq, embed = x.shape
    w_q = t.param(path + ".w_q", embed, groups, share, head)
    w_k = t.param(path + ".w_k", embed, groups, head)
    w_v = t.param(path + ".w_v", embed, groups, head)
    w_o = t.param(path + ".w_o", groups, share, head, embed)
    q = rotary((x @ w_q.reshape(embed, -1)).reshape(batch, seq, groups * share, head).transpose(1, 2))
    k = rotary((x @ w_k.reshape(embed, -1)).reshape(batch, seq, groups, head).transpose(1, 2))
    v = (x @ w_v.reshape(embed, -1)).reshape(batch, seq, groups, head).transpose(1, 2)
    mixed = attention(q, k.repeat_interleave(share, 1), v.repeat_interleave(share, 1), mask)
    return mixed.transpose(1, 2).reshape(batch, seq, -1) @ w_o.reshape(-1, embed)


def llama(t, batch=2, seq=6, vocab=11, layers=2, groups=2, share=2, head=4, ffn=12):
    embed = groups * share * head
    tokens, targets = t.ids("tokens", batch, seq, bound=vocab), t.ids("targets", batch, seq, bound=vocab)
    table, w_head = t.param("table", vocab, embed), t.param("w_head", embed, vocab)
    causal = torch.ones(seq, seq, dtype=torch.bool).tril()
    x = table[tokens]
    for i in range(layers):
        path = f"layer.{i}."
        x = x + grouped_attention(t, path + "attn", t.rms_norm(path + "attn_norm", embed)(x), groups, share, head, causal)
        x = x + t.swiglu(path + "mlp", embed, ffn)(t.rms_norm(path + "mlp_norm", embed)(x))
    logits = t.rms_norm("norm", embed)(x) @ w_head
    return {"logits": logits}, cross_entropy(logits, targets)


def mistral(t, batch=2, seq=7, window=3, vocab=9, layers=2, groups=2, share=2, head=4, embed=12, ffn=10):
    tokens, targets = t.ids("tokens", batch, seq, bound=vocab), t.ids("targets", batch, seq, bound=vocab)
    table = t.param("table", vocab, embed)
    seen = torch.ones(seq, seq, dtype=torch.bool).tril().triu(1 - window)
    x = table[tokens]
    for i in range(layers):
        path = f"layer.{i}."
        x = x + grouped_attention(t, path + "attention", t.rms_norm(path + "norm_1", embed)(x), groups, share, head, seen)
        x = x + t.swiglu(path + "mlp", embed, ffn)(t.rms_norm(path + "norm_2", embed)(x))
    logits = t.rms_norm("norm", embed)(x) @ table.T
    return {"logits": logits}, cross_entropy(logits, targets)


def bert(t, batch=3, seq=6, vocab=13, layers=2, heads=2, head=4):
    embed, hidden = heads * head, 2 * heads * head
    tokens, segment = t.ids("tokens", batch, seq, bound=vocab), t.ids("segment", batch, seq, bound=2)
    length = t.ids("length", batch, bound=4, first=3)
    targets, masked = t.ids("targets", batch, seq, bound=vocab), t.ids("masked", batch, seq, bound=2)
    words, positions, kinds = t.param("words", vocab, embed), t.param("positions", seq, embed), t.param("kinds", 2, embed)
    seen = (torch.arange(seq) < length[:, None])[:, None, None, :]
    x = t.layer_norm("ln", embed)(F.embedding(tokens, words) + positions + F.embedding(segment, kinds))
    for i in range(layers):
        path = f"layer.{i}."
        w_qkv, b_qkv = t.param(path + "attention.w_qkv", embed, 3, heads, head), t.param(path + "attention.b_qkv", 3, heads, head, scale=0.2)
        w_out, b_out = t.param(path + "attention.w_out", heads, head, embed), t.param(path + "attention.b_out", embed, scale=0.2)
        qkv = (x @ w_qkv.reshape(embed, -1) + b_qkv.reshape(-1)).reshape(batch, seq, 3, heads, head).permute(2, 0, 3, 1, 4)
        mixed = attention(qkv[0], qkv[1], qkv[2], seen).transpose(1, 2).reshape(batch, seq, embed)
        x = t.layer_norm(path + "ln_1", embed)(x + mixed @ w_out.reshape(-1, embed) + b_out)
        up = F.gelu(t.linear(path + "mlp.up", embed, hidden)(x))
        x = t.layer_norm(path + "ln_2", embed)(x + t.linear(path + "mlp.down", hidden, embed)(up))
    y = t.layer_norm("transform_ln", embed)(F.gelu(t.linear("transform", embed, embed)(x)))
    logits = y @ words.T + t.param("bias", vocab, scale=0.2)
    chosen = masked.bool()
    return {"logits": logits}, F.cross_entropy(logits[chosen], targets[chosen])


def t5(t, batch=2, source=5, target=4, vocab=11, layers=2, heads=2, head=4, hidden=12, embed=8, reach=2):
    text, length = t.ids("text", batch, source, bound=vocab), t.ids("length", batch, bound=3, first=3)
    before, wanted = t.ids("before", batch, target, bound=vocab), t.ids("wanted", batch, target, bound=vocab)
    table = t.param("table", vocab, embed)
    biases = {side: t.param(side + "_bias", 2 * reach + 1, heads) for side in ("encoder", "decoder")}

    def attend(path, x, memory, hidden_places, bias=0.0):
        def split(y, w):
            return (y @ w.reshape(embed, -1)).reshape(batch, -1, heads, head).transpose(1, 2)

        q, k = split(x, t.param(path + ".w_q", embed, heads, head)), split(memory, t.param(path + ".w_k", embed, heads, head))
        v = split(memory, t.param(path + ".w_v", embed, heads, head))
        weights = (q @ k.transpose(-1, -2) + bias).masked_fill(hidden_places, -math.inf).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(batch, -1, heads * head) @ t.param(path + ".w_o", heads, head, embed).reshape(-1, embed)

    def feed_forward(path, x):
        return F.relu(x @ t.param(path + ".w_up", embed, hidden)) @ t.param(path + ".w_down", hidden, embed)

    def bias(side, places):
        away = torch.arange(places)[None, :] - torch.arange(places)[:, None]  # key - query
        return F.embedding(away.clamp(-reach, reach) + reach, biases[side]).permute(2, 0, 1)

    padding = (torch.arange(source) >= length[:, None])[:, None, None, :]
    x = F.embedding(text, table)
    for i in range(layers):
        y = t.rms_norm(f"encoder_norm_1.{i}", embed)(x)
        x = x + attend(f"encoder.{i}", y, y, padding, bias("encoder", source))
        x = x + feed_forward(f"encoder.{i}", t.rms_norm(f"encoder_norm_2.{i}", embed)(x))
    memory = t.rms_norm("encoder_norm", embed)(x)

    future = torch.ones(target, target, dtype=torch.bool).triu(1)
    x = F.embedding(before, table)
    for i in range(layers):
        y = t.rms_norm(f"decoder_norm_1.{i}", embed)(x)
        x = x + attend(f"decoder.{i}", y, y, future, bias("decoder", target))
        x = x + attend(f"cross.{i}", t.rms_norm(f"decoder_norm_2.{i}", embed)(x), memory, padding)
        x = x + feed_forward(f"decoder.{i}", t.rms_norm(f"decoder_norm_3.{i}", embed)(x))
    logits = t.rms_norm("decoder_norm", embed)(x) @ table.T / math.sqrt(embed)
    return {"logits": logits}, cross_entropy(logits, wanted)


def linear_attention(t, batch=2, seq=6, vocab=9, layers=2, heads=2, head=4):
    """By the matrix of q k, masked: quadratic, the other way to the same numbers."""
    embed = heads * head
    tokens, targets = t.ids("tokens", batch, seq, bound=vocab), t.ids("targets", batch, seq, bound=vocab)
    table, positions = t.param("table", vocab, embed), t.param("positions", seq, embed)
    x = table[tokens] + positions
    for i in range(layers):
        path = f"layer.{i}."
        w_qkv, w_out = t.param(f"attention.{i}.w_qkv", embed, 3, heads, head), t.param(f"attention.{i}.w_out", heads, head, embed)
        qkv = (t.layer_norm(f"norm_1.{i}", embed)(x) @ w_qkv.reshape(embed, -1)).reshape(batch, seq, 3, heads, head).permute(2, 0, 3, 1, 4)
        q, k = F.elu(qkv[0]) + 1, F.elu(qkv[1]) + 1
        scores = (q @ k.transpose(-1, -2)).tril()
        mixed = (scores / scores.sum(-1, keepdim=True)) @ qkv[2]
        x = x + mixed.transpose(1, 2).reshape(batch, seq, embed) @ w_out.reshape(-1, embed)
        x = x + t.mlp(f"mlp.{i}", embed, 2 * embed)(t.layer_norm(f"norm_2.{i}", embed)(x))
    logits = t.layer_norm("norm", embed)(x) @ table.T
    return {"logits": logits}, cross_entropy(logits, targets)


def mixture_of_experts(t, batch=2, seq=5, embed=6, hidden=8, experts=4, top=2):
    """Token by token, only the experts chosen."""
    x, target = t.input("x", batch, seq, embed), t.input("target", batch, seq, embed)
    w_router = t.param("w_router", embed, experts)
    w_up, b_up = t.param("w_up", experts, embed, hidden), t.param("b_up", experts, hidden, scale=0.2)
    w_down = t.param("w_down", experts, hidden, embed)
    tokens = t.layer_norm("norm", embed)(x).reshape(-1, embed)
    liking = tokens @ w_router
    best, chosen = liking.topk(top, -1)
    weights = best.softmax(-1)
    rows, count = [], torch.zeros(experts)
    for token, row in enumerate(tokens):
        y = torch.zeros(embed)
        for place in range(top):
            e = chosen[token, place]
            count[e] += 1
            y = y + weights[token, place] * (F.gelu(row @ w_up[e] + b_up[e]) @ w_down[e])
        rows.append(y)
    y = x + torch.stack(rows).reshape(x.shape)
    balance = experts * (count / len(tokens) * liking.softmax(-1).mean(0)).sum()
    return {"y": y, "balance": balance}, F.mse_loss(y, target) + 0.1 * balance


def word2vec(t, batch=7, draws=3, vocab=17, embed=6):
    center, context = t.ids("center", batch, bound=vocab), t.ids("context", batch, bound=vocab)
    random = t.ids("random", batch, draws, bound=vocab)
    words, neighbours = t.param("words", vocab, embed), t.param("neighbours", vocab, embed)
    near = (words[center] * neighbours[context]).sum(-1)
    far = (words[center][:, None] * neighbours[random]).sum(-1)
    penalty = words.square().mean() + neighbours.square().mean()
    return {"near": near, "far": far}, -(F.logsigmoid(near) + F.logsigmoid(-far).sum(-1)).mean() + 0.01 * penalty


MODELS = [llama, mistral, bert, t5, linear_attention, mixture_of_experts, word2vec]
