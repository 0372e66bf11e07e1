// SPDX-License-Identifier: Apache-2.0
// Element types: the stated constants follow from the bit layout, names are read back, and promotion obeys its laws.
#include "runtime/base/dtype.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

using namespace einc;

namespace {

constexpr std::array kAll{DType::real,   DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3,
                          DType::f8e5m2, DType::i64, DType::i32, DType::u16,  DType::u8,  DType::boolean};

}  // namespace

TEST_CASE("dtype: bits, limits and names") {
  for (const DType d : kAll) {
    const DTypeInfo& i = info(d);
    CAPTURE(std::string(i.name));
    CHECK(bytes_of(d) * 8 == i.bits);
    CHECK(to_string(d) == i.name);
    CHECK(static_cast<int>(is_floating(d)) + static_cast<int>(is_integer(d)) == (d == DType::boolean ? 0 : 1));
    if (!is_floating(d)) {
      CHECK(i.exponent_bits == 0);
      CHECK(i.mantissa_bits == 0);
      continue;
    }
    CHECK(1 + i.exponent_bits + i.mantissa_bits == i.bits);
    const int bias = (1 << (i.exponent_bits - 1)) - 1;
    CHECK(i.epsilon == std::ldexp(1.0, -i.mantissa_bits));
    CHECK(i.smallest_normal == std::ldexp(1.0, 1 - bias));
    // f8e4m3 has no infinity: the top exponent holds numbers, all but the last pattern, which is nan.
    CHECK(i.largest == (d == DType::f8e4m3 ? std::ldexp(1.75, bias + 1) : std::ldexp(2 - i.epsilon, bias)));
  }
  CHECK(info(DType::u8).largest == 255);
  CHECK(info(DType::u16).largest == 65535);
  CHECK(info(DType::i32).largest == 2147483647.0);
  CHECK(info(DType::i64).largest == 9223372036854775807.0);
  CHECK(info(DType::boolean).largest == 1);
}

TEST_CASE("dtype: names a file may write") {
  for (const DType d : kAll) {
    if (d == DType::real) continue;
    CHECK(parse_dtype(to_string(d)) == d);
  }
  for (const char* name : {"real", "", "F32", "float", "f32 ", "f8", "int", "boolean"}) CHECK_FALSE(parse_dtype(name).has_value());
}

TEST_CASE("dtype: promotion") {
  struct Row {
    DType a, b, result;
  };
  const Row rows[] = {
      {DType::boolean, DType::u8, DType::u8},     {DType::u8, DType::u16, DType::u16},        {DType::u16, DType::i32, DType::i32},
      {DType::i32, DType::i64, DType::i64},       {DType::i64, DType::f16, DType::f16},       {DType::i64, DType::f8e4m3, DType::f8e4m3},
      {DType::i32, DType::real, DType::real},     {DType::f32, DType::f64, DType::f64},       {DType::bf16, DType::f32, DType::f32},
      {DType::bf16, DType::f16, DType::f32},      {DType::f8e4m3, DType::f8e5m2, DType::f16}, {DType::f8e5m2, DType::bf16, DType::bf16},
      {DType::real, DType::f32, DType::real},     {DType::real, DType::bf16, DType::real},    {DType::real, DType::f64, DType::f64},
      {DType::boolean, DType::real, DType::real},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(to_string(row.a)));
    CAPTURE(std::string(to_string(row.b)));
    CHECK(to_string(promote(row.a, row.b)) == to_string(row.result));
  }
}

TEST_CASE("dtype: promotion is commutative, keeps a dtype beside itself, and loses no range to a narrower operand") {
  for (const DType a : kAll) {
    CHECK(promote(a, a) == a);
    for (const DType b : kAll) {
      const DType p = promote(a, b);
      CHECK(p == promote(b, a));
      CHECK(promote(p, a) == p);
      CHECK(promote(p, b) == p);
      CHECK(is_floating(p) == (is_floating(a) || is_floating(b)));
      if (is_floating(a) == is_floating(b)) {
        CHECK(info(p).largest >= info(a).largest);
        CHECK(info(p).epsilon <= std::min(info(a).epsilon, info(b).epsilon));
      }
    }
  }
}
