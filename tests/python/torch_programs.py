# SPDX-License-Identifier: Apache-2.0
"""Random programs with their values and gradients by PyTorch.

The random programs of tests/fuzz are checked against einc's own interpreter and finite differences, which read them through einc's own
front end. What that takes for the meaning of a program, they take too. Here each operation is written twice, as text of the language and
as PyTorch computes it, from the language's reference alone: axes that align by name, patterns, windows, slices, gathers, segments,
recurrences, and derivatives by params and by values in between, of first and second order.
"""

import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2}
MOST_ELEMENTS, MOST_AXES = 3000, 4
LARGEST = 6.0  # larger values go through tanh, so that no chain of operations runs away


@dataclass(frozen=True, eq=False)
class Value:
    name: str
    axes: tuple
    tensor: torch.Tensor

    def size(self, axis):
        return self.tensor.shape[self.axes.index(axis)]

    def place(self, axis):
        return self.axes.index(axis)

    def on(self, frame):
        """With the axes of `frame`: permuted, and of size 1 where it has none of that name."""
        tensor = self.tensor.permute([self.place(axis) for axis in frame if axis in self.axes])
        for i, axis in enumerate(frame):
            if axis not in self.axes:
                tensor = tensor.unsqueeze(i)
        return tensor


def frame_of(*values):
    """The axes of an elementwise result: those of the first operand that has all, else in order of appearance."""
    every = list(dict.fromkeys(axis for value in values for axis in value.axes))
    return next((list(value.axes) for value in values if set(value.axes) == set(every)), every)


def renamed(axes, old, new):
    return [new if axis == old else axis for axis in axes]


def without(axes, gone):
    return [axis for axis in axes if axis != gone]


def joined(*groups):
    return " ".join(" ".join(group) for group in groups if group)


UNARY = {
    "tanh({x})": torch.tanh,
    "sin({x})": torch.sin,
    "cos({x})": torch.cos,
    "exp(0.3 * {x})": lambda t: torch.exp(0.3 * t),
    "expm1(0.3 * {x})": lambda t: torch.expm1(0.3 * t),
    "2^{x}": lambda t: 2**t,
    "log({x}^2 + 0.5)": lambda t: torch.log(t**2 + 0.5),
    "log1p({x}^2)": lambda t: torch.log1p(t**2),
    "sqrt({x}^2 + 0.5)": lambda t: torch.sqrt(t**2 + 0.5),
    "rsqrt({x}^2 + 1)": lambda t: torch.rsqrt(t**2 + 1),
    "sigmoid({x})": torch.sigmoid,
    "gelu({x})": F.gelu,
    "gelu_tanh({x})": lambda t: F.gelu(t, approximate="tanh"),
    "silu({x})": F.silu,
    "softplus({x})": lambda t: F.softplus(t, threshold=100),
    "relu({x})": F.relu,
    "abs({x})": torch.abs,
    "erf({x})": torch.erf,
    "erfc({x})": torch.erfc,
    "erfinv(0.8 * tanh({x}))": lambda t: torch.erfinv(0.8 * torch.tanh(t)),
    "lgamma({x}^2 + 0.5)": lambda t: torch.lgamma(t**2 + 0.5),
    "tan(0.3 * tanh({x}))": lambda t: torch.tan(0.3 * torch.tanh(t)),
    "asin(0.9 * tanh({x}))": lambda t: torch.asin(0.9 * torch.tanh(t)),
    "acos(0.9 * tanh({x}))": lambda t: torch.acos(0.9 * torch.tanh(t)),
    "atan({x})": torch.atan,
    "sinh(0.3 * {x})": lambda t: torch.sinh(0.3 * t),
    "cosh(0.3 * {x})": lambda t: torch.cosh(0.3 * t),
    "-{x}^3 + 1": lambda t: -(t**3) + 1,
    "clamp({x}, -0.5, 0.7)": lambda t: t.clamp(-0.5, 0.7),
    "sign({x}) * {x}": lambda t: t.sign() * t,
    "floor({x}) + {x}": lambda t: t.floor() + t,
    "round({x}) * {x}": lambda t: t.round() * t,
    "trunc(3 * {x}) - {x}": lambda t: (3 * t).trunc() - t,
    "stop_gradient({x}) * {x}": lambda t: t.detach() * t,
    "where({x} > 0.1, {x}, 0.2 * {x})": lambda t: torch.where(t > 0.1, t, 0.2 * t),
    "where(not ({x} > 0.1 or {x} < -0.3), {x}^2, 1)": lambda t: torch.where(~((t > 0.1) | (t < -0.3)), t**2, 1.0),
    "max({x}, 0.2)": lambda t: torch.maximum(t, torch.tensor(0.2, dtype=t.dtype)),
}
CHOICES = ("max", "min", "where", "cast")  # which of two equal operands is taken is a matter of rounding
BINARY = {
    "{x} + {y}": torch.add,
    "{x} - {y}": torch.sub,
    "{x} * {y}": torch.mul,
    "{x} / ({y}^2 + 1)": lambda p, q: p / (q**2 + 1),
    "max({x}, {y})": torch.maximum,
    "min({x}, {y})": torch.minimum,
    "atan2({x}, {y}^2 + 0.1)": lambda p, q: torch.atan2(p, q**2 + 0.1),
    "pow({x}^2 + 0.5, {y})": lambda p, q: (p**2 + 0.5) ** q,
    "where({x} < {y}, sin({x}), {y}) * {x}": lambda p, q: torch.where(p < q, torch.sin(p), q) * p,
    "cast({x} > {y}, f64) * {y} + {x}": lambda p, q: (p > q).double() * q + p,
}


