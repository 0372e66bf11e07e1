# SPDX-License-Identifier: Apache-2.0
"""Programs as torch modules, with autograd through them:

    block = einc.torch.Module("block.ein", dims={"embed": 256})
    y = block(x)                # compiled for x's shape when it is first seen
    y.sum().backward()          # gradients of x and of block.parameters()

A forward that a backward may follow keeps what that needs in a session of its own until the backward has run. A second backward through the
same graph (retain_graph) computes the forward again; a gradient cannot be differentiated again. Tensors lie in the processor's memory: inputs
and params are read in place, outputs and gradients are written to torch's memory. The module runs on torch's threads, as many as
torch.get_num_threads() says. While it trains (`train()`, `eval()`), dropout acts and `training` is true in the program; its random numbers
follow from torch's generator (torch.manual_seed), one draw of that for each call.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from einc import _einc
from einc._errors import UsageError
from einc._program import Model, Session, _options, _source, report

__all__ = ["Module"]

_DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
    "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
# What outputs of a pullback begin with that are not the program's: gradients, and new values of states.
_ADDED = _GRADIENT, _NEXT = "gradient.", "next."
_NAME = re.compile(r"[A-Za-z_]\w*")


def _made(session: Session, run: Callable[[], None], names: Callable[[str], bool]) -> dict[str, torch.Tensor]:
    """The outputs of those names after the run, in memory of torch's that the session writes them to. One that is an input, a param or
    another output too is copied there, as is one that the backward reads again."""
    chosen = [tensor for tensor in session.model.outputs if names(tensor.name)]
    made = {t.name: torch.empty(t.shape, dtype=_DTYPES[t.dtype]) for t in chosen if t.dtype in _DTYPES}
    try:
        for name, tensor in made.items():
            session._session.bind_output(name, tensor)
        run()
        return {t.name: made[t.name] if t.name in made else _own(session.outputs[t.name]) for t in chosen}
    finally:
        session._session.release_outputs()


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
    """A program compiled for one set of dims: for outputs alone, and with its pullback, each when it is first asked for. It runs on torch's
    threads: others would compete with them for the processors, which each keeps awake for a while after its work."""

    def __init__(self, module: Module, dims: dict[str, int], threads: int, training_mode: bool) -> None:
        self._module, self._dims, self._threads, self.training_mode = module, dims, threads, training_mode
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}
        self._idle: dict[str, list[Session]] = {"inference": [], "pullback": []}

    def take(self, purpose: str) -> Session:
        """A session that nobody uses: a forward's own until its backward has run, as its memory holds what that needs."""
        with self._lock:
            if self._idle[purpose]:
                return self._idle[purpose].pop()
            if purpose not in self._models:
                self._models[purpose] = self._module._compile(self._dims, purpose, self.training_mode)
            return Session(self._models[purpose], self._threads, _team=_team())

    def give_back(self, purpose: str, session: Session) -> None:
        self._idle[purpose].append(session)

    def run(self, arrays: dict[str, torch.Tensor], seed: int | None) -> tuple[torch.Tensor, ...]:
        """The outputs, and states as they are then, of a forward that no backward follows."""
        session = self.take("inference")
        try:
            if seed is not None:
                session._session.seed(seed)
            session._bind_all(arrays, {})
            outputs = _made(session, session._session.run, lambda name: True)
            return (*outputs.values(), *(arrays[state.name] for state in session.model.states))
        finally:
            self.give_back("inference", session)


