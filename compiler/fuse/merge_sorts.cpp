// SPDX-License-Identifier: Apache-2.0
// Each pass merges pairs of sorted runs. Place d of a merged pair takes i elements of its first run and d - i of the second; i is where a
// binary search along the d-th diagonal of the merge finds the two runs to cross. No place waits for another, so a pass is elementwise
// steps and gathers, which fuse, and the same graph serves processors and GPUs. Work is n log(n)^2 / 2 instead of the n k of a selection.
#include "compiler/fuse/merge_sorts.h"

#include <bit>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

// A place of a pass is dearer than one that a selection looks at: 3 ns for each of log(n)^2 / 2 probes beside 0.4 ns (Zen 5, one thread).
constexpr int64_t kProbesOfPlace = 4;

bool is_long(int64_t size, int64_t count) {
  const auto passes = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(size)));
  return size < INT32_MAX / 2 && count > kProbesOfPlace * passes * passes;
}

// The order of one value along one axis, built pass by pass. Places are i32, of the value's shape.
class MergeSort {
 public:
  MergeSort(Builder& build, NodeId x, const TopKAttr& attr, int64_t size)
      : build_(build), attr_(attr), size_(size), axes_(build.type(x).axes), keys_(x) {
    const int rank = static_cast<int>(axes_.size());
    taken_ = GatherAttr{attr.axis, AxisList::range(rank), AxisList::range(rank)};
    taken_.table_map.set(attr.axis, kNoAxis);
    const NodeId along = build_.iota(axes_[static_cast<size_t>(attr.axis)], DType::i32);
    place_ = rank == 1 ? along : build_.broadcast(along, {attr.axis}, axes_);
    order_ = place_;
  }

  NodeId run() {
    for (int64_t width = 1; width < size_; width *= 2) merge(width);
    return order_;
  }

 private:
  NodeId number(int64_t value) { return build_.constant(Poly(value), DType::i32); }
  NodeId map(MapFn fn, NodeId a, NodeId b) { return build_.map(fn, {a, b}); }
  NodeId plus(NodeId a, NodeId b) { return map(MapFn::add, a, b); }
  NodeId minus(NodeId a, NodeId b) { return map(MapFn::sub, a, b); }
  NodeId where(NodeId c, NodeId a, NodeId b) { return build_.map(MapFn::where, {c, a, b}); }
  NodeId taken(NodeId table, NodeId places) { return build_.gather(table, places, taken_, axes_); }

  // An element of the keys, wherever the place is: outside a run it is not used.
  NodeId key_at(NodeId place) { return taken(keys_, build_.map(MapFn::clamp, {place, number(0), number(size_ - 1)})); }

  // Whether a, from the first run, comes before b or is its equal; NaN is the greatest.
  NodeId comes_first(NodeId a, NodeId b) {
    const bool descends = attr_.fn == ReduceFn::max;
    const NodeId ordered = map(descends ? MapFn::greater_equal : MapFn::less_equal, a, b);
    if (!is_floating(build_.type(keys_).dtype)) return ordered;
    const NodeId last = descends ? a : b;  // where it is a NaN, the other one is no smaller or no larger
    return map(MapFn::logical_or, ordered, map(MapFn::not_equal, last, last));
  }

  // Of two runs that begin at `pair` and at `pair` + width. Place d of the result follows i elements of the first run and d - i of the
  // second.
  void merge(int64_t width) {
    const NodeId both = number(2 * width), divisor = number(2 * width);  // one call makes one node: C++ orders no others
    const NodeId pair = map(MapFn::mul, map(MapFn::floor_div, place_, divisor), both);
    const NodeId d = minus(place_, pair), second = plus(pair, number(width)), rest = minus(number(size_), pair);
    const NodeId length = map(MapFn::minimum, rest, number(width));
    const NodeId second_length = build_.map(MapFn::clamp, {minus(rest, number(width)), number(0), number(width)});
    const NodeId zero = number(0);
    NodeId low = map(MapFn::maximum, minus(d, second_length), zero), high = map(MapFn::minimum, d, length);
    for (int64_t left = width; left > 0; left /= 2) {
      const NodeId two = number(2), middle = map(MapFn::floor_div, plus(low, high), two);
      const NodeId after = plus(middle, number(1)), other = minus(plus(second, d), after);
      const NodeId theirs = key_at(other), ours = key_at(plus(pair, middle));
      const NodeId counts = comes_first(ours, theirs);
      const NodeId open = map(MapFn::less, low, high);
      const NodeId further = where(counts, plus(middle, number(1)), low), nearer = where(counts, high, middle);
      low = where(open, further, low), high = where(open, nearer, high);
    }
    const NodeId first_place = plus(pair, low), second_place = plus(second, minus(d, low));
    const NodeId first_left = map(MapFn::less, low, length), none_left = map(MapFn::greater_equal, minus(d, low), second_length);
    const NodeId second_key = key_at(second_place), first_key = key_at(first_place);
    const NodeId first_wins = map(MapFn::logical_or, none_left, comes_first(first_key, second_key));
    const NodeId source = where(map(MapFn::logical_and, first_left, first_wins), first_place, second_place);
    keys_ = taken(keys_, source);
    order_ = taken(order_, source);
  }

  Builder& build_;
  const TopKAttr attr_;
  const int64_t size_;
  const std::vector<Axis> axes_;
  GatherAttr taken_{0, {}, {}};
  NodeId keys_, place_, order_;
};

}  // namespace

MergedSorts merge_sorts(const BoundGraph& graph) {
  const Graph& given = graph.graph;
  const auto is_merged = [&](NodeId id) {
    if (graph[id].op != Op::top_k_index || !graph.live[id.index]) return false;
    const auto axis = static_cast<size_t>(graph[id].as<TopKAttr>().axis);
    return is_long(graph.shape(graph[id].operands[0])[axis], graph.shape(id)[axis]);
  };
  bool any = false;
  for (uint32_t i = 0; i < given.size(); ++i) any = any || is_merged(NodeId{i});
  if (!any) return {};
  auto merged = std::make_unique<Graph>(without_nodes(given));
  Builder build(*merged);
  std::vector<NodeId> at(given.size());
  for (uint32_t i = 0; i < given.size(); ++i) {
    Node node = given.nodes[i];
    for (NodeId& x : node.operands) x = at[x.index];
    if (!is_merged(NodeId{i})) {
      at[i] = build.append(std::move(node));
      continue;
    }
    build.origin = node.origin;
    build.origin.label = Name();
    const TopKAttr& attr = node.as<TopKAttr>();
    const auto axis = static_cast<size_t>(attr.axis);
    const int64_t size = graph.shape(given.nodes[i].operands[0])[axis];
    NodeId order = MergeSort(build, node.operands[0], attr, size).run();
    if (graph.shape(NodeId{i})[axis] < size) order = build.slice(order, attr.axis, Poly(0), node.type.axis(attr.axis).size);
    build.origin.label = node.origin.label;
    at[i] = node.type.dtype == DType::i32 ? build.rename(order, node.type.axes) : build.cast(order, node.type.dtype);
  }
  for_each_root(*merged, [&](NodeId& id) { id = at[id.index]; });
  return {std::move(merged), std::move(at)};
}

}  // namespace einc
