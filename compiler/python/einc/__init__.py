# SPDX-License-Identifier: Apache-2.0
"""einc: a compiler for tensor programs with named axes.

    import einc, numpy as np

    model = einc.compile("mlp.ein", dims={"batch": 32})
    session = einc.Session(model)
    session.init(seed=1)
    loss = session.step(x=x, label=label)          # arrays of numpy, torch or jax, used in place
    logits = session.run(x=x, label=label)["logits"]
    print(model.report()["flops"]["step"])

`einc.torch` has programs as torch modules, `einc.numpy` single patterns as functions.
"""

from einc._einc import __version__
from einc._errors import DataError, Diagnostic, Error, InternalError, NumericError, ProgramError, ResourceError, UsageError
from einc._program import Loaded, Model, Session, Tensor, compile, report
from einc._report import Report

__all__ = [
    "DataError", "Diagnostic", "Error", "InternalError", "Loaded", "Model", "NumericError", "ProgramError", "Report", "ResourceError",
    "Session", "Tensor", "UsageError", "__version__", "compile", "report",
]
