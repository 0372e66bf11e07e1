# SPDX-License-Identifier: Apache-2.0
"""Programs as torch modules, with autograd through them:

    block = einc.torch.Module("block.ein", dims={"embed": 256})
    y = block(x)                # compiled for x's shape when it is first seen
    y.sum().backward()          # gradients of x and of block.parameters()

The backward is a program of its own, which makes the forward's values again and pulls the outputs' gradients back through them; nothing
is kept in between. Tensors are the processor's, and their memory is shared, not copied. Dropout of the program does not act: add torch's.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from einc._errors import UsageError
from einc._program import Model, Session, _source, compile, report

__all__ = ["Module"]

_DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
    "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*")


def _own(array: Any) -> torch.Tensor:
    """A tensor with memory of its own of what a session returns."""
    return torch.from_dlpack(array).clone()


def _team() -> list[int] | None:
    """Where the functions of the OpenMP runtime lie that torch runs on. None: torch has other threads, and a session its own."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        functions = [getattr(library, name) for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")]
    except (OSError, AttributeError):
        return None
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]


class _Runner:
    """A program compiled for one set of dims: its forward, and its pullback when a gradient is first asked for. It runs on torch's threads:
    others would compete with them for the processors, which each keeps awake for a while after its work."""

    def __init__(self, module: Module, dims: dict[str, int], threads: int) -> None:
        self._module, self._dims, self._threads = module, dims, threads
        self._forward = self._session("inference")
        self._pullback: Session | None = None
        self._lock = threading.Lock()

    def _session(self, purpose: str) -> Session:
        return Session(self._module._compile(self._dims, purpose), self._threads, _team=_team())

    def run(self, arrays: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        with self._lock:
            return tuple(_own(array) for array in self._forward.run(arrays).values())

    def pull_back(self, arrays: dict[str, torch.Tensor], cotangents: list[torch.Tensor | None]) -> dict[str, torch.Tensor]:
        with self._lock:
            if self._pullback is None:
                self._pullback = self._session("pullback")
            model = self._pullback.model
            types = {tensor.name: tensor for tensor in (*model.inputs, *model.params)}
            # Under a precision policy the backward may read a param in more bits than the forward.
            given = {name: array.to(_DTYPES[types[name].dtype]) for name, array in arrays.items()}
            for output, cotangent in zip(self._forward.model.outputs, cotangents):
                like = types.get(f"cotangent.{output.name}")
                if like is None:
                    continue
                given[like.name] = (
                    torch.zeros(like.shape, dtype=_DTYPES[like.dtype])
                    if cotangent is None
                    else cotangent.detach().to(_DTYPES[like.dtype]).contiguous()
                )
            self._pullback._bind_all(given, {})
            self._pullback._session.run()
            prefix = "gradient."
            return {
                tensor.name[len(prefix) :]: _own(self._pullback.outputs[tensor.name])
                for tensor in model.outputs
                if tensor.name.startswith(prefix) and tensor.name[len(prefix) :] in arrays
            }


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, runner: _Runner, names: tuple[str, ...], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.runner, ctx.names = runner, names
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        outputs = runner.run(dict(zip(names, (t.detach() for t in tensors))))
        ctx.mark_non_differentiable(*(t for t in outputs if not t.is_floating_point()))
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        arrays = dict(zip(ctx.names, (t.detach() for t in ctx.saved_tensors)))
        gradients = ctx.runner.pull_back(arrays, list(cotangents))
        wanted = zip(ctx.names, ctx.saved_tensors, ctx.needs_input_grad[2:])
        return (None, None, *(gradients[name].to(t.dtype) if needed and name in gradients else None for name, t, needed in wanted))


class Module(torch.nn.Module):
    """The params are the program's, by their paths: `h.0.attn.w` is the parameter `w` of the submodule `h.0.attn`, so that state_dict has
    the names of `einc train`'s weight files. A call takes the inputs in the order of their declarations, or by name, and gives the
    output, or a tuple of the outputs in their order.

    Dims that only inputs have are read off the tensors of each call; those of params need a default or a value in `dims`. Programs with
    states cannot be modules.
    """

    def __init__(
        self,
        path_or_text: str | os.PathLike[str],
        *,
        dims: Mapping[str, int] | None = None,
        precision: str | None = None,
        seed: int = 0,
        threads: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._precision, self._threads = precision, threads
        source, self._name = _source(path_or_text, name)
        self._source = source if self._name else Path(source).absolute()  # compiled again in whatever folder
        self._dims = {key: int(value) for key, value in (dims or {}).items()}
        self._runners: dict[tuple[int, tuple[tuple[str, int], ...]], _Runner] = {}
        self._creating = threading.Lock()
        symbolic = report(path_or_text, dims=self._dims, precision=precision, name=name)
        self._free = set(symbolic["free_dims"])
        self._require_known_params(symbolic["parameters"]["symbolic"])
        model = self._example()
        if model.states:
            raise UsageError(f"a program with states cannot be a torch module: {', '.join(state.name for state in model.states)}")
        self._inputs = model.inputs
        self._paths = tuple(param.name for param in model.params)
        trained = {output.name for output in self._example("pullback").outputs}
        session = Session(model, threads).init(seed)
        for param in model.params:
            values = _own(session.params[param.name])
            self._add(param.name, torch.nn.Parameter(values, requires_grad=f"gradient.{param.name}" in trained))

    def _compile(self, dims: Mapping[str, int], purpose: str) -> Model:
        return compile(self._source, dims=dims, precision=self._precision, purpose=purpose, name=self._name)

    def _require_known_params(self, symbolic: str) -> None:
        unknown = sorted(self._free & set(_NAME.findall(symbolic)))
        if unknown:
            raise UsageError(f"params have the size of {', '.join(unknown)}, which has no value: give dims={{{unknown[0]!r}: ...}}")

    def _example(self, purpose: str = "inference") -> Model:
        """The program in some sizes of its inputs: params do not depend on them."""
        sizes = (1, 2, 8, 64)
        for size in sizes:
            try:
                return self._compile({**self._dims, **{dim: size for dim in self._free}}, purpose)
            except UsageError:
                raise
            except ValueError:  # this size breaks a condition of the program
                if size == sizes[-1]:
                    raise
        raise AssertionError

    def _add(self, path: str, parameter: torch.nn.Parameter) -> None:
        module: torch.nn.Module = self
        *folders, leaf = path.split(".")
        for folder in folders:
            if folder not in module._modules:
                module.add_module(folder, torch.nn.Module())
            module = module._modules[folder]  # type: ignore[assignment]
        module.register_parameter(leaf, parameter)

    def _tensor(self, path: str) -> torch.Tensor:
        """The parameter, or what torch.func.functional_call has put in its place."""
        folder, _, leaf = path.rpartition(".")
        return getattr(self.get_submodule(folder), leaf)

    def _dims_of(self, tensors: dict[str, torch.Tensor]) -> dict[str, int]:
        """The given dims, and those that the tensors' axes are."""
        dims = dict(self._dims)
        for declared in self._inputs:
            shape = tuple(tensors[declared.name].shape)
            if len(shape) != len(declared.axes):
                raise UsageError(f"{declared.name!r} has axes [{' '.join(declared.axes)}], but a tensor of shape {list(shape)} is given")
            for axis, size in zip(declared.axes, shape):
                if axis in self._free and dims.setdefault(axis, size) != size:
                    raise UsageError(f"{axis!r} is {dims[axis]}, but {declared.name!r} of shape {list(shape)} has {size} there")
        return dims

    def _runner(self, dims: dict[str, int]) -> _Runner:
        threads = self._threads or torch.get_num_threads()
        key = (threads, tuple(sorted(dims.items())))
        with self._creating:
            if key not in self._runners:
                self._runners[key] = _Runner(self, dims, threads)
            return self._runners[key]

    def _named(self, args: tuple[torch.Tensor, ...], kwargs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        names = [tensor.name for tensor in self._inputs]
        if len(args) > len(names):
            raise TypeError(f"{len(args)} tensors for the inputs {', '.join(names)}")
        named = {**dict(zip(names, args)), **kwargs}
        if len(named) != len(args) + len(kwargs) or set(named) != set(names):
            raise TypeError(f"the inputs are {', '.join(names)}; given are {', '.join([*names[: len(args)], *kwargs])}")
        return named

    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> Any:
        named = self._named(args, kwargs)
        runner = self._runner(self._dims_of(named))
        named.update({path: self._tensor(path) for path in self._paths})
        tensors = [named[name].contiguous() for name in named]
        outputs = _Function.apply(runner, tuple(named), *tensors)
        return outputs[0] if len(outputs) == 1 else outputs
