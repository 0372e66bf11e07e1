# SPDX-License-Identifier: Apache-2.0
"""Programs and sessions: thin classes over the extension module."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from einc import _einc
from einc._errors import Diagnostic, UsageError
from einc._report import Report


class Tensor(NamedTuple):
    """What a program says of one of its tensors. A unit axis has the name ""."""

    name: str
    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


class Loaded(NamedTuple):
    """What a file of weights did not settle."""

    missing: list[str]  # params that it has not: they keep their values
    unused: list[str]  # its tensors that are no param or state


def _source(path_or_text: str | os.PathLike[str], name: str | None) -> tuple[str, str | None]:
    """The text with its name, or the path with None. Text is what has a name or more than one line."""
    if isinstance(path_or_text, os.PathLike):
        return os.fspath(path_or_text), None
    if name is None and "\n" not in path_or_text:
        return path_or_text, None
    return path_or_text, name or "model.ein"


def _member(enumeration: Any, value: str, what: str) -> Any:
    try:
        return enumeration[value]
    except KeyError:
        raise UsageError(f"no {what} {value!r}: one of {', '.join(e.name for e in enumeration)}") from None


def _options(
    dims: Mapping[str, int] | None,
    precision: str | None,
    target: str = "cpu",
    purpose: str = "training",
    memory_limit: int | None = None,
    device: str = "",
    import_folders: tuple[str | os.PathLike[str], ...] = (),
) -> _einc.CompileOptions:
    options = _einc.CompileOptions()
    options.dims = {name: int(value) for name, value in (dims or {}).items()}
    options.precision = _member(_einc.Precision, precision or "as_written", "precision")
    options.target = _member(_einc.Target, target, "target")
    options.purpose = _member(_einc.Purpose, purpose, "purpose")
    options.memory_limit = memory_limit
    options.report_device = device
    options.import_folders = [os.fspath(folder) for folder in import_folders]
    return options


class Model:
    """A compiled program, which any number of sessions share."""

    def __init__(self, compiled: _einc.Model) -> None:
        self._compiled = compiled
        self.name: str = compiled.name
        self.dims: dict[str, int] = dict(compiled.dims)
        self.inputs = tuple(Tensor(*t) for t in compiled.inputs)
        self.params = tuple(Tensor(*t) for t in compiled.params)
        self.states = tuple(Tensor(*t) for t in compiled.states)
        self.outputs = tuple(Tensor(*t) for t in compiled.outputs)
        self.trains: bool = compiled.trains
        self.warnings = [Diagnostic(*d) for d in compiled.warnings]

    def report(self) -> Report:
        return Report(self._compiled.report)

    def __repr__(self) -> str:
        def listed(tensors: tuple[Tensor, ...]) -> str:
            return ", ".join(f"{t.name}: {t.dtype}[{' '.join(t.axes)}]" for t in tensors)

        return f"<einc.Model {self.name}: {listed(self.inputs)} -> {listed(self.outputs)}; {len(self.params)} params>"


def compile(
    path_or_text: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    precision: str | None = None,
    target: str = "cpu",
    purpose: str = "training",
    memory_limit: int | None = None,
    device: str = "",
    import_folders: tuple[str | os.PathLike[str], ...] = (),
    name: str | None = None,
) -> Model:
    """Compiles a program: a file, or text (more than one line, or with the `name` that messages call it by).

    precision: f32, tf32, bf16, f16 or fp8 instead of what the program says. target: cpu, cuda or reference. purpose: training (`step`
    and `run`), inference (`run` alone) or pullback (`run` alone, with gradients: see einc/einc.h). device: the machine that reports
    speak of, a name of `einc --list-devices`; "": this processor. Raises ProgramError with the rendered diagnostics.
    """
    source, text_name = _source(path_or_text, name)
    options = _options(dims, precision, target, purpose, memory_limit, device, import_folders)
    return Model(_einc.compile(source, text_name, options))


def report(
    path_or_text: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    precision: str | None = None,
    device: str = "",
    import_folders: tuple[str | os.PathLike[str], ...] = (),
    name: str | None = None,
) -> Report:
    """What a program costs, without compiling it further: dims may be left without values, amounts are formulas then."""
    source, text_name = _source(path_or_text, name)
    options = _options(dims, precision, device=device, import_folders=import_folders)
    later = source if text_name else os.path.abspath(source)  # other forms are made when they are asked for, in whatever folder

    def render(form: _einc.ReportForm) -> str:
        return _einc.report(source if form is _einc.ReportForm.json else later, text_name, form, options)

    return Report(render)


class _Tensors(Mapping[str, Any]):
    """The tensors of one role by name, read when they are asked for. Params and states may be set, which copies the values in."""

    def __init__(self, session: Session, role: _einc.Role, tensors: tuple[Tensor, ...]) -> None:
        self._session, self._role = session, role
        self._names = {tensor.name: None for tensor in tensors}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._session._session.read(self._role, name)

    def __setitem__(self, name: str, values: Any) -> None:
        if name not in self._names:
            raise KeyError(name)
        if self._role not in (_einc.Role.param, _einc.Role.state):
            raise UsageError(f"{name!r} is computed: params and states can be set")
        self._session.set(name, values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Session:
    """A program with values for its tensors, used by one thread at a time.

    Arrays that are given lie where they are: nothing is copied, and what they hold at a run counts. Arrays that come back are views
    of the session's memory, which the next run overwrites; with copy=True they are their own. Results of the targets cuda and
    reference are always copies. bf16 and fp8 tensors, which numpy lacks, come back as objects for `torch.from_dlpack`.
    """

    def __init__(self, model: Model, threads: int = 0, *, copy: bool = False, _team: list[int] | None = None) -> None:
        """threads: 0 is as many as the machine has; results are the same for any number."""
        self.model = model
        self._session = _einc.Session(model._compiled, threads, copy, _team)
        self.params = _Tensors(self, _einc.Role.param, model.params)
        self.states = _Tensors(self, _einc.Role.state, model.states)
        self.outputs = _Tensors(self, _einc.Role.output, model.outputs)
        self.gradients = _Tensors(self, _einc.Role.gradient, model.params)

    def init(self, seed: int = 0) -> Session:
        """Params and states as their initialisers say."""
        self._session.init(seed)
        return self

    def bind(self, name: str, array: Any) -> None:
        """From now on the tensor lies in the array. A step writes params and states there."""
        self._session.bind(name, array)

    def set(self, name: str, values: Any) -> None:
        """Values of an input, param or state, copied in."""
        self._session.set(name, values)

    def _bind_all(self, arrays: Mapping[str, Any] | None, named: Mapping[str, Any]) -> None:
        for name, array in {**(arrays or {}), **named}.items():
            self._session.bind(name, array)

    def run(self, arrays: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """The outputs by name. Inputs that are not given keep their arrays."""
        self._bind_all(arrays, named)
        self._session.run()
        return dict(self.outputs)

    def step(self, arrays: Mapping[str, Any] | None = None, /, **named: Any) -> float:
        """One training step: new params and states. Gives the loss."""
        self._bind_all(arrays, named)
        return self._session.step()

    def evaluate(self, arrays: Mapping[str, Any] | None = None, /, **named: Any) -> float:
        """The loss of the params as they are, without dropout."""
        self._bind_all(arrays, named)
        return self._session.evaluate()

    @property
    def loss(self) -> float:
        """Of the last step."""
        return self._session.loss()

    @property
    def steps(self) -> int:
        """Done since init, or in the life of the checkpoint."""
        return self._session.steps()

    def load(self, path: str | os.PathLike[str], names: str | os.PathLike[str] = "") -> Loaded:
        """Params and states from a .safetensors or .npz file. `names`: a file that says what its tensors are called here."""
        return Loaded(*self._session.load(os.fspath(path), os.fspath(names)))

    def save(self, path: str | os.PathLike[str], *, states: bool = False) -> None:
        """A .safetensors file of the params, and the states too if asked; whole or not at all."""
        self._session.save(os.fspath(path), states)

    def save_checkpoint(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        self._session.save_checkpoint(os.fspath(folder), keep)

    def resume(self, folder: str | os.PathLike[str]) -> bool:
        """Goes on from the folder's newest checkpoint with the same bits. False: there is none."""
        return self._session.resume(os.fspath(folder))
