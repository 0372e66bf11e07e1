# SPDX-License-Identifier: Apache-2.0
"""Graphs, tables, pairs."""
import torch
import torch.nn.functional as F

from .tensors import attention, cross_entropy


def graph_net(t, nodes=7, edges=12, features=3, kinds=4, hidden=8, rounds=2):
    node, kind = t.input("node", nodes, features), t.ids("kind", edges, bound=kinds)
    sender, receiver = t.ids("sender", edges, bound=nodes), t.ids("receiver", edges, bound=nodes)
    target = t.input("target")
    w_node, edge_table = t.param("w_node", features, hidden), t.param("edge_table", kinds, hidden)
    h, edge = node @ w_node, edge_table[kind]
    for i in range(rounds):
        w_from, w_to, w_kept, w_sum = (t.param(f"round.{i}.w_{name}", hidden, hidden) for name in ("from", "to", "kept", "sum"))
        message = F.silu(h[sender] @ w_from + h[receiver] @ w_to + edge)
        arrived = torch.zeros(nodes, hidden).index_add(0, receiver, message)
        h = torch.lerp(torch.tanh(arrived @ w_sum), h, torch.sigmoid(h @ w_kept))
    energy = (h @ t.param("w_head", hidden)).sum()
    return {"last": h, "energy": energy}, (energy - target).square()


def triplet(t, batch=8, items=15, features=12, embed=6):
    table, w = t.param("table", items, features), t.param("w", features, embed)
    a, p, n = (F.normalize(torch.tanh(table[t.ids(name, batch, bound=items)] @ w), eps=0, dim=-1) for name in ("anchor", "positive", "negative"))
    near, far = (a - p).square().sum(-1), (a - n).square().sum(-1)
    return {"distance": torch.stack([near, far])}, F.relu(near - far + 0.5).mean() + 0.01 * table.square().mean()


def clip(t, batch=4, patches=4, pixels=5, seq=3, vocab=11, width=8, embed=6):
    image, caption = t.input("image", batch, patches, pixels), t.ids("caption", batch, seq, bound=vocab)
    table, positions = t.param("table", vocab, width), t.param("positions", seq, width)
    scale = t.param("log_scale", offset=1.0).exp()

    def tower(path, x):
        w_qkv, w_out = t.param(path + ".w_qkv", width, 3, width), t.param(path + ".w_out", width, width)
        q, k, v = (t.layer_norm(path + ".norm", width)(x) @ w_qkv.reshape(width, -1)).chunk(3, -1)
        return (x + attention(q, k, v) @ w_out).mean(1)

    seen = tower("vision", t.linear("patch", pixels, width)(image)) @ t.param("image_head.w", width, embed)
    read = tower("text", table[caption] + positions) @ t.param("text_head.w", width, embed)
    similarity = F.normalize(seen, dim=-1) @ F.normalize(read, dim=-1).T * scale
    partner = torch.arange(batch)
    return {"similarity": similarity}, (cross_entropy(similarity, partner) + cross_entropy(similarity.T, partner)) / 2


def dlrm(t, batch=5, dense=4, width=6, hidden=12, users=9, items=13, tags=7, bag=3):
    numbers, user, item = t.input("numbers", batch, dense), t.ids("user", batch, bound=users), t.ids("item", batch, bound=items)
    tag, click = t.ids("tag", batch, bag, bound=tags), t.ids("click", batch, bound=2).double()
    visit = F.relu(t.linear("bottom_2", hidden, width)(F.relu(t.linear("bottom_1", dense, hidden)(numbers))))
    vectors = torch.stack([visit, t.param("user.table", users, width)[user], t.param("item.table", items, width)[item],
                           F.embedding_bag(tag, t.param("tag.table", tags, width), mode="sum")], 1)
    below = torch.bmm(vectors, vectors.mT).tril(-1)
    joined = torch.cat([visit, below.reshape(batch, -1)], 1)
    logit = t.linear("top_2", hidden, 1)(F.relu(t.linear("top_1", width + 16, hidden)(joined)))[:, 0]
    return {"logit": logit}, F.binary_cross_entropy_with_logits(logit, click)


def perceiver(t, batch=2, inputs=9, features=5, latents=3, classes=4, turns=2, heads=2, head=3, width=8, hidden=12):
    x, label = t.input("x", batch, inputs, features), t.ids("label", batch, bound=classes)
    latent = t.param("latent", latents, width)
    weights = {name: [t.param(name + "_q", width, heads, head), t.param(name + "_kv", size, 2, heads, head),
                      t.param(name + "_out", heads, head, width)] for name, size in (("read", features), ("think", width))}
    w_up, w_down = t.param("w_up", width, hidden), t.param("w_down", hidden, width)

    def normed(x):
        return F.layer_norm(x, x.shape[-1:], eps=1e-5)

    def attend(z, x, w_q, w_kv, w_out):
        q = torch.einsum("blw,whd->bhld", normed(z), w_q)
        k, v = torch.einsum("bkc,cthd->tbhkd", normed(x), w_kv)
        return z + torch.einsum("bhld,hdw->blw", attention(q, k, v), w_out)

    z = latent.expand(batch, latents, width)
    for _ in range(turns):
        z = attend(z, x, *weights["read"])
        z = attend(z, z, *weights["think"])
        z = z + F.gelu(normed(z) @ w_up) @ w_down
    logits = t.linear("head", width, classes)(z.mean(1))
    return {"logits": logits}, cross_entropy(logits, label)


MODELS = [graph_net, triplet, clip, dlrm, perceiver]
