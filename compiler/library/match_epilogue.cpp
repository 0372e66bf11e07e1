// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/match_epilogue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "compiler/ir/map_value.h"

namespace einc {
namespace {

double gelu_slope(double x) {
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, k = 0.044715;
  const double t = std::tanh(c * (x + k * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * k * x * x);
}

class EpilogueMatcher {
 public:
  EpilogueMatcher(const Kernel& kernel, uint32_t product, int64_t columns) : kernel_(kernel), product_(product), columns_(columns) {}

  std::optional<EpilogueMatch> run() {
    if (!is_elementwise() || !find_place()) return std::nullopt;
    const std::vector<Store>& stores = kernel_.stages[0].stores;
    if (stores.empty()) return std::nullopt;
    dtype_ = dtype_of(stores[0].buffer);
    for (const Store& s : stores)
      if (s.mode != StoreMode::set || !(s.index == *place_) || dtype_of(s.buffer) != dtype_) return std::nullopt;
    if (stores.size() == 1) return match(stores[0], nullptr);
    if (stores.size() > 2) return std::nullopt;
    const auto found = match(stores[0], &stores[1]);
    return found ? found : match(stores[1], &stores[0]);
  }

 private:
  // The product plus what is added to it.
  struct Sum {
    bool product = false;
    std::optional<LibraryVector> bias;
    std::optional<uint32_t> addend;
  };

  DType dtype_of(uint32_t buffer) const { return kernel_.buffers[buffer].dtype; }

  bool is_elementwise() const {
    if (kernel_.stages.size() != 1 || !kernel_.stages[0].axes.empty() || kernel_.stages[0].ordered) return false;
    if (!kernel_.reductions.empty() || kernel_.sequence || kernel_.attention || kernel_.streams + kernel_.sites > 0) return false;
    return std::ranges::none_of(
        kernel_.buffers, [](const BufferUse& b) { return b.access == BufferAccess::scratch || b.access == BufferAccess::read_write; });
  }

  // Where the product is read: each of its elements once, at all points.
  bool find_place() {
    for (const Scalar& v : kernel_.values) {
      if (v.kind != ScalarKind::load || v.slot != product_) continue;
      if (!v.guards.empty() || !v.index.dynamic.empty() || (place_ && !(*place_ == v.index))) return false;
      place_ = v.index;
    }
    if (!place_ || place_->affine.constant != 0) return false;
    std::vector<AxisId> axes = kernel_.outer;
    std::erase_if(axes, [&](AxisId a) { return kernel_.extent(a) == 1; });
    std::ranges::sort(axes, {}, [&](AxisId a) { return place_->affine.coefficient(a); });
    int64_t step = 1;
    for (AxisId a : axes) {
      if (place_->affine.coefficient(a) != step) return false;
      step *= kernel_.extent(a);
    }
    return step == kernel_.buffers[product_].count;
  }

  bool lies_alike(const Scalar& load) const { return load.guards.empty() && load.index == *place_ && dtype_of(load.slot) == dtype_; }

  // One number for each column, from the buffer's start.
  bool is_bias(const Scalar& load) const {
    if (!load.guards.empty() || !load.index.dynamic.empty() || load.index.affine.constant != 0) return false;
    for (AxisId a : kernel_.outer) {
      if (kernel_.extent(a) == 1) continue;
      const int64_t step = place_->affine.coefficient(a), own = load.index.affine.coefficient(a);
      const bool in_row = step * kernel_.extent(a) <= columns_, of_rows = step % columns_ == 0;
      if (!(in_row && own == step) && !(of_rows && own == 0)) return false;
    }
    return kernel_.buffers[load.slot].count == columns_;
  }

  // Casts between floating formats in between round, as the epilogue does not.
  ValueId below_casts(ValueId id) const {
    while (kernel_.values[id].kind == ScalarKind::cast) id = kernel_.values[id].operands[0];
    return id;
  }

  bool add(ValueId id, Sum& sum) const {
    id = below_casts(id);
    const Scalar& v = kernel_.values[id];
    if (v.kind == ScalarKind::map && v.fn == MapFn::add) return add(v.operands[0], sum) && add(v.operands[1], sum);
    if (v.kind != ScalarKind::load) return false;
    if (v.slot == product_) return !std::exchange(sum.product, true);
    if (is_bias(v) && !sum.bias) {
      sum.bias = LibraryVector{v.slot, dtype_of(v.slot)};
      return true;
    }
    if (!lies_alike(v) || sum.addend) return false;
    sum.addend = v.slot;
    return true;
  }

  std::optional<Sum> sum_of(ValueId id) const {
    Sum sum;
    return add(id, sum) && sum.product ? std::optional(sum) : std::nullopt;
  }

  static bool same(const Sum& a, const Sum& b) {
    return a.addend == b.addend && a.bias.has_value() == b.bias.has_value() && (!a.bias || a.bias->buffer == b.bias->buffer);
  }

  // `other`: what is stored besides, the input of GELU.
  std::optional<EpilogueMatch> match(const Store& store, const Store* other) const {
    EpilogueMatch found;
    found.result = store.buffer;
    const Scalar& v = kernel_.values[below_casts(store.value)];
    const bool is_gelu = v.kind == ScalarKind::map && v.fn == MapFn::gelu_tanh;
    const std::optional<Sum> sum = sum_of(is_gelu ? v.operands[0] : store.value);
    if (!sum) return other ? std::nullopt : match_slope(store);
    found.epilogue.bias = sum->bias;
    found.epilogue.addend = sum->addend;
    if (!is_gelu) return other || (!sum->bias && !sum->addend) ? std::nullopt : std::optional(found);
    found.epilogue.activation = LibraryActivation::gelu;
    found.reads_product = !sum->bias && !sum->addend;
    if (!other) return found;
    const std::optional<Sum> kept = sum_of(other->value);
    if (!kept || !same(*kept, *sum)) return std::nullopt;
    found.epilogue.input = other->buffer;
    return found;
  }

  // The product times the slope of GELU at another value: found by its numbers, because the slope is written in many ways. Only analytic
  // functions are looked at, which are the same where they agree at so many points.
  std::optional<EpilogueMatch> match_slope(const Store& store) const {
    EpilogueMatch found;
    found.result = store.buffer;
    for (const Scalar& v : kernel_.values)
      if (v.kind == ScalarKind::load && v.slot != product_) {
        if (!lies_alike(v) || (found.epilogue.input && *found.epilogue.input != v.slot)) return std::nullopt;
        found.epilogue.input = v.slot;
      }
    if (!found.epilogue.input || *found.epilogue.input == store.buffer) return std::nullopt;
    found.epilogue.activation = LibraryActivation::gelu_slope;
    for (int i = -40; i <= 40; ++i) {
      const double x = 0.15 * i + 0.01, product = 1.25 - 0.3 * i, wanted = product * gelu_slope(x);
      std::map<ValueId, std::optional<double>> known;
      const std::optional<double> made = value(store.value, product, x, known);
      if (!made || !(std::abs(*made - wanted) <= 1e-9 * std::max(1.0, std::abs(wanted)))) return std::nullopt;
    }
    return found;
  }

  std::optional<double> value(ValueId id, double product, double input, std::map<ValueId, std::optional<double>>& known) const {
    if (const auto found = known.find(id); found != known.end()) return found->second;
    const Scalar& v = kernel_.values[id];
    std::optional<double> made;
    if (v.kind == ScalarKind::constant) {
      made = v.real;
    } else if (v.kind == ScalarKind::load) {
      made = v.slot == product_ ? product : input;
    } else if (v.kind == ScalarKind::cast) {
      made = value(v.operands[0], product, input, known);
    } else if (v.kind == ScalarKind::map && is_analytic(v.fn)) {
      std::array<double, 2> operands{};
      made = 0;
      for (size_t k = 0; k < v.operands.size(); ++k) {
        const std::optional<double> x = value(v.operands[k], product, input, known);
        if (!x) made.reset();
        operands[k] = x.value_or(0);
      }
      if (made) made = map_value(v.fn, operands[0], operands[1]);
    }
    return known[id] = made;
  }

  static bool is_analytic(MapFn fn) {
    return fn == MapFn::add || fn == MapFn::sub || fn == MapFn::mul || fn == MapFn::neg || fn == MapFn::exp || fn == MapFn::tanh ||
           fn == MapFn::sigmoid;
  }

  const Kernel& kernel_;
  const uint32_t product_;
  const int64_t columns_;
  std::optional<Subscript> place_;
  DType dtype_ = DType::f32;  // of all that is stored
};

}  // namespace

std::optional<EpilogueMatch> match_epilogue(const Kernel& kernel, uint32_t product, int64_t columns) {
  return EpilogueMatcher(kernel, product, columns).run();
}

}  // namespace einc
