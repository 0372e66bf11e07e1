# SPDX-License-Identifier: Apache-2.0
"""What einc raises. `str(error)` is the rendered message: of a wrong program its lines, with carets under the places."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """A finding in a program's text. Lines and columns count from 1 (0: none); the end is just behind the place."""

    is_warning: bool
    code: str
    message: str
    hint: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class Error(Exception):
    """The base of all that einc raises."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics or []


class ProgramError(Error):
    """The program's text is wrong: `diagnostics` says where."""


class UsageError(Error, ValueError):
    """A call is wrong: no such tensor, another dtype or shape, a dim without a value."""


class DataError(Error, ValueError):
    """A file or a value is wrong: an index outside its table, a damaged file."""


class ResourceError(Error):
    """No memory, no file, no GPU, or a processor without what the code needs."""


class NumericError(Error, ArithmeticError):
    """A step would have stored a number that is not finite. Nothing changed."""


class InternalError(Error):
    """A defect of einc: please report it."""


_KINDS = {
    "program": ProgramError,
    "usage": UsageError,
    "data": DataError,
    "resource": ResourceError,
    "numeric": NumericError,
    "internal": InternalError,
}


def make(kind: str, message: str, diagnostics: list[tuple]) -> Error:
    """Called by the extension module."""
    return _KINDS[kind](message, [Diagnostic(*d) for d in diagnostics])
