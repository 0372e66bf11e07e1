# SPDX-License-Identifier: Apache-2.0
"""Models of images: [batch, height, width, channel]."""
import torch
import torch.nn.functional as F

from .tensors import attention, cross_entropy


def squares(image, patch):
    """[batch, patch, its pixels], by PyTorch's unfold, which puts channels first."""
    columns = F.unfold(image.permute(0, 3, 1, 2), patch, stride=patch)  # [batch, (channel y x), patch]
    batch, _, count = columns.shape
    return columns.reshape(batch, image.shape[-1], patch * patch, count).permute(0, 3, 2, 1).reshape(batch, count, -1)


def resnet(t, batch=3, height=8, width=6, channels=2, classes=4, c1=4, c2=8):
    image, label = t.input("image", batch, height, width, channels), t.ids("label", batch, bound=classes)
    states = {}

    def batch_norm(path, x):
        c = x.shape[-1]
        scale, shift = t.param(path + ".scale", c, scale=0.3, offset=1.0), t.param(path + ".shift", c, scale=0.2)
        mean, variance = t.state(path + ".running_mean", c), t.state(path + ".running_variance", c, scale=0.5, offset=1.0)
        y = F.batch_norm(x.permute(0, 3, 1, 2), mean, variance, scale, shift, training=True, momentum=0.1, eps=1e-5)
        states[path + ".running_mean"], states[path + ".running_variance"] = mean, variance  # changed in place
        return y.permute(0, 2, 3, 1)

    def conv(path, x, filters, stride=1):
        return t.conv(path, 3, x.shape[-1], filters, bias=False, stride=stride, padding=1)(x)

    h = F.relu(batch_norm("bn", conv("conv", image, c1)))
    y = F.relu(batch_norm("block_1.bn_1", conv("block_1.conv_1", h, c1)))
    h = F.relu(h + batch_norm("block_1.bn_2", conv("block_1.conv_2", y, c1)))
    y = F.relu(batch_norm("block_2.bn_1", conv("block_2.conv_1", h, c2, stride=2)))
    y = batch_norm("block_2.bn_2", conv("block_2.conv_2", y, c2))
    around = h[:, ::2, ::2] @ t.param("block_2.w_around", c1, c2)
    h = F.relu(batch_norm("block_2.bn_around", around) + y)
    logits = t.linear("head", c2, classes)(h.mean((1, 2)))
    return {"logits": logits}, cross_entropy(logits, label), states


def vit(t, batch=2, height=6, width=9, channels=2, patch=3, classes=5, layers=1, heads=2, head=4):
    embed, patches = heads * head, height * width // patch**2
    image, label = t.input("image", batch, height, width, channels), t.ids("label", batch, bound=classes)
    class_token, positions = t.param("class_token", embed), t.param("positions", patches + 1, embed)
    tokens = t.linear("patch", patch * patch * channels, embed)(squares(image, patch))
    x = torch.cat([class_token.expand(batch, 1, embed), tokens], 1) + positions
    for i in range(layers):
        path = f"layer.{i}."
        y = t.layer_norm(path + "ln_1", embed)(x)
        q, k, v = ((y @ t.param(path + f"attention.w_{name}", embed, heads, head).reshape(embed, -1)).reshape(batch, -1, heads, head)
                   .transpose(1, 2) for name in "qkv")
        mixed = attention(q, k, v).transpose(1, 2).reshape(batch, -1, embed)
        x = x + mixed @ t.param(path + "attention.w_out", heads, head, embed).reshape(-1, embed)
        x = x + t.mlp(path + "mlp", embed, 2 * embed)(t.layer_norm(path + "ln_2", embed)(x))
    logits = t.linear("head", embed, classes)(t.layer_norm("ln", embed)(x[:, 0]))
    return {"logits": logits}, cross_entropy(logits, label)


def unet(t, batch=2, height=8, width=8, channels=2, classes=3, c1=4, c2=6, c3=8):
    image, label = t.input("image", batch, height, width, channels), t.ids("label", batch, height, width, bound=classes)

    def twice(path, x, filters):
        x = F.silu(t.conv(path + ".conv_1", 3, x.shape[-1], filters, padding=1)(x))
        return F.silu(t.conv(path + ".conv_2", 3, filters, filters, padding=1)(x))

    def pool(x):
        return F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def rise(path, x, filters):
        kernel = t.param(path + ".kernel", 2, 2, x.shape[-1], filters)
        return F.conv_transpose2d(x.permute(0, 3, 1, 2), kernel.permute(2, 3, 0, 1), stride=2).permute(0, 2, 3, 1)

    top = twice("down_1", image, c1)
    middle = twice("down_2", pool(top), c2)
    bottom = twice("bottom", pool(middle), c3)
    h = twice("up_2", torch.cat([middle, rise("rise_2", bottom, c2)], -1), c2)
    h = twice("up_1", torch.cat([top, rise("rise_1", h, c1)], -1), c1)
    logits = h @ t.param("w_head", c1, classes) + t.param("b_head", classes, scale=0.2)
    return {"logits": logits}, cross_entropy(logits, label)


