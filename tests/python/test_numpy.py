# SPDX-License-Identifier: Apache-2.0
"""einc.numpy beside numpy itself."""

import numpy as np
import pytest

import einc
from einc.numpy import _compiled, einsum, rearrange, reduce, repeat


@pytest.fixture
def image():
    return np.random.default_rng(1).normal(size=(2, 8, 6, 3)).astype(np.float32)


def test_rearrange(image):
    np.testing.assert_array_equal(rearrange(image, "b h w c -> b c h w"), image.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(rearrange(image, "b (h p) (w q) c -> (b h w) (p q c)", p=4, q=3),
                                  image.reshape(2, 2, 4, 2, 3, 3).transpose(0, 1, 3, 2, 4, 5).reshape(8, 36))
    np.testing.assert_array_equal(rearrange(image, "b ... c -> c b ..."), image.transpose(3, 0, 1, 2))


def test_reduce(image):
    np.testing.assert_allclose(reduce(image, "b h w c -> b c", "mean"), image.mean((1, 2)), rtol=1e-5)
    np.testing.assert_array_equal(reduce(image, "b (h p) w c -> b h w c", "max", p=2), image.reshape(2, 4, 2, 6, 3).max(2))


def test_repeat(image):
    np.testing.assert_array_equal(repeat(image, "b h w c -> b (h r) w c", r=2), image.repeat(2, 1))


def test_einsum():
    generator = np.random.default_rng(2)
    a, b, c = (generator.normal(size=shape) for shape in ((5, 4), (4, 3), (3, 2)))
    np.testing.assert_allclose(einsum(a, b, c, "i j, j k, k l -> i l"), a @ b @ c, rtol=1e-12)
    assert einsum(a, a, "i j, i j ->") == pytest.approx((a * a).sum(), rel=1e-12)
    assert einsum(np.arange(6).reshape(2, 3), "i j -> i").tolist() == [3, 12]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_dtypes_stay(dtype):
    x = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    assert rearrange(x, "a b -> b a").dtype == dtype


def test_a_pattern_is_compiled_once(image):
    _compiled.cache_clear()
    first = rearrange(image, "b h w c -> w b h c")
    second = rearrange(image + 1, "b h w c -> w b h c")
    assert _compiled.cache_info().misses == 1 and _compiled.cache_info().hits == 1
    np.testing.assert_array_equal(first + 1, second)  # results are their own


def test_mistakes(image):
    with pytest.raises(einc.ProgramError, match="pattern"):
        rearrange(image, "b h w -> b h")
    with pytest.raises(einc.UsageError, match="stands behind the arrays"):
        einsum("i j, j k -> i k", image, image)
    with pytest.raises(einc.UsageError, match="character"):
        rearrange(image, 'b h w c -> b" + x')
    with pytest.raises(einc.UsageError, match="complex64"):
        rearrange(image.astype(np.complex64), "b h w c -> b c h w")
