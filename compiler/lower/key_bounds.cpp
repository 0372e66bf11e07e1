// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/tensor.h"
#include "compiler/lower/attention.h"

namespace einc {
namespace {

// What is known of a value of a pair when one comparison is taken to be true or false.
enum class Known : uint8_t { nothing, zero, minus_infinity, yes, no };

// Formulas are worked out in 64 bits, masks in those of their dtype. Below this, a line and what is added to it wrap in neither.
constexpr int64_t kFarthest = int64_t{1} << 30;

class BoundFinder {
 public:
  explicit BoundFinder(const Kernel& kernel)
      : kernel_(kernel), a_(*kernel.attention), axes_(axes_of_values(kernel)), needs_(reductions_of_values(kernel)) {
    // Each from its operands, which stand before it: an expression of shared values has more paths than can be gone.
    for (ValueId id = 0; id < kernel.values.size(); ++id) lines_.push_back(line_of(id));
  }

  std::vector<KeyMask> run() {
    std::vector<KeyMask> masks;
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      for (const Known assumed : {Known::no, Known::yes})
        if (const auto bound = bound_of(id, assumed == Known::no); bound && adds_nothing(id, assumed) && is_near(*bound))
          masks.push_back({id, assumed == Known::no, *bound});
    return masks;
  }

 private:
  // An integer formula of row and key, plus `sign` times a value of the points, if any.
  struct Line {
    int64_t row = 0, key = 0, constant = 0, sign = 0;
    ValueId base = kNoValue;
  };

  static std::optional<Line> difference(const Line& x, const Line& y) {
    Line d{x.row - y.row, x.key - y.key, x.constant - y.constant, x.sign - y.sign, x.base == kNoValue ? y.base : x.base};
    if (x.base != kNoValue && y.base != kNoValue && x.base != y.base) return std::nullopt;
    if (d.sign == 0) d.base = kNoValue;
    return d;
  }

  std::optional<Line> line_of(ValueId id) const {
    const DType dtype = kernel_.values[id].dtype;
    if (is_floating(dtype)) return std::nullopt;
    const std::optional<Line> exact = formula(id);
    if (exact && fits(*exact, dtype) && exact->base == kNoValue) return exact;
    const uint64_t points = bits(a_.batch) | bits(a_.turns);
    if ((axes_[id] & ~points) == 0 && needs_[id] == 0) return Line{0, 0, 0, 1, id};
    return exact && fits(*exact, dtype) ? exact : std::nullopt;
  }

  // Whether the dtype holds the line at every row and key.
  bool fits(const Line& l, DType dtype) const {
    double low = static_cast<double>(l.constant), high = low;
    for (const auto& [factor, axis] : {std::pair(l.row, a_.row), std::pair(l.key, a_.key)}) {
      const double last = static_cast<double>(factor) * static_cast<double>(kernel_.extent(axis) - 1);
      (last < 0 ? low : high) += last;
    }
    if (std::max(-low, high) >= static_cast<double>(kFarthest) || (l.base != kNoValue && bytes_of(dtype) < 4)) return false;
    const auto is_kept = [&](double x) { return wrap_integer(dtype, static_cast<int64_t>(x)) == static_cast<int64_t>(x); };
    return is_kept(low) && is_kept(high);
  }

  // Whether what a bound adds to its limit is known, and nowhere far.
  bool is_near(const KeyBound& bound) const {
    const auto bases = bases_of(kernel_, {&bound, 1});
    return bases && std::ranges::all_of(bases->numbers, [](int64_t x) { return -kFarthest < x && x < kFarthest; });
  }

  std::optional<Line> formula(ValueId id) const {
    const Scalar& v = kernel_.values[id];
    if (v.kind == ScalarKind::constant) return Line{0, 0, v.integer};
    if (v.kind == ScalarKind::cast) return lines_[v.operands[0]];
    if (v.kind == ScalarKind::index) {
      if (!v.index.dynamic.empty()) return std::nullopt;
      Line l{0, 0, v.index.affine.constant};
      for (const Affine::Term& t : v.index.affine.terms) {
        if (t.axis != a_.row && t.axis != a_.key) return std::nullopt;
        (t.axis == a_.row ? l.row : l.key) += t.coefficient;
      }
      return l;
    }
    if (v.kind != ScalarKind::map || (v.fn != MapFn::add && v.fn != MapFn::sub)) return std::nullopt;
    auto x = lines_[v.operands[0]], y = lines_[v.operands[1]];
    if (!x || !y) return std::nullopt;
    if (v.fn == MapFn::add) y = Line{-y->row, -y->key, -y->constant, -y->sign, y->base};
    return difference(*x, *y);
  }

