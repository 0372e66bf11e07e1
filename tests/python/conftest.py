# SPDX-License-Identifier: Apache-2.0
"""What the Python suite shares. CTest runs it over build/.../python; `pytest` does over an installed wheel."""

import numpy as np
import pytest

import einc

LINEAR = """dim batch, features = 3
input x: f32[batch features]
input y: f32[batch]
param w: [features] ~ normal(0, 1)
p = einsum(x, w, "batch features, features -> batch")
output p
minimize mean((p - y)^2) using sgd(lr = 0.1)
"""


@pytest.fixture(scope="session")
def linear():
    return einc.compile(LINEAR, dims={"batch": 4}, name="linear.ein")


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    return {"x": generator.normal(size=(4, 3)).astype(np.float32), "y": generator.normal(size=4).astype(np.float32)}


def address(array):
    return array.__array_interface__["data"][0]
