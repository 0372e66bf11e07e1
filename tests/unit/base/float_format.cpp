// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/float_format.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace einc;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kShort[] = {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2};
}  // namespace

TEST_CASE("float formats: every bit pattern survives decoding, rounding and encoding") {
  for (const DType dtype : kShort)
    for (int bits = 0; bits < 1 << info(dtype).bits; ++bits) {
      const double x = decode_float(dtype, static_cast<uint16_t>(bits));
      if (std::isnan(x)) {
        CHECK(std::isnan(decode_float(dtype, encode_float(dtype, x))));
        continue;
      }
      const double rounded = round_to_format(dtype, x);
      if (rounded != x || encode_float(dtype, x) != bits) FAIL_CHECK(info(dtype).name, " bits ", bits, " value ", x);
    }
}

TEST_CASE("float formats: ties go to the even neighbour, halves of neighbours elsewhere to the nearest") {
  for (const DType dtype : kShort)
    for (int bits = 0; bits + 1 < 1 << (info(dtype).bits - 1); ++bits) {
      const double a = decode_float(dtype, static_cast<uint16_t>(bits)), b = decode_float(dtype, static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(a) || !std::isfinite(b)) break;
      const double even = bits % 2 == 0 ? a : b;
      if (round_to_format(dtype, (a + b) / 2) != even) FAIL_CHECK(info(dtype).name, " tie above ", a);
      if (round_to_format(dtype, a + (b - a) * 0.51) != b || round_to_format(dtype, a + (b - a) * 0.49) != a)
        FAIL_CHECK(info(dtype).name, " near ", a);
    }
}

TEST_CASE("float formats: overflow, infinities and constants of each format") {
  CHECK(round_to_format(DType::f16, 65519) == 65504);
  CHECK(round_to_format(DType::f16, 65520) == kInf);
  CHECK(round_to_format(DType::f8e5m2, -1e6) == -kInf);
  CHECK(round_to_format(DType::f8e4m3, 464) == 448);
  CHECK(std::isnan(round_to_format(DType::f8e4m3, 465)));
  CHECK(std::isnan(round_to_format(DType::f8e4m3, kInf)));
  CHECK(round_to_format(DType::f32, 0.1) == static_cast<double>(0.1f));
  CHECK(round_to_format(DType::f64, 0.1) == 0.1);
  for (const DType dtype : kShort) {
    CHECK(round_to_format(dtype, info(dtype).largest) == info(dtype).largest);
    CHECK(round_to_format(dtype, info(dtype).smallest_normal) == info(dtype).smallest_normal);
    CHECK(round_to_format(dtype, 1 + info(dtype).epsilon) == 1 + info(dtype).epsilon);
    CHECK(std::signbit(round_to_format(dtype, -1e-30)) == true);
  }
}
