// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/mesh_builder.h"

namespace einc {
namespace {

AxisList shifted(const AxisList& list, int by) {
  AxisList out;
  for (const int value : list) out.push_back(value == kNoAxis ? kNoAxis : value + by);
  return out;
}

// Mesh axes `from` in front, each at its place among `to`; then the list, behind them all.
AxisList behind_mesh(const AxisList& from, const AxisList& to, const AxisList& list) {
  AxisList out;
  for (const int m : from) {
    EINC_CHECK(to.contains(m), "an operand has mesh axis {}, which the result lacks", m);
    out.push_back(to.find(m));
  }
  for (const int value : list) out.push_back(value == kNoAxis ? kNoAxis : value + to.size());
  return out;
}

AxisList ones_before(int count, const AxisList& counts) {
  AxisList out;
  for (int i = 0; i < count; ++i) out.push_back(1);
  for (const int value : counts) out.push_back(value);
  return out;
}

}  // namespace

Type MeshBuilder::type_of(const Type& full, const Layout& layout) const {
  Type type{full.dtype, {}};
  for (const int m : layout.mesh_axes(mesh())) type.axes.push_back(axis_of(m));
  for (int i = 0; i < full.rank(); ++i) type.axes.push_back({full.axis(i).name, part_of(full.axis(i).size, layout.over(i), mesh())});
  return type;
}

MeshPositions MeshBuilder::leading(const AxisList& mesh_axes, size_t own) const {
  MeshPositions positions(mesh_axes.begin(), mesh_axes.end());
  positions.resize(positions.size() + own, kNoMesh);
  return positions;
}

NodeId MeshBuilder::append(Node node, MeshPositions positions) {
  EINC_CHECK(node.type.axes.size() == positions.size(), "{} axes, {} of them placed", node.type.axes.size(), positions.size());
  const NodeId id = build_.append(std::move(node));
  positions_.resize(id.index);
  positions_.push_back(std::move(positions));
  return id;
}

NodeId MeshBuilder::whole(const Node& node) { return append(node, MeshPositions(node.type.axes.size(), kNoMesh)); }

MeshValue MeshBuilder::compute(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows) {
  const Node& source = source_[id];
  if (!rows.empty()) return source.op == Op::gather ? gather_rows(id, operands, result, rows) : scatter_rows(id, operands, result, rows);
  Node node = source;
  for (size_t k = 0; k < operands.size(); ++k) node.operands[k] = operands[k].node;
  node.type = type_of(source.type, result);
  shift_attributes(node, operands, result);
  return {append(std::move(node), leading(result.mesh_axes(mesh()), source.type.axes.size())), result};
}

// Attributes name axes by position: mesh axes stand in front of them.
void MeshBuilder::shift_attributes(Node& node, std::span<const MeshValue> operands, const Layout& result) const {
  const AxisList to = result.mesh_axes(mesh());
  const int by = to.size();
  const auto from = [&](size_t k) { return operands[k].layout.mesh_axes(mesh()); };
  if (auto* a = std::get_if<MapAttr>(&node.attr))
    for (size_t k = 0; k < operands.size(); ++k) a->maps[k] = behind_mesh(from(k), to, a->maps[k]);
  if (auto* a = std::get_if<ReduceAttr>(&node.attr)) a->axes = shifted(a->axes, by);
  if (auto* a = std::get_if<CumulateAttr>(&node.attr)) a->axis += by;
  if (auto* a = std::get_if<ArgReduceAttr>(&node.attr)) a->axis += by;
  if (auto* a = std::get_if<TopKAttr>(&node.attr)) a->axis += by;
  if (auto* a = std::get_if<ContractAttr>(&node.attr)) {
    a->left = behind_mesh(from(0), to, a->left);
    a->right = behind_mesh(from(1), to, a->right);
  }
  if (auto* a = std::get_if<PermuteAttr>(&node.attr)) a->order = behind_mesh(from(0), to, a->order);
  if (auto* a = std::get_if<BroadcastAttr>(&node.attr)) a->map = behind_mesh(from(0), to, a->map);
  if (auto* a = std::get_if<SplitAttr>(&node.attr)) a->counts = ones_before(by, a->counts);
  if (auto* a = std::get_if<MergeAttr>(&node.attr)) a->counts = ones_before(by, a->counts);
  if (auto* a = std::get_if<SliceAttr>(&node.attr)) a->axis += by;
  if (auto* a = std::get_if<DiagonalAttr>(&node.attr)) a->map = behind_mesh(from(0), to, a->map);
  if (auto* a = std::get_if<WindowAttr>(&node.attr)) a->axis += by;
  if (auto* a = std::get_if<PadAttr>(&node.attr)) {
    a->before.insert(a->before.begin(), static_cast<size_t>(by), Poly(0));
    a->after.insert(a->after.begin(), static_cast<size_t>(by), Poly(0));
  }
  if (auto* a = std::get_if<ConcatAttr>(&node.attr)) a->axis += by;
  // Along an axis of which each device has one place, it goes from device to device.
  if (auto* a = std::get_if<ShiftAttr>(&node.attr)) {
    const AxisList& over = result.over(a->axis);
    EINC_CHECK(over.size() < 2, "a shift along an axis that several axes of the mesh split");
    a->axis = over.empty() ? a->axis + by : to.find(over[0]);
  }
  auto* a = std::get_if<GatherAttr>(&node.attr);
  if (a == nullptr) return;
  if (node.op == Op::gather) {
    a->axis += from(0).size();
    a->table_map = behind_mesh(from(0), to, a->table_map);
    a->ids_map = behind_mesh(from(1), to, a->ids_map);
    return;
  }
  // A scatter's maps lead to the updates; the table is its result.
  const size_t updates = makes_table(node.op) ? 0 : 1;
  a->axis += by;
  a->table_map = behind_mesh(to, from(updates), a->table_map);
  a->ids_map = behind_mesh(from(updates + 1), from(updates), a->ids_map);
}

// ---- laying out anew

NodeId MeshBuilder::permuted(NodeId x, const AxisList& order) {
  if (order.is_identity()) return x;
  MeshPositions positions;
  for (const int from : order) positions.push_back(positions_[x.index][static_cast<size_t>(from)]);
  const NodeId id = build_.permute(x, order);
  positions_.resize(id.index);
  positions_.push_back(std::move(positions));
  return id;
}

// [.. a ..] -> [m .. a/m ..]: a is split into m and the rest, and m goes to its place in front.
MeshValue MeshBuilder::slice(const MeshValue& from, int axis, int m, const Type& full) {
  Layout target = from.layout;
  target.over(axis).push_back(m);
  const AxisList before = from.layout.mesh_axes(mesh()), after = target.mesh_axes(mesh());
  const int lead = before.size(), place = lead + axis, rank = full.rank();
  Type type = build_.type(from.node);
  const Axis part{full.axis(axis).name, part_of(full.axis(axis).size, target.over(axis), mesh())};
  type.axes[static_cast<size_t>(place)] = axis_of(m);
  type.axes.insert(type.axes.begin() + place + 1, part);
  AxisList counts;
  for (int i = 0; i < lead + rank; ++i) counts.push_back(i == place ? 2 : 1);
  MeshPositions positions = positions_[from.node.index];
  positions.insert(positions.begin() + place, m);
  Node node;
  node.op = Op::split;
  node.type = std::move(type);
  node.operands.push_back(from.node);
  node.attr = SplitAttr{counts};
  node.origin = build_.origin;
  const NodeId parts = append(std::move(node), std::move(positions));
  AxisList order;
  for (const int a : after) order.push_back(a == m ? place : before.find(a));
  for (int i = lead; i < lead + rank + 1; ++i)
    if (i != place) order.push_back(i);
  return {permuted(parts, order), std::move(target)};
}

// [m .. a/m ..] -> [.. a ..]: m is the innermost of those that split the axis.
MeshValue MeshBuilder::gather(const MeshValue& from, int axis, int m, const Type& full) {
  Layout target = from.layout;
  AxisList left;
  for (int i = 0; i + 1 < target.over(axis).size(); ++i) left.push_back(target.over(axis)[i]);
  EINC_CHECK(target.over(axis)[left.size()] == m, "mesh axis {} is not the innermost on its axis", m);
  target.over(axis) = left;
  const AxisList before = from.layout.mesh_axes(mesh());
  const int lead = before.size(), rank = full.rank();
  AxisList order, counts;
  for (int i = 0; i < lead; ++i)
    if (before[i] != m) order.push_back(i), counts.push_back(1);
  for (int i = 0; i < rank; ++i) {
    if (i == axis) order.push_back(before.find(m));
    order.push_back(lead + i);
    counts.push_back(i == axis ? 2 : 1);
  }
  Node node;
  node.op = Op::merge;
  node.type = type_of(full, target);
  node.operands.push_back(permuted(from.node, order));
  node.attr = MergeAttr{counts};
  node.origin = build_.origin;
  return {append(std::move(node), leading(target.mesh_axes(mesh()), full.axes.size())), std::move(target)};
}

MeshValue MeshBuilder::combine(const MeshValue& from, const Unreduced& partial, const Type& full) {
  Layout target = from.layout;
  std::erase(target.partial, partial);
  Node node;
  node.op = Op::reduce;
  node.type = type_of(full, target);
  node.operands.push_back(from.node);
  node.attr = ReduceAttr{partial.fn, AxisList{from.layout.mesh_axes(mesh()).find(partial.mesh)}};
  node.origin = build_.origin;
  return {append(std::move(node), leading(target.mesh_axes(mesh()), full.axes.size())), std::move(target)};
}

// One slice that leads to the target and moves nothing.
bool MeshBuilder::slice_where_free(MeshValue& part, const Layout& target, const Type& full) {
  for (int i = 0; i < full.rank(); ++i) {
    const AxisList &have = part.layout.over(i), &want = target.over(i);
    if (have.size() >= want.size() || !std::equal(have.begin(), have.end(), want.begin())) continue;
    const int m = want[have.size()];
    if (part.layout.has(m)) continue;
    part = slice(part, i, m, full);
    return true;
  }
  return false;
}

void MeshBuilder::place_whole(uint32_t first) {
  positions_.resize(first);
  for (uint32_t i = first; i < build_.graph().size(); ++i)
    positions_.emplace_back(static_cast<size_t>(build_.type(NodeId{i}).rank()), kNoMesh);
}

// The mesh's axes stay in front: what each device holds of the numbers is put side by side, and combined as one value.
MeshValue MeshBuilder::side_by_side(std::span<const MeshValue> numbers) {
  const Axis place{Name("number"), Poly(1)};
  Layout layout(1);
  layout.partial = numbers[0].layout.partial;
  Node list;
  list.op = Op::concat;
  list.origin = build_.origin;
  for (const MeshValue& number : numbers) {
    EINC_CHECK(number.layout.partial == layout.partial, "numbers side by side lie otherwise");
    Node node;
    node.op = Op::broadcast;
    node.type = build_.type(number.node);
    node.attr = BroadcastAttr{AxisList::range(node.type.rank())};
    node.type.axes.push_back(place);
    node.operands.push_back(number.node);
    node.origin = build_.graph()[number.node].origin;
    MeshPositions positions = positions_[number.node.index];
    positions.push_back(kNoMesh);
    list.type = node.type;
    list.operands.push_back(append(std::move(node), std::move(positions)));
  }
  const int axis = list.type.rank() - 1;
  list.type.axes.back().size = Poly(static_cast<int64_t>(numbers.size()));
  list.attr = ConcatAttr{axis};
  MeshPositions positions = positions_[list.operands[0].index];
  return {append(std::move(list), std::move(positions)), std::move(layout)};
}

MeshValue MeshBuilder::number_at(const MeshValue& list, int64_t place) {
  EINC_CHECK(list.layout.whole(), "a number of a list in parts");
  const uint32_t first = build_.graph().size();
  const NodeId number = build_.drop_unit(build_.slice(list.node, 0, Poly(place), Poly(1)), 0);
  place_whole(first);
  return {number, Layout(0)};
}

MeshValue MeshBuilder::reordered(const MeshValue& whole, const ZigzagAxes& zigzag, ZigzagMove move) {
  if (zigzag.axes.empty()) return whole;
  EINC_CHECK(whole.layout.whole(), "a value in parts is put into another order");
  NodeId x = whole.node;
  const uint32_t first = build_.graph().size();
  for (const int axis : zigzag.axes) x = einc::zigzag(build_, x, axis, mesh().axes[static_cast<size_t>(zigzag.over)].size, move);
  place_whole(first);
  return {x, whole.layout};
}

MeshValue MeshBuilder::relayout(const MeshValue& from, const Layout& target, const Type& full) {
  MeshValue part = from;
  for (const Unreduced& p : target.partial)
    if (full.rank() == 0 && !part.layout.has(p.mesh)) part = as_term(part, p.mesh, full);
  for (;;) {
    while (slice_where_free(part, target, full)) {
    }
    // Innermost first: the nearest devices add before what they have goes further.
    const auto open = std::find_if(part.layout.partial.rbegin(), part.layout.partial.rend(),
                                   [&](const Unreduced& p) { return target.partial_on(p.mesh) == nullptr; });
    if (open != part.layout.partial.rend()) {
      part = combine(part, Unreduced(*open), full);
      continue;
    }
    int gathered = -1;
    for (int i = 0; i < full.rank() && gathered < 0; ++i) {
      const AxisList &have = part.layout.over(i), &want = target.over(i);
      if (have.size() > want.size() || !std::equal(have.begin(), have.end(), want.begin())) gathered = i;
    }
    if (gathered < 0) break;
    const AxisList& have = part.layout.over(gathered);
    part = gather(part, gathered, have[have.size() - 1], full);
  }
  EINC_CHECK(part.layout == target, "a value cannot be laid out as asked");
  return part;
}

}  // namespace einc
