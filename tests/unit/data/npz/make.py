# SPDX-License-Identifier: Apache-2.0
"""Writes deflated.npz beside this script with NumPy: run it after changing it."""
import pathlib

import numpy as np

np.savez_compressed(pathlib.Path(__file__).parent / "deflated.npz", zeros=np.zeros((100, 100), np.float32), few=np.array([8, 9], np.int32))