  // The pairs where comparison `id` has the value `wanted`, as a bound of the keys.
  std::optional<KeyBound> bound_of(ValueId id, bool wanted) const {
    const Scalar& v = kernel_.values[id];
    if (v.kind != ScalarKind::map || !is_comparison(v.fn) || v.fn == MapFn::equal || v.fn == MapFn::not_equal) return std::nullopt;
    auto x = lines_[v.operands[0]], y = lines_[v.operands[1]];
    if (!x || !y) return std::nullopt;
    const bool strict = v.fn == MapFn::less || v.fn == MapFn::greater;
    if (v.fn == MapFn::greater || v.fn == MapFn::greater_equal) std::swap(x, y);
    const auto d = difference(*x, *y);
    if (!d) return std::nullopt;
    // below: key * k + row * r + c + s * base <= 0
    int64_t k = d->key, r = d->row, c = d->constant + (strict ? 1 : 0), s = d->sign;
    if (!wanted) k = -k, r = -r, c = 1 - c, s = -s;
    if (s != 0 && s != -k) return std::nullopt;
    if (k == 1) return KeyBound{BoundSide::most, -r, -c, d->base};
    if (k == -1) return KeyBound{BoundSide::least, r, c, d->base};
    return std::nullopt;
  }

  bool adds_nothing(ValueId comparison, Known assumed) {
    known_.assign(kernel_.values.size(), Known::nothing);
    for (ValueId id = 0; id < kernel_.values.size(); ++id) known_[id] = id == comparison ? assumed : of(kernel_.values[id]);
    return std::all_of(a_.steps.begin(), a_.steps.end(), [&](const AttentionStep& step) {
      if (step.part == AttentionPart::scores) return true;
      if (step.part != AttentionPart::fold) return known_[step.left] == Known::zero;
      const Accumulation& r = kernel_.reductions[step.reduction];
      return (r.fold == Fold::sum && known_[r.value] == Known::zero) || (r.fold == Fold::max && known_[r.value] == Known::minus_infinity);
    });
  }

  Known of(const Scalar& v) const {
    if (v.kind == ScalarKind::constant) {
      if (!is_floating(v.dtype)) return v.dtype != DType::boolean ? Known::nothing : v.integer != 0 ? Known::yes : Known::no;
      return v.real == 0 ? Known::zero : v.real == -std::numeric_limits<double>::infinity() ? Known::minus_infinity : Known::nothing;
    }
    if (v.kind == ScalarKind::cast) return known_[v.operands[0]];
    return v.kind == ScalarKind::map ? of_map(v) : Known::nothing;
  }

  Known of_map(const Scalar& v) const {
    const auto x = [&](size_t k) { return known_[v.operands[k]]; };
    const bool any_zero = x(0) == Known::zero || (v.operands.size() > 1 && x(1) == Known::zero);
    if (v.fn == MapFn::where) {
      if (x(0) == Known::yes) return x(1);
      if (x(0) == Known::no) return x(2);
      return x(1) == x(2) ? x(1) : Known::nothing;
    }
    if (v.fn == MapFn::logical_and) return x(0) == Known::no || x(1) == Known::no ? Known::no : x(0) == x(1) ? x(0) : Known::nothing;
    if (v.fn == MapFn::logical_or) return x(0) == Known::yes || x(1) == Known::yes ? Known::yes : x(0) == x(1) ? x(0) : Known::nothing;
    if (v.fn == MapFn::logical_not) return x(0) == Known::yes ? Known::no : x(0) == Known::no ? Known::yes : Known::nothing;
    if (v.fn == MapFn::add) {
      if (x(0) == Known::minus_infinity || x(1) == Known::minus_infinity) return Known::minus_infinity;
      return x(0) == Known::zero ? x(1) : x(1) == Known::zero ? x(0) : Known::nothing;
    }
    if (v.fn == MapFn::sub) return x(0) == Known::minus_infinity || x(1) == Known::zero ? x(0) : Known::nothing;
    if (v.fn == MapFn::mul) {
      if (any_zero) return Known::zero;
      for (size_t k = 0; k < 2; ++k)
        if (x(k) == Known::minus_infinity && is_positive(v.operands[1 - k])) return Known::minus_infinity;
    }
    if (v.fn == MapFn::div && x(0) == Known::minus_infinity && is_positive(v.operands[1])) return Known::minus_infinity;
    if ((v.fn == MapFn::div || v.fn == MapFn::neg) && x(0) == Known::zero) return Known::zero;
    if ((v.fn == MapFn::exp || v.fn == MapFn::sigmoid) && x(0) == Known::minus_infinity) return Known::zero;
    return Known::nothing;
  }

