# Writes reference.txt: five steps of each of PyTorch's optimizers in float64 on a small model, as "case: w..., b..." lines.
# Run with a Python that has torch; the numbers are kept in the repository.
import math, sys, torch

def run(make, decay, clip=None, schedule=None):
    torch.set_default_dtype(torch.float64)
    w = torch.tensor([[0.5, -0.3], [0.1, 0.7], [-0.2, 0.4]], requires_grad=True)
    b = torch.tensor([0.05, -0.1], requires_grad=True)
    x = torch.tensor([1.0, -2.0, 0.5])
    opt = make([{"params": [w], "weight_decay": decay}, {"params": [b], "weight_decay": 0.0}])
    for t in range(5):
        if schedule:
            for g in opt.param_groups: g["lr"] = schedule(t)
        opt.zero_grad()
        y = x @ w + b
        loss = (y ** 2).mean() + torch.sin(w).sum()
        loss.backward()
        if clip: torch.nn.utils.clip_grad_norm_([w, b], clip)
        opt.step()
    return list(w.flatten().tolist()) + b.tolist()

def cosine(peak, warmup, total, floor):
    def lr(t):
        if t < warmup: return peak * (t + 1) / warmup
        if t >= total: return floor
        return floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * (t - warmup) / (total - warmup)))
    return lr

def linear(peak, warmup, total, floor):
    def lr(t):
        if t < warmup: return peak * (t + 1) / warmup
        return peak + (floor - peak) * min(1, (t - warmup) / (total - warmup))
    return lr

o = torch.optim
cases = {
    "sgd(lr = 0.1)": run(lambda p: o.SGD(p, lr=0.1), 0),
    "sgd(lr = 0.1, weight_decay = 0.1)": run(lambda p: o.SGD(p, lr=0.1), 0.1),
    "momentum(lr = 0.1, momentum = 0.8)": run(lambda p: o.SGD(p, lr=0.1, momentum=0.8), 0),
    "adagrad(lr = 0.1)": run(lambda p: o.Adagrad(p, lr=0.1), 0),
    "rmsprop(lr = 0.01, weight_decay = 0.1)": run(lambda p: o.RMSprop(p, lr=0.01), 0.1),
    "adam()": run(lambda p: o.Adam(p), 0),
    "adam(lr = 0.1, betas = (0.8, 0.9), weight_decay = 0.1)": run(lambda p: o.Adam(p, lr=0.1, betas=(0.8, 0.9)), 0.1),
    "adamw()": run(lambda p: o.AdamW(p), 0.01),
    "adamw(lr = 0.1, eps = 1e-6, weight_decay = 0.2, clip_norm = 0.5)": run(lambda p: o.AdamW(p, lr=0.1, eps=1e-6), 0.2, 0.5),
    "adamw(lr = cosine(0.1, warmup = 2, total = 4, floor = 0.01))": run(lambda p: o.AdamW(p), 0.01, None, cosine(0.1, 2, 4, 0.01)),
    "sgd(lr = linear(0.1, warmup = 2, total = 8, floor = 0.01))": run(lambda p: o.SGD(p, lr=1), 0, None, linear(0.1, 2, 8, 0.01)),
    "sgd(lr = constant(0.1, warmup = 3))": run(lambda p: o.SGD(p, lr=1), 0, None, lambda t: 0.1 * min(1, (t + 1) / 3)),
}
with open(sys.argv[1], "w") as f:
    for name, values in cases.items(): f.write(name + " : " + " ".join(repr(v) for v in values) + "\n")
