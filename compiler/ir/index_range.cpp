// SPDX-License-Identifier: Apache-2.0
// Ranges run from what is indexed back to what indexes it; ranges of what is known (constants, positions) run forward.
#include "compiler/ir/index_range.h"

#include <algorithm>
#include <optional>

namespace einc {
namespace {

constexpr int64_t kLowest = INT64_MIN, kHighest = INT64_MAX;  // no bound
constexpr int64_t kFar = int64_t{1} << 60;                    // nothing known lies beyond

// Ends of ranges: no bound stays none.
int64_t plus(int64_t end, int64_t known) {
  int64_t sum = 0;
  if (end == kLowest || end == kHighest) return end;
  return __builtin_add_overflow(end, known, &sum) ? (known < 0 ? kLowest : kHighest) : sum;
}
int64_t minus(int64_t end) { return end == kLowest ? kHighest : end == kHighest ? kLowest : -end; }
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  const bool over = __builtin_mul_overflow(a, b, &product);
  return over ? ((a < 0) == (b < 0) ? kFar : -kFar) : std::clamp(product, -kFar, kFar);
}
int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }  // b > 0

class RangeFinder {
 public:
  RangeFinder(const Graph& graph, const Bindings& values) : graph_(graph), values_(values), allowed_(graph.size()), known_(graph.size()) {}

  std::vector<IndexRange> run() {
    for (uint32_t i = 0; i < graph_.size(); ++i) known_[i] = known(graph_.nodes[i]);
    for (uint32_t i = graph_.size(); i-- > 0;) hand_on(graph_.nodes[i], allowed_[i]);
    return std::move(allowed_);
  }

 private:
  using Known = std::optional<IndexRange>;

  std::optional<int64_t> size(NodeId id, int axis) const { return graph_.type(id).axis(axis).size.evaluate_integer(values_); }

  // The values that a node takes, where they are known without data.
  Known known(const Node& node) const {
    const auto of = [&](size_t k) { return known_[node.operands[k].index]; };
    if (node.op == Op::constant) {
      const auto* exact = std::get_if<Poly>(&node.as<ConstantAttr>().value);
      const auto value = exact ? exact->evaluate_integer(values_) : std::nullopt;
      return value && *value > -kFar && *value < kFar ? Known(IndexRange{*value, *value}) : std::nullopt;
    }
    if (node.op == Op::iota) {
      const auto count = node.type.axis(0).size.evaluate_integer(values_);
      return count ? Known(IndexRange{0, *count - 1}) : std::nullopt;
    }
    if (kind_of(node.op) == OpKind::view || node.op == Op::cast) return of(0);
    if (node.op != Op::map || node.operands.size() != 2 || !of(0) || !of(1)) return std::nullopt;
    const IndexRange a = *of(0), b = *of(1);
    const MapFn fn = node.as<MapAttr>().fn;
    if (fn == MapFn::add) return within_reach({a.low + b.low, a.high + b.high});
    if (fn == MapFn::sub) return within_reach({a.low - b.high, a.high - b.low});
    if (fn != MapFn::mul) return std::nullopt;
    const int64_t corners[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
    return within_reach({*std::ranges::min_element(corners), *std::ranges::max_element(corners)});
  }

  static Known within_reach(const IndexRange& range) { return range.low > -kFar && range.high < kFar ? Known(range) : std::nullopt; }

  void limit(NodeId id, const IndexRange& range) {
    IndexRange& own = allowed_[id.index];
    own = {std::max(own.low, range.low), std::min(own.high, range.high)};
  }
  void limit_to_axis(NodeId ids, NodeId table, int axis) {
    if (const auto count = size(table, axis)) limit(ids, {0, *count - 1});
  }

  // From a node to what it is made of.
  void hand_on(const Node& node, const IndexRange& range) {
    if (node.op == Op::gather) limit_to_axis(node.operands[1], node.operands[0], node.as<GatherAttr>().axis);
    if (node.op == Op::scatter_set) limit_to_axis(node.operands[2], node.operands[0], node.as<GatherAttr>().axis);
    if (makes_table(node.op))
      if (const auto count = node.type.axis(node.as<GatherAttr>().axis).size.evaluate_integer(values_))
        limit(node.operands[1], {0, *count - 1});
    if (node.op == Op::map) return hand_to_operands(node, range);
    const bool passes = kind_of(node.op) == OpKind::view || node.op == Op::cast || node.op == Op::concat;
    if (passes)
      for (NodeId operand : node.operands) limit(operand, range);
  }

  void hand_to_operands(const Node& node, const IndexRange& range) {
    const MapFn fn = node.as<MapAttr>().fn;
    if (fn == MapFn::where) return limit(node.operands[1], range), limit(node.operands[2], range);
    if (divides_integers(fn)) limit(node.operands[1], {1, INT64_MAX});
    if (fn == MapFn::neg) return limit(node.operands[0], {minus(range.high), minus(range.low)});
    if (node.operands.size() != 2) return;
    for (size_t k = 0; k < 2; ++k) {
      const NodeId operand = node.operands[k];
      if (const Known& other = known_[node.operands[1 - k].index]) limit_beside(fn, k, operand, *other, range);
    }
    const bool neither = !known_[node.operands[0].index] && !known_[node.operands[1].index];
    if (neither && fn == MapFn::add && range.is_bounded())  // each half of it
      for (const NodeId operand : node.operands) limit(operand, {0, range.high / 2});
  }

  // What operand k may be where the other one lies in `other` and the result in `range`.
  void limit_beside(MapFn fn, size_t k, NodeId operand, const IndexRange& other, const IndexRange& range) {
    if (fn == MapFn::equal && other.low == 0 && other.high > 0) return limit(operand, other);  // positions: one-hot
    if (fn == MapFn::add) return limit(operand, {plus(range.low, -other.low), plus(range.high, -other.high)});
    if (fn == MapFn::sub && k == 0) return limit(operand, {plus(range.low, other.high), plus(range.high, other.low)});
    if (fn == MapFn::sub) return limit(operand, {plus(minus(range.high), other.high), plus(minus(range.low), other.low)});
    if (fn == MapFn::mul && other.low >= 0 && other.high > 0 && range.is_bounded())
      return limit(operand, {range.low <= 0 ? 0 : range.low, floor_div(range.high, other.high)});
    if (fn == MapFn::minimum && other.high <= range.high) return limit(operand, {range.low, INT64_MAX});
    if (fn == MapFn::maximum && other.low >= range.low) return limit(operand, {INT64_MIN, range.high});
    if (fn == MapFn::minimum || fn == MapFn::maximum) limit(operand, range);
  }

  const Graph& graph_;
  const Bindings& values_;
  std::vector<IndexRange> allowed_;
  std::vector<Known> known_;
};

}  // namespace

std::vector<IndexRange> index_ranges(const Graph& graph, const Bindings& values) { return RangeFinder(graph, values).run(); }

DrawRange draw_range(const IndexRange& range, DType dtype) {
  const int64_t low = std::max<int64_t>(0, range.low);
  const int64_t most = dtype == DType::boolean ? 1 : dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : INT32_MAX;
  if (!range.is_bounded()) return {std::min(low, most - 1), 2};
  return {low, std::max<int64_t>(1, std::min(range.high, most) - low + 1)};
}

}  // namespace einc
