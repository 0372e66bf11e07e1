// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/strip_mesh.h"

namespace einc {
namespace {

AxisList positions(const AxisList& list, const std::vector<int>& keep, const std::vector<int>& to) {
  AxisList out;
  for (int i = 0; i < list.size(); ++i) {
    if (keep[static_cast<size_t>(i)] < 0) continue;
    const int value = list[i] == kNoAxis ? kNoAxis : to[static_cast<size_t>(list[i])];
    EINC_CHECK(value >= 0, "an own axis lies on one of the mesh");
    out.push_back(value);
  }
  return out;
}

AxisList kept(const AxisList& list, const std::vector<int>& keep) {
  AxisList out;
  for (int i = 0; i < list.size(); ++i)
    if (keep[static_cast<size_t>(i)] >= 0) out.push_back(list[i]);
  return out;
}

// A gather's maps lead to its result; a scatter's to its updates, and the table is its result.
void strip_indexing(GatherAttr& a, const Node& source, const std::vector<std::vector<int>>& from, const std::vector<int>& to) {
  const bool gather = source.op == Op::gather;
  const size_t updates = makes_table(source.op) ? 0 : 1;
  const std::vector<int>& table = gather ? from[0] : to;
  const std::vector<int>& ids = gather ? from[1] : from[updates + 1];
  const std::vector<int>& target = gather ? to : from[updates];
  a.axis = table[static_cast<size_t>(a.axis)];
  a.table_map = positions(a.table_map, table, target);
  a.ids_map = positions(a.ids_map, ids, target);
}

}  // namespace

void strip_mesh(Node& node, const Node& source, const std::vector<std::vector<int>>& from, const std::vector<int>& to) {
  const auto own = [&](int axis) { return from[0][static_cast<size_t>(axis)]; };
  if (auto* a = std::get_if<MapAttr>(&node.attr))
    for (size_t k = 0; k < from.size(); ++k) a->maps[k] = positions(a->maps[k], from[k], to);
  if (auto* a = std::get_if<ReduceAttr>(&node.attr)) {
    AxisList axes;
    for (const int axis : a->axes) axes.push_back(own(axis));
    a->axes = axes;
  }
  if (auto* a = std::get_if<CumulateAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<ArgReduceAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<TopKAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<SliceAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<ConcatAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<WindowAttr>(&node.attr)) a->axis = own(a->axis);
  if (auto* a = std::get_if<ContractAttr>(&node.attr)) {
    const int gone = source.type.rank() - node.type.rank();
    const auto labels = [&](const AxisList& list, const std::vector<int>& keep) {
      AxisList out;
      for (int i = 0; i < list.size(); ++i)
        if (keep[static_cast<size_t>(i)] >= 0)
          out.push_back(list[i] < source.type.rank() ? to[static_cast<size_t>(list[i])] : list[i] - gone);
      return out;
    };
    a->left = labels(a->left, from[0]);
    a->right = labels(a->right, from[1]);
  }
  if (auto* a = std::get_if<PermuteAttr>(&node.attr)) a->order = positions(a->order, to, from[0]);
  if (auto* a = std::get_if<BroadcastAttr>(&node.attr)) a->map = positions(a->map, from[0], to);
  if (auto* a = std::get_if<DiagonalAttr>(&node.attr)) a->map = positions(a->map, from[0], to);
  if (auto* a = std::get_if<SplitAttr>(&node.attr)) a->counts = kept(a->counts, from[0]);
  if (auto* a = std::get_if<MergeAttr>(&node.attr)) a->counts = kept(a->counts, to);
  if (auto* a = std::get_if<PadAttr>(&node.attr)) {
    std::vector<Poly> before, after;
    for (size_t i = 0; i < to.size(); ++i)
      if (to[i] >= 0) before.push_back(a->before[i]), after.push_back(a->after[i]);
    a->before = std::move(before), a->after = std::move(after);
  }
  if (auto* a = std::get_if<GatherAttr>(&node.attr)) strip_indexing(*a, source, from, to);
}

}  // namespace einc