def product_over(tensor, places):
    for place in sorted(places, reverse=True):
        tensor = tensor.prod(place)
    return tensor


REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": torch.amax,
    "min": torch.amin,
    "prod": product_over,
    "var": lambda t, places: t.var(places, unbiased=False),
    "logsumexp": torch.logsumexp,
    "norm": lambda t, places: torch.linalg.vector_norm(t, dim=places),
}
PATTERN_REDUCTIONS = {name: REDUCTIONS[name] for name in ("sum", "mean", "max", "min")}
ALONG = {
    "softmax({x}, {axis})": lambda t, i: t.softmax(i),
    "log_softmax({x}, {axis})": lambda t, i: t.log_softmax(i),
    "cumsum({x}, {axis})": lambda t, i: t.cumsum(i),
    "cumprod({x}, {axis})": lambda t, i: t.cumprod(i),
    "cummax({x}, {axis})": lambda t, i: t.cummax(i)[0],
    "cummin({x}, {axis})": lambda t, i: t.cummin(i)[0],
    "logcumsumexp({x}, {axis})": lambda t, i: t.logcumsumexp(i),
    "flip({x}, {axis})": lambda t, i: t.flip(i),
    "sort({x}, {axis})": lambda t, i: t.sort(dim=i, stable=True)[0],
    "sort({x}, {axis}, descending = true)": lambda t, i: t.sort(dim=i, stable=True, descending=True)[0],
}


