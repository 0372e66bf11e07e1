// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/exact_casts.h"

#include <cmath>
#include <optional>

#include "compiler/ir/map_value.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

class ExactCasts {
 public:
  explicit ExactCasts(const Kernel& kernel) : kernel_(kernel) {}

  // Whether a bf16 number is made of such alone, by what needs no rounding.
  bool is_needless(ValueId id) const { return kernel_.values[id].dtype == DType::bf16 && keeps_digits(kernel_.values[id]); }

 private:
  bool is_exact(ValueId id) const {
    const Scalar& v = kernel_.values[id];
    if (const auto number = constant(id)) return round_to_format(DType::bf16, *number) == *number;
    return v.dtype == DType::bf16 || (v.dtype == DType::f32 && keeps_digits(v));
  }

  bool keeps_digits(const Scalar& v) const {
    const auto& x = v.operands;
    if (v.kind == ScalarKind::cast) return is_exact(x[0]);
    if (v.kind != ScalarKind::map) return false;
    if (v.fn == MapFn::where) return is_exact(x[1]) && is_exact(x[2]);
    if (v.fn == MapFn::mul) return (is_power_of_two(x[0]) && is_exact(x[1])) || (is_exact(x[0]) && is_power_of_two(x[1]));
    return false;
  }

  bool is_power_of_two(ValueId id) const {
    const auto number = constant(id);
    int exponent = 0;
    return number && std::isfinite(*number) && std::fabs(std::frexp(*number, &exponent)) == 0.5;
  }

  // Of constants alone, as the generated code has it: each step in f32.
  std::optional<double> constant(ValueId id) const {
    const Scalar& v = kernel_.values[id];
    if (v.dtype != DType::f32) return std::nullopt;
    if (v.kind == ScalarKind::constant) return round_to_format(DType::f32, v.real);
    if (v.kind != ScalarKind::map || v.operands.size() > 2 || is_comparison(v.fn)) return std::nullopt;
    double x[2] = {};
    for (size_t i = 0; i < v.operands.size(); ++i) {
      const auto number = constant(v.operands[i]);
      if (!number) return std::nullopt;
      x[i] = *number;
    }
    return round_to_format(DType::f32, map_value(v.fn, x[0], x[1]));
  }

  const Kernel& kernel_;
};

}  // namespace

void drop_exact_casts(Kernel& kernel) {
  for (ValueId id = 0; id < kernel.values.size(); ++id)
    if (ExactCasts(kernel).is_needless(id)) kernel.values[id].dtype = DType::f32;
}

}  // namespace einc
