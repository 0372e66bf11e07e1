// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/gelu_slope.h"

#include <cmath>
#include <numbers>

namespace einc {
namespace {

class SlopeReader {
 public:
  explicit SlopeReader(const Kernel& kernel) : kernel_(kernel) {}

  // erf(x / sqrt 2) / 2 + 1/2
  std::optional<ValueId> argument_of_distribution(ValueId id) const {
    const auto doubled = times_constant(id, 0.5);
    const auto erf = doubled ? beside_constant(*doubled, MapFn::add, 1) : std::nullopt;
    const Scalar* v = erf ? map(*erf, MapFn::erf) : nullptr;
    return v ? times_constant(v->operands[0], std::numbers::sqrt2 / 2) : std::nullopt;
  }

  // x exp(-x^2 / 2) / sqrt(2 pi)
  bool is_density_times(ValueId id, ValueId x) const {
    const Scalar* v = map(id, MapFn::mul);
    if (!v || (v->operands[0] != x && v->operands[1] != x)) return false;
    const auto exp = times_constant(v->operands[v->operands[0] == x ? 1 : 0], std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    const Scalar* e = exp ? map(*exp, MapFn::exp) : nullptr;
    const auto square = e ? times_constant(e->operands[0], -0.5) : std::nullopt;
    const Scalar* s = square ? map(*square, MapFn::mul) : nullptr;
    return s && s->operands[0] == x && s->operands[1] == x;
  }

 private:
  const Scalar* map(ValueId id, MapFn fn) const {
    const Scalar& v = kernel_.values[id];
    return v.kind == ScalarKind::map && v.fn == fn && v.dtype == DType::f32 ? &v : nullptr;
  }

  std::optional<ValueId> times_constant(ValueId id, double number) const { return beside_constant(id, MapFn::mul, number); }

  std::optional<ValueId> beside_constant(ValueId id, MapFn fn, double number) const {
    const Scalar* v = map(id, fn);
    if (!v) return std::nullopt;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const Scalar& c = kernel_.values[v->operands[k]];
      if (c.kind == ScalarKind::constant && std::fabs(c.real - number) <= 0x1p-24 * std::fabs(number)) return v->operands[1 - k];
    }
    return std::nullopt;
  }

  const Kernel& kernel_;
};

}  // namespace

std::optional<ValueId> argument_of_gelu_slope(const Kernel& kernel, const Scalar& sum) {
  if (sum.kind != ScalarKind::map || sum.fn != MapFn::add || sum.dtype != DType::f32) return std::nullopt;
  const SlopeReader reader(kernel);
  for (const size_t k : {size_t{0}, size_t{1}})
    if (const auto x = reader.argument_of_distribution(sum.operands[k]); x && reader.is_density_times(sum.operands[1 - k], *x)) return x;
  return std::nullopt;
}

}  // namespace einc
