# SPDX-License-Identifier: Apache-2.0
"""Writes the .safetensors files beside this script with the `safetensors` package (and torch): run it after changing it."""
import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent
TORCH = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F8_E4M3": torch.float8_e4m3fn,
         "F8_E5M2": torch.float8_e5m2, "I64": torch.int64, "I32": torch.int32, "U16": torch.uint16, "U8": torch.uint8,
         "BOOL": torch.bool}

# Every dtype: [0, 1, 2, 3, 4, 5] as [2, 3]; bools 0 1 1 1 1 1.
every = {f"t.{name}": torch.arange(6, dtype=torch.float32).to(dtype).reshape(2, 3) for name, dtype in TORCH.items()}
save_file(every, FOLDER / "every_dtype.safetensors")

# A scalar, an empty tensor, metadata, a dtype that einc has not, names that JSON must escape.
odd = {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "bytes": torch.tensor([-1, 1], dtype=torch.int8),
       'a "quoted"\n\u00e9': torch.tensor([7], dtype=torch.int32)}
save_file(odd, FOLDER / "odd.safetensors", metadata={"format": "pt"})
