// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/exact_casts.h"

#include <algorithm>

#include "compiler/lower/scaled_value.h"
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
    if (const auto number = constant_number(kernel_, id)) return round_to_format(DType::bf16, *number) == *number;
    return v.dtype == DType::bf16 || (v.dtype == DType::f32 && keeps_digits(v));
  }

  bool keeps_digits(const Scalar& v) const {
    const auto& x = v.operands;
    if (v.kind == ScalarKind::cast) return is_exact(x[0]);
    if (v.kind != ScalarKind::map) return false;
    if (v.fn == MapFn::where) return is_exact(x[1]) && is_exact(x[2]);
    return v.fn == MapFn::mul && ((is_power(x[0]) && is_exact(x[1])) || (is_exact(x[0]) && is_power(x[1])));
  }

  bool is_power(ValueId id) const {
    const auto number = constant_number(kernel_, id);
    return number && is_power_of_two(*number);
  }

  const Kernel& kernel_;
};

// What a product multiplies keeps its format: tensor cores take it as it is.
bool is_factor(const Kernel& kernel, ValueId id) {
  return kernel.attention &&
         std::ranges::any_of(kernel.attention->steps, [&](const AttentionStep& s) { return s.left == id || s.right == id; });
}

}  // namespace

void drop_exact_casts(Kernel& kernel) {
  for (ValueId id = 0; id < kernel.values.size(); ++id)
    if (ExactCasts(kernel).is_needless(id) && !is_factor(kernel, id)) kernel.values[id].dtype = DType::f32;
}

}  // namespace einc