class _Forward:
    """What a forward has left for its backward."""

    def __init__(self, runner: _Runner, seed: int | None) -> None:
        self._runner, self._seed = runner, seed
        self._session: Session | None = None

    def run(self, arrays: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        session = self._session = self._runner.take("pullback")
        # Under a precision policy the backward may read a param in more bits than an inference, whose params the module has.
        kept = {kept.name: arrays[kept.name].to(_DTYPES[kept.dtype]) for kept in (*session.model.params, *session.model.states)}
        session._bind_all({**arrays, **kept}, {})
        if self._seed is not None:
            session._session.seed(self._seed)
        made = _made(session, session._session.forward, lambda name: not name.startswith(_GRADIENT))
        outputs = (array for name, array in made.items() if not name.startswith(_ADDED))
        return (*outputs, *(made[_NEXT + s.name] if _NEXT + s.name in made else arrays[s.name].clone() for s in session.model.states))

    def pull_back(self, arrays: dict[str, torch.Tensor], cotangents: list[torch.Tensor | None]) -> dict[str, torch.Tensor]:
        if self._session is None:  # used up by a backward before (retain_graph)
            self.run(arrays)
        session = self._session
        assert session is not None
        types = {tensor.name: tensor for tensor in session.model.inputs}
        names = (tensor.name for tensor in session.model.outputs if not tensor.name.startswith(_ADDED))
        for name, cotangent in zip(names, cotangents):
            like = types.get(f"cotangent.{name}")
            if like is None:
                continue
            dtype = _DTYPES[like.dtype]
            given = torch.zeros(like.shape, dtype=dtype) if cotangent is None else cotangent.detach().to(dtype).contiguous()
            session._session.bind(like.name, given)
        made = _made(session, session._session.backward, lambda name: name.startswith(_GRADIENT))
        self.release()
        return {name.removeprefix(_GRADIENT): gradient for name, gradient in made.items()}

    def release(self) -> None:
        if self._session is not None:
            self._runner.give_back("pullback", self._session)
            self._session = None

    def __del__(self) -> None:  # no backward came
        self.release()


class _Once(torch.autograd.Function):
    """A gradient that cannot be differentiated again, and says so when it is tried."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *behind: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        raise UsageError(
            "the gradient of an einc.torch.Module cannot be differentiated again: write it into the program, where grad(y, x) is a value "
            "like any other, and return it as an output"
        )


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: _Forward, names: tuple[str, ...], states: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.left, ctx.names = left, names
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        outputs = ctx.left.run(dict(zip(names, (t.detach() for t in tensors))))
        own = len(outputs) - states
        ctx.mark_non_differentiable(*(t for t in outputs[:own] if not t.is_floating_point()), *outputs[own:])
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple[Any, ...]:
        arrays = dict(zip(ctx.names, (t.detach() for t in ctx.saved_tensors)))
        with torch.no_grad():
            gradients = ctx.left.pull_back(arrays, list(cotangents))
        if torch.is_grad_enabled():  # create_graph
            behind = [t for t in (*ctx.saved_tensors, *cotangents) if t is not None and t.requires_grad]
            gradients = {name: _Once.apply(gradient, *behind) for name, gradient in gradients.items()}
        wanted = zip(ctx.names, ctx.saved_tensors, ctx.needs_input_grad[3:])
        return (None, None, None, *(gradients[name].to(t.dtype) if needed and name in gradients else None for name, t, needed in wanted))


class Module(torch.nn.Module):
    """The params are the program's, by their paths: `h.0.attn.w` is the parameter `w` of the submodule `h.0.attn`, so that state_dict has
    the names of `einc train`'s weight files. A call takes the inputs in the order of their declarations, or by name, and gives the
    output, or a tuple of the outputs in their order.

    Dims that only inputs have are read off the tensors of each call; those of params and states need a default or a value in `dims`. States
    are buffers, by their paths too, and take their new values when a call returns.
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
        self._runners: dict[Any, _Runner] = {}  # by dims, threads and mode
        self._creating = threading.Lock()
        symbolic = report(path_or_text, dims=self._dims, precision=precision, name=name)
        self._free = set(symbolic["free_dims"])
        self._require_known_params(symbolic["parameters"]["symbolic"])
        model = self._example()
        for state in model.states:
            if unknown := self._free & set(state.axes):
                raise UsageError(f"the state {state.name!r} has the size of {', '.join(sorted(unknown))}, which has no value")
        self._inputs = model.inputs
        self._paths = tuple(tensor.name for tensor in (*model.params, *model.states))
        self._states = tuple(state.name for state in model.states)
        self._has_modes, self._draws = model._compiled.has_modes, model._compiled.draws
        trained = {output.name for output in self._example("pullback").outputs}
        session = Session(model, threads).init(seed)
        for param in model.params:
            values = _own(session.params[param.name])
            self._add(param.name, torch.nn.Parameter(values, requires_grad=f"gradient.{param.name}" in trained))
        for name in self._states:
            self._add(name, _own(session.states[name]))

    def _compile(self, dims: Mapping[str, int], purpose: str, training_mode: bool = False) -> Model:
        options = _options(dims, self._precision, purpose=purpose)
        options.training_mode = training_mode
        return Model(_einc.compile(str(self._source), self._name, options))

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

    def _add(self, path: str, tensor: torch.Tensor) -> None:
        module: torch.nn.Module = self
        *folders, leaf = path.split(".")
        for folder in folders:
            if folder not in module._modules:
                module.add_module(folder, torch.nn.Module())
            module = module._modules[folder]  # type: ignore[assignment]
        if isinstance(tensor, torch.nn.Parameter):
            module.register_parameter(leaf, tensor)
        else:
            module.register_buffer(leaf, tensor)

    def _tensor(self, path: str) -> torch.Tensor:
        """The parameter or buffer, or what torch.func.functional_call has put in its place."""
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
        training_mode = self.training and self._has_modes
        key = (training_mode, threads, tuple(sorted(dims.items())))
        with self._creating:
            if key not in self._runners:
                self._runners[key] = _Runner(self, dims, threads, training_mode)
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
        named.update({path: named[path].detach().clone() for path in self._states})  # a backward reads them as they are now
        tensors = [named[name].contiguous() for name in named]
        seed = int(torch.randint(2**62, ())) if self._draws else None
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            made = _Function.apply(_Forward(runner, seed), tuple(named), len(self._states), *tensors)
        else:
            made = runner.run({name: tensor.detach() for name, tensor in zip(named, tensors)}, seed)
        outputs, states = made[: len(made) - len(self._states)], made[len(made) - len(self._states) :]
        with torch.no_grad():
            for path, state in zip(self._states, states):
                self._tensor(path).copy_(state)
        return outputs[0] if len(outputs) == 1 else outputs
