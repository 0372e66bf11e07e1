// SPDX-License-Identifier: Apache-2.0
// Conversions of the prelude between formats, against those of the processor: every number of a short format, and every boundary where
// rounding changes its result, with the floats beside it.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "runtime/base/float_format.h"
#include "tests/cuda/device/run_kernel.h"

namespace einc {
namespace {

constexpr DType kShort[] = {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2};

std::string conversion_to(DType dtype) { return "to_" + element_type(dtype); }

// Bits of a format by the number that they are; NaNs are all one.
bool same(DType dtype, uint16_t got, uint16_t wanted) {
  return got == wanted || (std::isnan(decode_float(dtype, got)) && std::isnan(decode_float(dtype, wanted)));
}

// Where the format's numbers lie and where they meet: for both signs each finite number, the middle to the next one and its two
// neighbours as `T`; the largest number's end, and what is beyond.
template <class T>
std::vector<T> boundaries(DType dtype) {
  std::vector<T> values;
  const auto add = [&](double x) {
    const T value = static_cast<T>(x);
    for (const T v : {value, std::nextafter(value, T(0)), std::nextafter(value, std::numeric_limits<T>::infinity())})
      values.insert(values.end(), {v, -v});
  };
  const int bits = info(dtype).bits;
  for (uint16_t code = 0; code < 1 << (bits - 1); ++code) {
    const double number = decode_float(dtype, code), next = decode_float(dtype, static_cast<uint16_t>(code + 1));
    if (!std::isfinite(number)) continue;
    add(number);
    if (number < info(dtype).largest) {
      add((number + next) / 2);
      continue;
    }
    const double step = number - decode_float(dtype, static_cast<uint16_t>(code - 1));
    add(number + step / 2);
    add(number + step);
  }
  const T inf = std::numeric_limits<T>::infinity();
  values.insert(values.end(),
                {inf, -inf, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::max(), std::numeric_limits<T>::denorm_min()});
  return values;
}

std::vector<uint16_t> codes_of(DType dtype, const HostArray& array) {
  if (bytes_of(dtype) == 2) return elements_of<uint16_t>(array);
  const std::vector<uint8_t> bytes = elements_of<uint8_t>(array);
  return {bytes.begin(), bytes.end()};
}

template <class T>
void check_rounding(DType dtype, const std::string& name, DType from, const std::string& statement) {
  const std::vector<T> values = boundaries<T>(dtype);
  const auto results = for_each_element(name + "_" + element_type(dtype), statement, {array_of(from, values)},
                                        {{dtype, static_cast<int64_t>(values.size())}});
  const std::vector<uint16_t> codes = codes_of(dtype, results[0]);
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t wanted = encode_float(dtype, static_cast<double>(values[i]));
    if (same(dtype, codes[i], wanted) || ++wrong > 5) continue;
    CAPTURE(values[i]);
    CHECK(codes[i] == wanted);
  }
  CAPTURE(to_string(dtype));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every number of the short formats as f32") {
  for (const DType dtype : kShort) {
    const int64_t count = int64_t{1} << info(dtype).bits;
    const auto results = for_each_element("widen_" + element_type(dtype),
                                          "y0[i] = to_f32(" + element_type(dtype) + "{" + (count > 256 ? "u16" : "u8") + "(i)});", {},
                                          {{DType::f32, count}});
    const std::vector<uint32_t> bits = elements_of<uint32_t>(results[0]);
    size_t wrong = 0;
    for (size_t i = 0; i < bits.size(); ++i) {
      const auto wanted = static_cast<float>(decode_float(dtype, static_cast<uint16_t>(i)));
      const bool right = std::isnan(wanted) ? std::isnan(std::bit_cast<float>(bits[i])) : bits[i] == std::bit_cast<uint32_t>(wanted);
      if (right || ++wrong > 5) continue;
      CAPTURE(i);
      CHECK(std::bit_cast<float>(bits[i]) == wanted);
    }
    CAPTURE(to_string(dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("f32 to the short formats, at every boundary") {
  for (const DType dtype : kShort) check_rounding<float>(dtype, "narrow", DType::f32, "y0[i] = " + conversion_to(dtype) + "(x0[i]);");
}

TEST_CASE("f32 rounded to bf16 in one instruction is the number that bf16 holds, at every boundary") {
  const std::vector<float> values = boundaries<float>(DType::bf16);
  const auto results = for_each_element("round_bf16", "y0[i] = round_to_bf16(x0[i]);", {array_of(DType::f32, values)},
                                        {{DType::f32, static_cast<int64_t>(values.size())}});
  const std::vector<float> rounded = elements_of<float>(results[0]);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto wanted = static_cast<float>(decode_float(DType::bf16, encode_float(DType::bf16, static_cast<double>(values[i]))));
    CAPTURE(values[i]);
    CHECK((std::isnan(wanted) ? std::isnan(rounded[i]) : std::bit_cast<uint32_t>(rounded[i]) == std::bit_cast<uint32_t>(wanted)));
  }
}

TEST_CASE("f64 to the short formats is rounded once") {
  for (const DType dtype : kShort)
    check_rounding<double>(dtype, "narrow_twice", DType::f64, "y0[i] = " + conversion_to(dtype) + "(odd_f32(x0[i]));");
}

TEST_CASE("two numbers packed at once") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<float> values = boundaries<float>(dtype);
    if (values.size() % 2) values.push_back(1);
    const auto count = static_cast<int64_t>(values.size() / 2);
    const auto results =
        for_each_element("pack_" + element_type(dtype), "y0[i] = i32(pack_" + element_type(dtype) + "x2(x0[i], x0[i + count]));",
                         {array_of(DType::f32, values)}, {{DType::i32, count}});
    const std::vector<uint32_t> pairs = elements_of<uint32_t>(results[0]);
    size_t wrong = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (!same(dtype, static_cast<uint16_t>(pairs[i]), encode_float(dtype, values[i]))) ++wrong;
      if (!same(dtype, static_cast<uint16_t>(pairs[i] >> 16), encode_float(dtype, values[i + pairs.size()]))) ++wrong;
    }
    CAPTURE(to_string(dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats to integers go towards zero and stop at the ends") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{0,      -0.9,    0.9,          1.5,        -1.5,         254.9,         255,           255.9,
                                   256,    65535.5, 2147483646.5, 2147483647, 2147483648.0, -2147483647.5, -2147483648.0, -2147483649.0,
                                   0x1p53, 0x1p62,  0x1p63,       -0x1p63,    0x1p64,       inf,           -inf,          std::nan("")};
  const auto count = static_cast<int64_t>(values.size());
  const auto results = for_each_element("whole", "y0[i] = to_i32(x0[i]);\ny1[i] = to_i64(x0[i]);\ny2[i] = to_whole(x0[i], 255);",
                                        {array_of(DType::f64, values)}, {{DType::i32, count}, {DType::i64, count}, {DType::i32, count}});
  const auto clamped = [](double x, double least, double largest) { return std::isnan(x) ? 0 : std::trunc(std::clamp(x, least, largest)); };
  const auto as_i32 = elements_of<int32_t>(results[0]), as_u8 = elements_of<int32_t>(results[2]);
  const auto as_i64 = elements_of<int64_t>(results[1]);
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(values[i]);
    CHECK(as_i32[i] == static_cast<int32_t>(clamped(values[i], -2147483648.0, 2147483647.0)));
    CHECK(as_u8[i] == static_cast<int32_t>(clamped(values[i], 0, 255)));
    const int64_t wanted =
        values[i] >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(clamped(values[i], -0x1p63, 0x1p62));
    CHECK(as_i64[i] == wanted);
  }
}

}  // namespace einc