class Program:
    """`text`, `inputs` by name, and what its outputs are, by name."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.declares_dims = seed % 2 == 0  # else each size stands where the axis is first written
        self.has_gradients = False
        self.values, self.leaves, self.lines, self.inputs, self.outputs, self.count = [], [], [], {}, {}, 0
        for _ in range(3):
            self.leaf(self.random.sample(list(SIZES), self.random.randint(1, 3)))
        for _ in range(self.random.randint(5, 14)):
            self.random.choices(list(OPERATIONS), list(OPERATIONS.values()))[0](self)
        self.end()
        dims = "dim " + ", ".join(f"{axis} = {size}" for axis, size in SIZES.items()) + "\n"
        self.text = (dims if self.declares_dims else "") + "\n".join(self.lines) + "\n"

    # ---- names, values and lines

    def fresh(self, letter):
        self.count += 1
        return f"{letter}_{self.count}"

    def type_of(self, axes):
        return " ".join(axis if self.declares_dims or axis not in SIZES else f"{axis}={SIZES[axis]}" for axis in axes)

    def leaf(self, axes):
        tensor = torch.randn([SIZES[axis] for axis in axes], generator=self.generator, dtype=torch.float64) * 0.8
        value = Value(self.fresh("x"), tuple(axes), tensor.requires_grad_(True))
        self.lines.append(f"input {value.name}: f64[{self.type_of(axes)}]")
        self.inputs[value.name] = tensor.detach().numpy()
        self.values.append(value)
        self.leaves.append(value)
        return value

    def integers(self, axes, end):
        name, tensor = self.fresh("i"), torch.randint(0, end, [SIZES[axis] for axis in axes], generator=self.generator)
        self.lines.append(f"input {name}: i32[{self.type_of(axes)}]")
        self.inputs[name] = tensor.numpy().astype(np.int32)
        return Value(name, tuple(axes), tensor)

    def bind(self, text, axes, tensor, annotated=False):
        """A line for the value, unless it is too large. An annotation gives a new axis its name."""
        if tensor.numel() > MOST_ELEMENTS or len(axes) > MOST_AXES:
            return
        largest = float(tensor.detach().abs().max())
        assert math.isfinite(largest), text
        if largest > LARGEST:
            text, tensor = f"tanh({text})", torch.tanh(tensor)
        value = Value(self.fresh("v"), tuple(axes), tensor)
        self.lines.append(f"{value.name}{f': [{self.type_of(axes)}]' if annotated else ''} = {text}")
        self.values.append(value)

    def pick(self, rank=0, where=lambda value: True):
        """One of the values, rather a late one; none where no value is like that. Of rank 1 there are always some."""
        values = [value for value in self.values if len(value.axes) >= rank and where(value)]
        if not values:
            return None
        return self.random.choice(values[-6:] if self.random.random() < 0.6 else values)

    def axis_of(self, value):
        axis = self.random.choice(value.axes)
        return axis, value.place(axis)

    # ---- operations

    def unary(self):
        value = self.pick()
        text, of = self.random.choice(list(UNARY.items()))
        self.bind(text.format(x=value.name), value.axes, of(value.tensor))

    def binary(self):
        x = self.pick(1)
        y = self.random.choice([v for v in self.values if set(v.axes) <= set(x.axes) or set(x.axes) <= set(v.axes)])
        if self.random.random() < 0.5:
            x, y = y, x
        frame = frame_of(x, y)
        text, of = self.random.choice(list(BINARY.items()))
        operands = torch.broadcast_tensors(x.on(frame), y.on(frame))
        if text.startswith(CHOICES) and x is not y and float((operands[0] - operands[1]).detach().abs().min()) < 1e-9:
            return
        self.bind(text.format(x=x.name, y=y.name), frame, of(*operands))

    def outer_product(self):
        x, y = self.pick(1), self.pick(1)
        frame = frame_of(x, y)
        self.bind(f"{x.name} * {y.name}", frame, x.on(frame) * y.on(frame))

    def reduction(self):
        value = self.pick(1)
        axes = self.random.sample(value.axes, self.random.randint(1, len(value.axes)))
        name, of = self.random.choice(list(REDUCTIONS.items()))
        kept = [axis for axis in value.axes if axis not in axes]
        arguments = "" if not kept and self.random.random() < 0.5 else ", " + ", ".join(axes)
        self.bind(f"{name}({value.name}{arguments})", kept, of(value.tensor, [value.place(axis) for axis in axes]))

    def along(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        text, of = self.random.choice(list(ALONG.items()))
        self.bind(text.format(x=value.name, axis=axis), value.axes, of(value.tensor, place))

    def top_k(self):
        value = self.pick(1, lambda v: max(v.tensor.shape) >= 2)
        if value is None:
            return
        axis = self.random.choice([axis for axis in value.axes if value.size(axis) >= 2])
        k, smallest = self.random.randint(1, value.size(axis) - 1), self.random.random() < 0.4
        ordered = value.tensor.sort(dim=value.place(axis), descending=not smallest, stable=True)[0]
        name = self.fresh("n")
        self.bind(f"top_k({value.name}, {axis}, {k}{', smallest = true' * smallest})", renamed(value.axes, axis, name),
                  ordered.narrow(value.place(axis), 0, k), annotated=True)

    def gathered(self, table, axis, ids, text):
        """The axis is replaced by those of the ids that the table lacks; axes of both are aligned."""
        new = [other for other in ids.axes if other not in table.axes]
        axes = [name for other in table.axes for name in (new if other == axis else [other])]
        sizes = [ids.size(other) if other in ids.axes else table.size(other) for other in axes]
        index = ids.on(axes).expand(sizes).unsqueeze(-1)
        whole = table.on([*axes, axis]).expand([*sizes, table.size(axis)])
        self.bind(text, axes, whole.gather(len(axes), index).squeeze(-1))

    def gather(self):
        table = self.pick(1)
        axis, _ = self.axis_of(table)
        others = [other for other in SIZES if other != axis]
        ids = self.integers(self.random.sample(others, self.random.randint(0, 2)), table.size(axis))
        self.gathered(table, axis, ids, f"{table.name}[{axis} = {ids.name}]")

    def extreme(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        table = self.pick(1, lambda v: set(v.axes) >= set(value.axes))
        name = self.random.choice(["argmax", "argmin"])
        ids = Value("", tuple(without(value.axes, axis)), getattr(value.tensor, name)(place))
        self.gathered(table, axis, ids, f"{table.name}[{axis} = {name}({value.name}, {axis})]")

    def einsum(self):
        values = [self.pick(1) for _ in range(self.random.choice([1, 2, 2, 2, 3]))]
        names = list(dict.fromkeys(axis for value in values for axis in value.axes))
        out = [name for name in names if self.random.random() < 0.55]
        self.random.shuffle(out)
        if len(values) == 1 and out == list(values[0].axes):
            return  # the value itself
        letters = {name: chr(ord("a") + i) for i, name in enumerate(names)}
        spelt = lambda axes: "".join(letters[axis] for axis in axes)  # noqa: E731
        tensor = torch.einsum(",".join(spelt(v.axes) for v in values) + "->" + spelt(out), *[v.tensor for v in values])
        local = self.random.random() < 0.3  # names of the pattern's own
        called = {name: f"p_{i}" if local else name for i, name in enumerate(names)}
        pattern = ", ".join(" ".join(called[axis] for axis in v.axes) for v in values) + " -> " + " ".join(called[axis] for axis in out)
        self.bind(f'einsum({", ".join(v.name for v in values)}, "{pattern}")', out, tensor, annotated=local)

    def compose(self):
        value = self.pick(2)
        if value is None:
            return
        outer, inner = self.random.sample(value.axes, 2)
        rest = [axis for axis in value.axes if axis not in (outer, inner)]
        place, name = self.random.randint(0, len(rest)), self.fresh("n")
        tensor = value.on([*rest[:place], outer, inner, *rest[place:]]).flatten(place, place + 1)
        pattern = joined(rest[:place], [f"({outer} {inner})"], rest[place:])
        out = [*rest[:place], name, *rest[place:]]
        self.bind(f'rearrange({value.name}, "{joined(value.axes)} -> {pattern}")', out, tensor, annotated=True)

    def split(self):
        value = self.pick(1, lambda v: any(size >= 4 and size % 2 == 0 for size in v.tensor.shape))
        if value is None:
            return
        axis = self.random.choice([axis for axis in value.axes if value.size(axis) >= 4 and value.size(axis) % 2 == 0])
        place, half = value.place(axis), value.size(axis) // 2
        outer, inner = self.fresh("n"), self.fresh("n")
        axes = [*value.axes[:place], outer, inner, *value.axes[place + 1:]]
        out = self.random.sample(axes, len(axes))
        tensor = value.tensor.unflatten(place, (2, half)).permute([axes.index(other) for other in out])
        pattern = joined(value.axes[:place], [f"({outer} {inner})"], value.axes[place + 1:])
        size = self.random.choice([f"{outer}=2", f"{inner}={half}"])
        self.bind(f'rearrange({value.name}, "{pattern} -> {joined(out)}", {size})', out, tensor)

    def reduce_by_pattern(self):
        value = self.pick(1)
        kept = [axis for axis in value.axes if self.random.random() < 0.5]
        if len(kept) == len(value.axes):
            return
        out = self.random.sample(kept, len(kept))
        name, of = self.random.choice(list(PATTERN_REDUCTIONS.items()))
        tensor = of(value.tensor, [value.place(axis) for axis in value.axes if axis not in kept])
        tensor = tensor.permute([kept.index(axis) for axis in out])
        self.bind(f'reduce({value.name}, "{joined(value.axes)} -> {joined(out)}", "{name}")', out, tensor)

    def repeat(self):
        value = self.pick()
        place, name = self.random.randint(0, len(value.axes)), self.fresh("n")
        out = [*value.axes[:place], name, *value.axes[place:]]
        tensor = value.tensor.unsqueeze(place).expand([2 if axis == name else value.size(axis) for axis in out])
        self.bind(f'repeat({value.name}, "{joined(value.axes)} -> {joined(out)}", {name}=2)', out, tensor)

    def window(self):
        value = self.pick(1, lambda v: max(v.tensor.shape) >= 4)
        if value is None:
            return
        axis = self.random.choice([axis for axis in value.axes if value.size(axis) >= 4])
        place, stride, dilation, kernel = value.place(axis), self.random.choice([1, 2]), self.random.choice([1, 1, 2]), 2
        places = (value.size(axis) - dilation * (kernel - 1) - 1) // stride + 1
        at = [torch.arange(places) * stride + k * dilation for k in range(kernel)]
        windows = torch.stack([value.tensor.index_select(place, index) for index in at])
        y, k = self.fresh("n"), self.fresh("k")
        out = renamed(value.axes, axis, y)
        pattern = joined(renamed(value.axes, axis, affine(stride, y, dilation, k)))
        if self.random.random() < 0.5:
            name, of = self.random.choice(list(PATTERN_REDUCTIONS.items()))
            return self.bind(f'reduce({value.name}, "{pattern} -> {joined(out)}", "{name}", {k}={kernel})', out, of(windows, 0))
        weight = self.leaf(["a"])
        tensor = (windows * weight.tensor.reshape([kernel] + [1] * len(out))).sum(0)
        self.bind(f'einsum({value.name}, {weight.name}, "{pattern}, {k} -> {joined(out)}")', out, tensor)

    def window_on_the_right(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        stride, dilation, kernel = self.random.choice([1, 2, 3]), self.random.choice([1, 2]), 2
        weight, k, name = self.leaf(["e"]), self.fresh("k"), self.fresh("n")
        rows = value.tensor.movedim(place, 0)
        tensor = torch.zeros([stride * (value.size(axis) - 1) + dilation * (kernel - 1) + 1, *rows.shape[1:]], dtype=torch.float64)
        for j in range(kernel):
            tensor = tensor.index_add(0, torch.arange(value.size(axis)) * stride + j * dilation, rows * weight.tensor[j])
        pattern = joined(renamed(value.axes, axis, affine(stride, axis, dilation, k)))
        self.bind(f'einsum({value.name}, {weight.name}, "{joined(value.axes)}, {k} -> {pattern}")',
                  renamed(value.axes, axis, name), tensor.movedim(0, place), annotated=True)

    def pad(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        size, mode = value.size(axis), self.random.choice(["", "", "reflect", "replicate", "circular"])
        most = {"": 2, "replicate": 2, "reflect": size - 1, "circular": size}[mode]
        before, behind = min(most, self.random.randint(0, 2)), min(most, self.random.randint(0, 2))
        if before + behind == 0:
            return
        at = np.arange(-before, size + behind)
        options = f', mode = "{mode}"'
        if mode == "":
            fill = self.random.choice([0, 0.5])
            rows = value.tensor.movedim(place, 0)
            ends = [torch.full([count, *rows.shape[1:]], float(fill), dtype=torch.float64) for count in (before, behind)]
            tensor = torch.cat([ends[0], rows, ends[1]]).movedim(0, place)
            options = f", value = {fill}" if fill else ""
        else:
            mirrored = np.where(at < 0, -at, np.where(at >= size, 2 * (size - 1) - at, at))
            index = {"reflect": mirrored, "replicate": at.clip(0, size - 1), "circular": at % size}[mode]
            tensor = value.tensor.index_select(place, torch.tensor(index))
        name = self.fresh("n")
        self.bind(f"pad({value.name}, {axis} = ({before}, {behind}){options})", renamed(value.axes, axis, name),
                  tensor, annotated=True)

    def slice(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        size = value.size(axis)
        if self.random.random() < 0.3:
            at = self.random.randint(-size, size - 1)
            return self.bind(f"{value.name}[{axis} = {at}]", without(value.axes, axis), value.tensor.select(place, at))
        low, high = self.random.choice(["", *range(-size, size)]), self.random.choice(["", *range(-size, size + 1)])
        step = self.random.choice(["", "", 2, -1, -2, 3])
        taken = list(range(size))[slice(*[None if bound == "" else bound for bound in (low, high, step)])]
        if not taken:
            return
        name, steps = self.fresh("n"), f":{step}" if step else ""
        self.bind(f"{value.name}[{axis} = {low}:{high}{steps}]", renamed(value.axes, axis, name),
                  value.tensor.index_select(place, torch.tensor(taken)), annotated=True)

    def concat(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        other = self.pick(1, lambda v: v.axes == value.axes)
        name = self.fresh("n")
        self.bind(f"concat({value.name}, {other.name}, {axis})", renamed(value.axes, axis, name),
                  torch.cat([value.tensor, other.tensor], place), annotated=True)

    def stack(self):
        value = self.pick()
        other = self.pick(0, lambda v: v.axes == value.axes)
        name = self.fresh("n")
        self.bind(f"stack({value.name}, {other.name}, {name})", [name, *value.axes], torch.stack([value.tensor, other.tensor]))

    def segment(self):
        value = self.pick(1, lambda v: any(axis in SIZES for axis in v.axes))
        if value is None:
            return
        declared = [axis for axis in value.axes if axis in SIZES]
        count, nodes = self.random.randint(2, 4), self.fresh("n")
        ids = self.integers(self.random.sample(declared, self.random.randint(1, min(2, len(declared)))), count)
        summed = self.random.sample(ids.axes, self.random.randint(1, len(ids.axes)))
        places = [value.place(axis) + 1 for axis in summed]
        there = ids.on(value.axes).expand(value.tensor.shape) == torch.arange(count).reshape([count] + [1] * len(value.axes))
        name = self.random.choice(["sum", "mean", "max", "min"])
        if name in ("max", "min"):
            if int(there.sum(places).min()) == 0:
                return  # of no elements: infinite
            tensor = REDUCTIONS[name](torch.where(there, value.tensor, math.inf if name == "min" else -math.inf), places)
        else:
            tensor = torch.where(there, value.tensor, 0.0).sum(places)
            tensor = tensor / there.sum(places).clamp(min=1) if name == "mean" else tensor
        kept = [axis for axis in value.axes if axis not in summed]
        first = min(value.place(axis) for axis in summed)
        out = [*value.axes[:first], nodes, *[axis for axis in value.axes[first:] if axis not in summed]]
        tensor = tensor.permute([[nodes, *kept].index(axis) for axis in out])
        all_of_them = set(summed) == set(ids.axes) and self.random.random() < 0.5
        axes = "" if all_of_them else ", " + ", ".join(summed)
        self.bind(f"segment_{name}({value.name}, {ids.name}, {nodes}={count}{axes})", out, tensor)

    def cross_entropy(self):
        value = self.pick(1)
        axis, place = self.axis_of(value)
        rest = without(value.axes, axis)
        if any(other not in SIZES for other in rest):
            return
        targets = self.integers(rest, value.size(axis))
        smoothing, ignores = self.random.choice([0, 0, 0.1]), self.random.random() < 0.3
        logs = value.tensor.log_softmax(place)
        tensor = -(1 - smoothing) * logs.gather(place, targets.tensor.unsqueeze(place)).squeeze(place) - smoothing * logs.mean(place)
        if ignores:
            tensor = torch.where(targets.tensor == 1, 0.0, tensor)
        options = ", ignore = 1" * ignores + (f", smoothing = {smoothing}" if smoothing else "")
        self.bind(f"cross_entropy({value.name}, {targets.name}, {axis}{options})", rest, tensor)

    def recurrence(self):
        """A loop over an axis that carries one value and collects another."""
        value = self.pick(1)
        axis, place = self.axis_of(value)
        rest = set(without(value.axes, axis))
        start, weight = self.pick(0, lambda v: set(v.axes) == rest), self.pick(0, lambda v: set(v.axes) <= rest)
        if start is None and rest <= set(SIZES):
            start = self.leaf(sorted(rest))
        weight = weight or start
        if start is None:
            return
        frame, steps = list(start.axes), range(value.size(axis))
        back, every = self.random.random() < 0.4, self.random.choice(["", "", ", save every 1", ", save every 2", ", save every 3"])
        h, w, collected = start.tensor, weight.on(frame), [None] * len(steps)
        body, of = self.random.choice([
            ("tanh({h} * {w} + {x})", lambda h, w, x, t: torch.tanh(h * w + x)),
            ("where({t} < 1, {h} * 0.5 + {w}, tanh({h}) + {x})", lambda h, w, x, t: h * 0.5 + w if t < 1 else torch.tanh(h) + x),
            ("0.7 * {h} + sin({x}) * {w}", lambda h, w, x, t: 0.7 * h + torch.sin(x) * w),
            ("max({h} * 0.9, {x}) + 0.1 * {w} * cast({t}, f64)", lambda h, w, x, t: torch.maximum(h * 0.9, x) + 0.1 * w * t),
            ("({h} - {w}) * sigmoid({h} + {x}) + {w}", lambda h, w, x, t: (h - w) * torch.sigmoid(h + x) + w),
        ])
        kept, of_kept = self.random.choice([
            ("{h} * 1", lambda new, old, w: new * 1),
            ("{h} * {w}", lambda new, old, w: new * w),
            ("{old} + {h}", lambda new, old, w: old + new),
            ("exp(-{h} * {h})", lambda new, old, w: torch.exp(-new * new)),
        ])
        sizes = [start.size(other) for other in frame]
        for t in reversed(steps) if back else steps:
            x = Value("", tuple(without(value.axes, axis)), value.tensor.select(place, t)).on(frame)
            old, h = h, of(h, w, x, t).expand(sizes)
            collected[t] = of_kept(h, old, w).expand(sizes)
        names = {"h": self.fresh("h"), "t": self.fresh("t"), "old": self.fresh("o"), "w": weight.name}
        names["x"] = f"{value.name}[{axis} = {names['t']}]"
        out = self.fresh("v")
        self.lines += [f"{names['h']} = {start.name}", f"scan {names['t']} in {f'reversed({axis})' if back else axis}{every} {{",
                       "  {old} = {h}".format(**names), f"  {{h}} = {body}".format(**names),
                       f"  collect {out} = {kept}".format(**names), "}"]
        self.values += [Value(names["h"], start.axes, h * 1), Value(out, (axis, *frame), torch.stack(collected))]

    def function(self):
        value = self.pick(2)
        if value is None:
            return
        name, scale = self.fresh("f"), None
        tensor = value.tensor - value.tensor.mean(-1, keepdim=True)
        tensor = tensor * torch.rsqrt(tensor.pow(2).mean(-1, keepdim=True) + 0.01)
        if value.axes[-1] in SIZES:
            scale = self.leaf([value.axes[-1]])
            tensor = tensor * scale.tensor
        self.lines.append(f"fn {name}(x: [... k]{', s: [k]' if scale else ''}) {{\n  m = x - mean(x, k)\n"
                          f"  return m * rsqrt(mean(m^2, k) + 0.01){' * s' if scale else ''}\n}}")
        self.bind(f"{name}({value.name}{f', {scale.name}' if scale else ''})", value.axes, tensor)

    def unrolled(self):
        value, name, times = self.pick(), self.fresh("h"), self.random.randint(2, 3)
        tensor = value.tensor
        for i in range(times):
            tensor = torch.sin(tensor) * (i + 1) + value.tensor
        self.lines.append(f"{name} = {value.name}\nfor i in {times} {{ {name} = sin({name}) * (i + 1) + {value.name} }}")
        self.values.append(Value(name, value.axes, tensor))

    def change(self):
        x = self.random.choice(self.leaves)
        _, tensor = torch.func.jvp(lambda t: torch.sin(t) * t, (x.tensor,), (x.tensor * x.tensor,))
        self.bind(f"jvp(sin({x.name}) * {x.name}, {x.name}, {x.name}^2)", x.axes, tensor)

    def inner_gradient(self):
        x, value = self.random.choice(self.leaves), self.pick()
        gradient, = torch.autograd.grad((value.tensor**2).sum(), x.tensor, create_graph=True, allow_unused=True)
        if gradient is not None:
            self.bind(f"grad(sum({value.name}^2), {x.name})", x.axes, gradient)
            self.has_gradients = True

    def another_leaf(self):
        self.leaf(self.random.sample(list(SIZES), self.random.randint(0, 3)))

    # ---- what is asked of it

    def output(self, name, text, tensor):
        self.lines.append(f"output {name} = {text}")
        self.outputs[name] = tensor.detach().numpy()

    def end(self):
        some = lambda values, count: self.random.sample(values, min(count, len(values)))  # noqa: E731
        terms, loss = [], 0
        for value in some(self.values, 4) + self.values[-2:]:
            squares = self.random.random() < 0.5
            terms.append(f"mean({value.name}^2)" if squares else f"sum(sin({value.name}))")
            loss = loss + ((value.tensor**2).mean() if squares else torch.sin(value.tensor).sum())
        self.lines.append("loss = " + " + ".join(terms))
        for value in some(self.values, 4):
            self.output("o_" + value.name, value.name, value.tensor)
        # How a gradient is made of values in between is nobody's contract, so that of a gradient only leaves are asked.
        between = [] if self.has_gradients else some(self.values, 6)
        asked = [value for value in dict.fromkeys(some(self.leaves, 4) + between) if value.tensor.requires_grad]
        self.random.shuffle(asked)
        gradients = torch.autograd.grad(loss, [value.tensor for value in asked], allow_unused=True, create_graph=True)
        for value, gradient in zip(asked, gradients):
            self.output("g_" + value.name, f"grad(loss, {value.name})", torch.zeros_like(value.tensor) if gradient is None else gradient)
        curved = [pair for pair in zip(asked, gradients) if pair[1] is not None and pair[1].requires_grad]
        # PyTorch's own second derivative of logcumsumexp is wrong where its gradient is 0, by finite differences (2.15).
        if curved and self.random.random() < 0.4 and not any("logcumsumexp" in line for line in self.lines):
            (by, gradient), x = self.random.choice(curved), self.random.choice(self.leaves)
            second, = torch.autograd.grad((gradient**2).sum(), x.tensor, allow_unused=True)
            self.output("second", f"grad(sum(grad(loss, {by.name})^2), {x.name})", torch.zeros_like(x.tensor) if second is None else second)


def affine(stride, outer, dilation, inner):
    times = lambda factor, name: name if factor == 1 else f"{factor}*{name}"  # noqa: E731
    return f"({times(stride, outer)} + {times(dilation, inner)})"


# How often each is taken.
OPERATIONS = {
    Program.unary: 4, Program.binary: 5, Program.outer_product: 1, Program.reduction: 2, Program.along: 3, Program.top_k: 1,
    Program.extreme: 1, Program.gather: 2, Program.einsum: 4, Program.compose: 1, Program.split: 2, Program.reduce_by_pattern: 1,
    Program.repeat: 1, Program.window: 2, Program.window_on_the_right: 1, Program.pad: 2, Program.slice: 2, Program.concat: 1,
    Program.stack: 1, Program.segment: 2, Program.cross_entropy: 1, Program.recurrence: 3, Program.function: 1, Program.unrolled: 0.5,
    Program.change: 0.3, Program.inner_gradient: 0.5, Program.another_leaf: 0.5,
}
