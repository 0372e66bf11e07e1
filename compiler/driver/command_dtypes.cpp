// SPDX-License-Identifier: Apache-2.0
// `einc dtypes`: the number formats a tensor may have.
#include <fmt/format.h>

#include <limits>

#include "compiler/driver/command_line.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

std::string largest_text(DType d) {
  if (d == DType::i64) return std::to_string(std::numeric_limits<int64_t>::max());  // not exact as a double
  return is_floating(d) ? fmt::format("{}", info(d).largest) : fmt::format("{:.0f}", info(d).largest);
}

}  // namespace

ExitStatus dtypes_command(Arguments arguments) {
  CLI::App app("The number formats: bits, range and precision of each.", "einc dtypes");
  if (auto status = parse_arguments(app, arguments)) return *status;
  fmt::print("{:<7} {:>4}  {:>8}  {:>8}  {:>23}  {:>23}  {:>23}\n", "dtype", "bits", "exponent", "fraction", "largest", "smallest normal",
             "epsilon");
  for (DType d : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2, DType::i64, DType::i32, DType::u16,
                  DType::u8, DType::boolean}) {
    const DTypeInfo& row = info(d);
    const bool floating = is_floating(d);
    auto cell = [&](auto value) { return floating ? fmt::format("{}", value) : std::string("-"); };
    fmt::print("{:<7} {:>4}  {:>8}  {:>8}  {:>23}  {:>23}  {:>23}\n", row.name, row.bits, cell(row.exponent_bits), cell(row.mantissa_bits),
               largest_text(d), cell(row.smallest_normal), cell(row.epsilon));
  }
  return ExitStatus::done;
}

}  // namespace einc
