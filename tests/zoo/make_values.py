#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes values/MODEL.json: what PyTorch in float64 makes of the models of this folder, gradients by every param included.

Run with a Python that has torch and numpy; the result is committed, so tests need neither. Names of models as arguments: only those.
"""
import json
import os
import sys

import torch

from torch_models import language, others, recurrent, vision
from torch_models.tensors import Tensors

MODELS = {model.__name__: model for module in (language, others, recurrent, vision) for model in module.MODELS}


def numbers(tensors):
    return {name: [float(f"{x:.11g}") for x in tensor.detach().flatten().tolist()] for name, tensor in tensors.items()}


def values(model):
    t = Tensors()
    outputs, loss, *states = model(t)
    gradients = dict(zip(t.params, torch.autograd.grad(loss, list(t.params.values()))))
    new_states = states[0] if states else {}
    return {"tensors": t.described, "outputs": numbers({**outputs, "loss": loss}), "gradients": numbers(gradients), "states": numbers(new_states)}


def text(data):
    """JSON, one tensor on a line."""
    parts = []
    for key, part in data.items():
        if isinstance(part, list):
            open_, rows, close = "[", [json.dumps(row) for row in part], "]"
        else:
            open_, rows, close = "{", [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in part.items()], "}"
        parts.append(f'"{key}": {open_}\n' + ",\n".join(rows) + close)
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values")
    for name in sys.argv[1:] or sorted(MODELS):
        with open(os.path.join(folder, name + ".json"), "w") as out:
            out.write(text(values(MODELS[name])))
