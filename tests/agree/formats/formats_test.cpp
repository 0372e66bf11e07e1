// SPDX-License-Identifier: Apache-2.0
// Conversions to and from the formats of 16 and 8 bits, of the runtime and of generated code, against table.txt, which other
// libraries made (make_table.py says what its lines hold): every code, and every place where rounding turns.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/float_format.h"
#include "runtime/data/inflate.h"
#include "runtime/executor/executor.h"

using namespace einc;

namespace {

constexpr DType kFormats[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
constexpr uint16_t kNan = 0xFFFF;  // stands for every NaN
constexpr uint32_t kNanWord = 0x7FC00000;
constexpr size_t kBlock = 256;

// The elements of a cast from one dtype to another by generated code, as stored bytes.
std::vector<std::byte> cast_on_cpu(DType from, DType to, std::span<const std::byte> elements) {
  const auto count = static_cast<int64_t>(elements.size()) / bytes_of(from);
  const Compilation c = compile_text(
      "cast.ein", fmt::format("dim n = {}\ninput x: {}[n]\noutput y = cast(x, {})\n", count, to_string(from), to_string(to)), {});
  REQUIRE(c.graph);
  CpuOptions options;
  options.mode = RunMode::inference;
  options.cache.clear();
  const CpuProgram program(*c.graph, {}, options);
  Executor executor(program.program(), program.functions(), 1);
  const std::span<std::byte> input = executor.bytes(static_cast<uint32_t>(executor.find(BufferRole::input, "x")));
  REQUIRE(input.size() == elements.size());
  std::memcpy(input.data(), elements.data(), elements.size());
  executor.run(0, 0);
  return executor.get(program.program().outputs.front().buffer).bytes;
}

template <class T>
std::vector<T> elements_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Codes of a format as its elements lie in memory, and back.
std::vector<std::byte> stored(DType format, const std::vector<uint16_t>& codes) {
  const auto width = static_cast<size_t>(bytes_of(format));
  std::vector<std::byte> bytes(codes.size() * width);
  for (size_t i = 0; i < codes.size(); ++i) std::memcpy(bytes.data() + i * width, &codes[i], width);
  return bytes;
}

std::vector<uint16_t> codes_of(DType format, const std::vector<std::byte>& bytes) {
  const auto width = static_cast<size_t>(bytes_of(format));
  std::vector<uint16_t> codes(bytes.size() / width);
  for (size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], bytes.data() + i * width, width);
  return codes;
}

enum class Maker { runtime, generated };

template <class From>
std::vector<uint16_t> encode(Maker maker, DType from, DType format, const std::vector<From>& values) {
  std::vector<uint16_t> codes(values.size());
  if (maker == Maker::generated)
    codes = codes_of(format, cast_on_cpu(from, format, std::as_bytes(std::span(values))));
  else
    for (size_t i = 0; i < values.size(); ++i) codes[i] = encode_float(format, static_cast<double>(values[i]));
  for (uint16_t& code : codes)
    if (std::isnan(decode_float(format, code))) code = kNan;
  return codes;
}

std::vector<uint32_t> decode(Maker maker, DType format, const std::vector<uint16_t>& codes) {
  std::vector<float> values(codes.size());
  if (maker == Maker::generated)
    values = elements_of<float>(cast_on_cpu(format, DType::f32, stored(format, codes)));
  else
    for (size_t i = 0; i < codes.size(); ++i) values[i] = static_cast<float>(decode_float(format, codes[i]));
  std::vector<uint32_t> words(values.size());
  for (size_t i = 0; i < values.size(); ++i) words[i] = std::isnan(values[i]) ? kNanWord : std::bit_cast<uint32_t>(values[i]);
  return words;
}

// The value of a code without its sign, as if exponents went on beyond the largest finite one.
double magnitude(DType format, int code) {
  const DTypeInfo& f = info(format);
  const int bias = (1 << (f.exponent_bits - 1)) - 1, exponent = code >> f.mantissa_bits, fraction = code & ((1 << f.mantissa_bits) - 1);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias - f.mantissa_bits)
                       : std::ldexp(fraction + (1 << f.mantissa_bits), exponent - bias - f.mantissa_bits);
}

// The table's numbers for one code; none for the last code of a sign.
template <class F>
void add_turns(DType format, int code, std::vector<F>& into) {
  const int half = 1 << (info(format).bits - 1), low = code & (half - 1);
  if (low == half - 1) return;
  const F sign = code >= half ? F{-1} : F{1}, up = std::numeric_limits<F>::infinity();
  const auto a = static_cast<F>(magnitude(format, low)), b = static_cast<F>(magnitude(format, low + 1));
  const auto middle = static_cast<F>((magnitude(format, low) + magnitude(format, low + 1)) / 2);
  for (const F x : {a, b, middle, std::nextafter(middle, up), std::nextafter(middle, F{0}), std::nextafter(a, up), std::nextafter(b, F{0})})
    into.push_back(sign * x);
}