  // A positive constant, or a root of one.
  bool is_positive(ValueId id) const {
    const Scalar& v = kernel_.values[id];
    if (v.kind == ScalarKind::constant) return is_floating(v.dtype) && v.real > 0 && std::isfinite(v.real);
    return (v.kind == ScalarKind::cast || (v.kind == ScalarKind::map && (v.fn == MapFn::rsqrt || v.fn == MapFn::sqrt))) &&
           is_positive(v.operands[0]);
  }

  const Kernel& kernel_;
  const Attention& a_;
  const std::vector<uint64_t> axes_, needs_;
  std::vector<std::optional<Line>> lines_;  // by value
  std::vector<Known> known_;
};

// Whether each row has a key within all bounds. Lines that are in order for the first and the last row are in order between them.
bool leave_keys(std::span<const KeyBound> bounds, std::span<const int64_t> bases, int64_t last_row) {
  for (size_t low = 0; low < bounds.size(); ++low)
    for (size_t high = 0; high < bounds.size(); ++high) {
      if (bounds[low].side != BoundSide::least || bounds[high].side != BoundSide::most) continue;
      for (const int64_t row : {int64_t{0}, last_row})
        if (bounds[low].factor * row + bounds[low].limit + bases[low] > bounds[high].factor * row + bounds[high].limit + bases[high])
          return false;
    }
  return true;
}

// Whether every maximum over the keys is only read where it is raised to another number of its row.
bool raises_maxima(const Kernel& kernel) {
  const std::vector<uint64_t> needs = reductions_of_values(kernel);
  const auto is_max = [&](ValueId id) {
    const Scalar& v = kernel.values[id];
    return v.kind == ScalarKind::reduction && kernel.reductions[v.slot].fold == Fold::max;
  };
  for (const Scalar& v : kernel.values)
    for (size_t k = 0; k < v.operands.size(); ++k)
      if (is_max(v.operands[k]) && (v.kind != ScalarKind::map || v.fn != MapFn::maximum || needs[v.operands[1 - k]] != 0)) return false;
  return std::ranges::none_of(kernel.attention->steps, [&](const AttentionStep& step) {
    return std::ranges::any_of(step.stores, [&](const Store& s) { return is_max(s.value); });
  });
}

}  // namespace

std::vector<KeyMask> find_key_masks(const Kernel& kernel) { return BoundFinder(kernel).run(); }

void find_key_bounds(Kernel& kernel, bool lone_backward) {
  Attention& a = *kernel.attention;
  a.bounds.clear();
  for (const KeyMask& mask : find_key_masks(kernel)) a.bounds.push_back(mask.bound);
  std::vector<KeyBound> all = a.bounds;
  all.push_back({BoundSide::least, 0, 0}), all.push_back({BoundSide::most, 0, kernel.extent(a.key) - 1});
  const auto bases = bases_of(kernel, all);
  if (!bases) return a.bounds.clear();
  const bool has_maximum = std::ranges::any_of(kernel.reductions, [](const Accumulation& r) { return r.fold == Fold::max; });
  if ((lone_backward || has_maximum) && raises_maxima(kernel)) return;
  for (int64_t device = 0; device < bases->devices; ++device)
    for (int64_t point = 0; point < bases->points; ++point)
      if (!leave_keys(all, bases->at(device, point), kernel.extent(a.row) - 1)) return a.bounds.clear();
}

}  // namespace einc