def ddpm(t, batch=2, height=5, width=4, channels=2, steps=10, filters=6, groups=2, half=3):
    image, noise = t.input("image", batch, height, width, channels), t.input("noise", batch, height, width, channels)
    step = t.ids("step", batch, bound=steps)
    left = torch.cumprod(1 - (0.01 + 0.3 * torch.arange(steps) / steps), 0)

    def norm(path, x):
        scale, shift = t.param(path + ".scale", filters, scale=0.3, offset=1.0), t.param(path + ".shift", filters, scale=0.2)
        return F.group_norm(x.permute(0, 3, 1, 2), groups, scale, shift, 1e-5).permute(0, 2, 3, 1)

    share = left[step][:, None, None, None]
    h = t.conv("first", 3, channels, filters, padding=1)(share.sqrt() * image + (1 - share).sqrt() * noise)
    y = t.conv("block.conv_1", 3, filters, filters, padding=1)(F.silu(norm("block.norm_1", h)))
    angle = step[:, None] * 100.0 ** (-torch.arange(half) / half)
    y = y + (F.silu(torch.cat([angle.sin(), angle.cos()], -1)) @ t.param("block.told.w", 2 * half, filters))[:, None, None]
    h = h + t.conv("block.conv_2", 3, filters, filters, padding=1)(F.silu(norm("block.norm_2", y)))
    guess = t.conv("last", 3, filters, channels, padding=1)(F.silu(h))
    return {"guess": guess}, F.mse_loss(guess, noise)


def mlp_mixer(t, batch=3, height=4, width=6, channels=3, patch=2, classes=5, layers=2, embed=8):
    patches = height * width // patch**2
    image, label = t.input("image", batch, height, width, channels), t.ids("label", batch, bound=classes)
    x = t.linear("patch", patch * patch * channels, embed)(squares(image, patch))
    for i in range(layers):
        path = f"layer.{i}."
        x = x + t.mlp(path + "tokens", patches, 2 * patches)(t.layer_norm(path + "norm_1", embed)(x).mT).mT
        x = x + t.mlp(path + "channels", embed, 2 * embed)(t.layer_norm(path + "norm_2", embed)(x))
    logits = t.linear("head", embed, classes)(t.layer_norm("norm", embed)(x).mean(1))
    return {"logits": logits}, cross_entropy(logits, label)


def convnext(t, batch=2, height=8, width=12, channels=3, classes=4, c1=6, c2=8):
    image, label = t.input("image", batch, height, width, channels), t.ids("label", batch, bound=classes)

    def block(path, x):
        c = x.shape[-1]
        kernel, bias = t.param(path + ".kernel", 5, 5, c, scale=0.3), t.param(path + ".bias", c, scale=0.2)
        mixed = F.conv2d(x.permute(0, 3, 1, 2), kernel.permute(2, 0, 1)[:, None], bias, padding=2, groups=c).permute(0, 2, 3, 1)
        return x + t.param(path + ".scale", c) * t.mlp(path + ".mlp", c, 4 * c)(t.layer_norm(path + ".norm", c)(mixed))

    h = block("block_1", t.layer_norm("stem_norm", c1)(t.conv("stem", 2, channels, c1, stride=2)(image)))
    h = block("block_2", t.conv("down", 2, c1, c2, stride=2)(t.layer_norm("down_norm", c1)(h)))
    logits = t.linear("head", c2, classes)(t.layer_norm("norm", c2)(h.mean((1, 2))))
    return {"logits": logits}, cross_entropy(logits, label)


def vae(t, batch=4, pixels=20, hidden=16, latent=3):
    image, noise = t.ids("image", batch, pixels, bound=2).double(), t.input("noise", batch, latent)
    h = torch.tanh(t.linear("encoder", pixels, hidden)(image))
    mu, log_variance = t.linear("mu", hidden, latent)(h), t.linear("log_variance", hidden, latent)(h)
    z = mu + torch.exp(0.5 * log_variance) * noise
    logits = t.linear("pixel", hidden, pixels)(torch.tanh(t.linear("decoder", latent, hidden)(z)))
    reconstruction = F.binary_cross_entropy_with_logits(logits, image, reduction="sum") / batch
    seen = torch.distributions.Normal(mu, torch.exp(0.5 * log_variance))
    divergence = torch.distributions.kl_divergence(seen, torch.distributions.Normal(torch.zeros(latent), torch.ones(latent))).sum() / batch
    return {"logits": logits, "reconstruction": reconstruction, "divergence": divergence}, reconstruction + divergence


MODELS = [resnet, vit, unet, ddpm, mlp_mixer, convnext, vae]