struct Row {
  std::string kind, format;
  uint32_t at = 0, result = 0;
};

std::vector<Row> table() {
  std::ifstream in(EINC_SOURCE_DIR "/tests/agree/formats/table.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Row row;
    words >> row.kind >> row.format;
    if (row.kind == "special")
      words >> std::hex >> row.at >> row.result;
    else
      words >> row.at >> std::hex >> row.result;
    REQUIRE(words);
    rows.push_back(row);
  }
  return rows;
}

void check_table(Maker maker) {
  const std::vector<Row> rows = table();
  size_t checked = 0;
  for (const DType format : kFormats) {
    CAPTURE(to_string(format));
    std::vector<uint16_t> codes;
    std::vector<float> turns, specials;
    std::vector<size_t> first_turn;  // of each block
    for (int code = 0; code < 1 << info(format).bits; ++code) {
      if (code % static_cast<int>(kBlock) == 0) first_turn.push_back(turns.size());
      codes.push_back(static_cast<uint16_t>(code));
      add_turns(format, code, turns);
    }
    first_turn.push_back(turns.size());
    std::vector<uint16_t> special_codes;
    for (const Row& row : rows)
      if (row.kind == "special" && row.format == to_string(format)) {
        specials.push_back(std::bit_cast<float>(row.at));
        special_codes.push_back(static_cast<uint16_t>(row.result));
      }
    const std::vector<uint32_t> decoded = decode(maker, format, codes);
    const std::vector<uint16_t> rounded = encode(maker, DType::f32, format, turns);
    CHECK(encode(maker, DType::f32, format, specials) == special_codes);
    for (const Row& row : rows) {
      if (row.kind == "special" || row.format != to_string(format)) continue;
      CAPTURE(row.kind);
      CAPTURE(row.at);
      const size_t begin = row.kind == "decode" ? row.at * kBlock : first_turn[row.at];
      const size_t end = row.kind == "decode" ? begin + kBlock : first_turn[row.at + 1];
      const uint32_t crc = row.kind == "decode" ? crc32_of(0, std::as_bytes(std::span(decoded).subspan(begin, end - begin)))
                                                : crc32_of(0, std::as_bytes(std::span(rounded).subspan(begin, end - begin)));
      CHECK(crc == row.result);
      ++checked;
    }
  }
  CHECK(checked == 2 * (256 + 256 + 1 + 1));
}

template <class From>
void check_alike(DType from, DType format, const std::vector<From>& values) {
  const std::vector<uint16_t> expected = encode(Maker::runtime, from, format, values),
                              made = encode(Maker::generated, from, format, values);
  int shown = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (made[i] != expected[i] && shown++ < 5)
      FAIL_CHECK(to_string(from), " ", values[i], " to ", to_string(format), ": ", made[i], " instead of ", expected[i]);
}

}  // namespace

TEST_CASE("the runtime's conversions are the table's") { check_table(Maker::runtime); }
TEST_CASE("generated conversions are the table's") { check_table(Maker::generated); }

TEST_CASE("f64 is rounded once, not by way of f32") {
  for (const DType format : kFormats) {
    std::vector<double> turns;
    for (int code = 0; code < 1 << info(format).bits; ++code) add_turns(format, code, turns);
    for (const double x : {1e300, -1e300, 1e-300, -1e-320, 3.5e38, std::numeric_limits<double>::infinity(), std::nan("")})
      turns.push_back(x);
    check_alike(DType::f64, format, turns);
  }
}

TEST_CASE("integers are rounded once") {
  for (const DType format : kFormats) {
    std::vector<int32_t> narrow{0, 1, -1, INT32_MAX, INT32_MIN, 65519, 65520, 65521, 464, 465, 61439, 61440};
    std::vector<int64_t> wide{0, INT32_MAX, -65520, int64_t{1} << 40};
    for (int shift = 9; shift < 30; ++shift)  // ties of bf16, and one beside each
      for (const int32_t off : {-1, 0, 1})
        for (const int32_t odd : {1, 3, 127, 129}) narrow.push_back((256 + odd) * (1 << (shift - 8)) / 2 * 2 + off);
    for (int shift = 30; shift < 50; ++shift)
      for (const int64_t off : {-1, 0, 1})
        wide.push_back((int64_t{257} << (shift - 8)) + off), wide.push_back(-(int64_t{259} << (shift - 8)) + off);
    check_alike(DType::i32, format, narrow);
    check_alike(DType::i64, format, wide);
  }
}
