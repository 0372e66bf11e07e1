# SPDX-License-Identifier: Apache-2.0
"""Single patterns as functions, to try one in a line:

    from einc.numpy import einsum, rearrange, reduce, repeat
    rearrange(image, "(h2 p) (w2 q) c -> h2 w2 (p q c)", p=8, q=8)
    einsum(x, w, "batch in, in out -> batch out")

Each pattern is compiled once for the shapes and dtypes it meets, and kept. Results are new arrays.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from einc._errors import UsageError
from einc._program import Session, compile

__all__ = ["einsum", "rearrange", "reduce", "repeat"]

_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "uint16": "u16", "uint8": "u8", "bool": "bool"}
_SMALL = 1 << 16  # elements: below, starting threads takes longer than the work


class _Compiled:
    def __init__(self, text: str, elements: int) -> None:
        model = compile(text, purpose="inference", name="pattern")
        self._session = Session(model, 1 if elements < _SMALL else 0, copy=True)
        self._lock = threading.Lock()

    def __call__(self, arrays: tuple[np.ndarray, ...]) -> Any:
        with self._lock:
            return self._session.run({f"x{i}": array for i, array in enumerate(arrays)})["y"]


@functools.lru_cache(maxsize=256)
def _compiled(function: str, tail: str, types: tuple[tuple[str, tuple[int, ...]], ...]) -> _Compiled:
    lines, elements = [], 0
    for i, (dtype, shape) in enumerate(types):
        axes = " ".join(f"axis{k}={size}" for k, size in enumerate(shape))
        lines.append(f"input x{i}: {dtype}[{axes}]")
        elements += int(np.prod(shape, dtype=np.int64))
    operands = ", ".join(f"x{i}" for i in range(len(types)))
    lines.append(f"output y = {function}({operands}, {tail})")
    return _Compiled("\n".join(lines) + "\n", elements)


def _quoted(text: Any, what: str) -> str:
    if not isinstance(text, str):
        raise UsageError(f"the {what} is a {type(text).__name__}: it is a text, and stands behind the arrays")
    if any(c in text for c in '"\\\n'):
        raise UsageError(f"the {what} {text!r} holds a character that no pattern has")
    return f'"{text}"'


def _call(function: str, arrays: tuple[Any, ...], tail: list[str], sizes: dict[str, int]) -> np.ndarray:
    given = tuple(np.asarray(array) for array in arrays)
    for array in given:
        if array.dtype.name not in _DTYPES:
            raise UsageError(f"no pattern works on elements of {array.dtype}: one of {', '.join(_DTYPES)}")
    tail = tail + [f"{name}={int(size)}" for name, size in sorted(sizes.items())]
    types = tuple((_DTYPES[array.dtype.name], array.shape) for array in given)
    return _compiled(function, ", ".join(tail), types)(given)


def einsum(*arrays_and_pattern: Any, **sizes: int) -> np.ndarray:
    """einsum(a, b, ..., "pa, pb, ... -> out"): sums of products of any number of arrays."""
    if len(arrays_and_pattern) < 2:
        raise UsageError('einsum takes arrays and a pattern: einsum(a, b, "i k, k j -> i j")')
    *arrays, pattern = arrays_and_pattern
    return _call("einsum", tuple(arrays), [_quoted(pattern, "pattern")], sizes)


def rearrange(x: Any, pattern: str, **sizes: int) -> np.ndarray:
    """rearrange(x, "batch (h d) -> batch h d", h=8): axes permuted, split and merged."""
    return _call("rearrange", (x,), [_quoted(pattern, "pattern")], sizes)


def reduce(x: Any, pattern: str, reduction: str, **sizes: int) -> np.ndarray:
    """reduce(x, "b (h 2) c -> b h c", "max"): sum mean max min prod var logsumexp any all of what the right lacks."""
    return _call("reduce", (x,), [_quoted(pattern, "pattern"), _quoted(reduction, "reduction")], sizes)


def repeat(x: Any, pattern: str, **sizes: int) -> np.ndarray:
    """repeat(x, "h w -> h w c", c=3): new axes, along which x is the same."""
    return _call("repeat", (x,), [_quoted(pattern, "pattern")], sizes)
