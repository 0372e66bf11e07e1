// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/tensor.h"

#include <doctest/doctest.h>

using namespace einc;

TEST_CASE("tensor: every dtype goes to its storage format and back") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    const Tensor t = Tensor::of_reals({2, 2}, {1, -2, 0.5, 0}, dtype);
    const HostArray array = to_host(t);
    CHECK(array.count() == 4);
    CHECK(array.dtype == dtype);
    const Tensor again = from_host(array);
    CHECK(again.dtype == dtype);
    CHECK(again.shape == t.shape);
    CHECK(again.reals == t.reals);
  }
  for (const DType dtype : {DType::i64, DType::i32, DType::u16, DType::u8, DType::boolean}) {
    const Tensor t = Tensor::of_ints({3}, {0, 1, dtype == DType::boolean ? 1 : 200}, dtype);
    CHECK(from_host(to_host(t)).ints == t.ints);
  }
  CHECK(from_host(to_host(Tensor::of_ints({1}, {INT64_MIN}, DType::i64))).ints[0] == INT64_MIN);
  CHECK(to_host(Tensor::of_reals({}, {1.0 / 3})).dtype == DType::f32);
}
