// SPDX-License-Identifier: Apache-2.0
// Tables whose rows lie on several devices: each device looks up, or adds into, the rows that it has, and does nothing for the others. An
// index beyond the whole table stays one beyond the part, so that the run stops at it.
#include "compiler/partition/mesh_builder.h"

namespace einc {

// An exact number of any dtype.
NodeId MeshBuilder::integer(const Poly& value, DType dtype) {
  Node node;
  node.op = Op::constant;
  node.type = Type{dtype, {}};
  node.attr = ConstantAttr{value};
  node.origin = build_.origin;
  return append(std::move(node), {});
}

// Elementwise; operands have their own axes in common, or none, and mesh axes in front.
NodeId MeshBuilder::aligned(MapFn fn, std::initializer_list<NodeId> operands) {
  AxisList mesh_axes;
  std::vector<Axis> own;
  std::vector<DType> dtypes;
  for (int m = 0; m < static_cast<int>(mesh().axes.size()); ++m)
    for (const NodeId x : operands) {
      const MeshPositions& at = positions_[x.index];
      if (std::find(at.begin(), at.end(), m) != at.end() && !mesh_axes.contains(m)) mesh_axes.push_back(m);
    }
  for (const NodeId x : operands) {
    dtypes.push_back(build_.type(x).dtype);
    std::vector<Axis> axes;
    for (size_t i = 0; i < positions_[x.index].size(); ++i)
      if (positions_[x.index][i] == kNoMesh) axes.push_back(build_.type(x).axes[i]);
    if (axes.size() > own.size()) own = axes;
  }
  Node node;
  node.op = Op::map;
  node.type.dtype = Builder::map_dtype(fn, dtypes);
  for (const int m : mesh_axes) node.type.axes.push_back(axis_of(m));
  node.type.axes.insert(node.type.axes.end(), own.begin(), own.end());
  MapAttr attr{fn, {}};
  size_t k = 0;
  for (const NodeId x : operands) {
    node.operands.push_back(x);
    int next = mesh_axes.size();
    for (const int m : positions_[x.index]) attr.maps[k].push_back(m == kNoMesh ? next++ : mesh_axes.find(m));
    ++k;
  }
  node.attr = attr;
  node.origin = build_.origin;
  return append(std::move(node), leading(mesh_axes, own.size()));
}

NodeId MeshBuilder::coordinate(int m, DType dtype) {
  Node node;
  node.op = Op::iota;
  node.type = Type{dtype, {axis_of(m)}};
  node.origin = build_.origin;
  return append(std::move(node), {m});
}

MeshValue MeshBuilder::as_term(const MeshValue& from, int m, const Type& full) {
  const NodeId first = aligned(MapFn::equal, {coordinate(m, DType::i32), integer(Poly(0), DType::i32)});
  MeshValue out{aligned(MapFn::where, {first, from.node, integer(Poly(0), full.dtype)}), from.layout};
  out.layout.partial.push_back({m, ReduceFn::sum});
  std::sort(out.layout.partial.begin(), out.layout.partial.end(), [](const Unreduced& a, const Unreduced& b) { return a.mesh < b.mesh; });
  return out;
}

MeshBuilder::Rows MeshBuilder::local_rows(const MeshValue& ids, const AxisList& rows, const Poly& size) {
  const DType dtype = build_.type(ids.node).dtype == DType::i64 ? DType::i64 : DType::i32;
  NodeId index = ids.node;
  if (build_.type(index).dtype != dtype) {
    Node cast;
    cast.op = Op::cast;
    cast.type = Type{dtype, build_.type(index).axes};
    cast.operands.push_back(index);
    cast.origin = build_.origin;
    index = append(std::move(cast), positions_[index.index]);
  }
  // The first row here: the coordinates, outer to inner, as the digits of a number.
  const Poly part = part_of(size, rows, mesh());
  Poly stride = part;
  NodeId start;
  for (int i = rows.size(); i-- > 0;) {
    const NodeId term = aligned(MapFn::mul, {coordinate(rows[i], dtype), integer(stride, dtype)});
    start = start.valid() ? aligned(MapFn::add, {start, term}) : term;
    stride *= axis_of(rows[i]).size;
  }
  const NodeId local = aligned(MapFn::sub, {index, start}), zero = integer(Poly(0), dtype);
  const NodeId inside =
      aligned(MapFn::logical_and, {aligned(MapFn::greater_equal, {local, zero}), aligned(MapFn::less, {local, integer(part, dtype)})});
  const NodeId exists =
      aligned(MapFn::logical_and, {aligned(MapFn::greater_equal, {index, zero}), aligned(MapFn::less, {index, integer(size, dtype)})});
  const NodeId elsewhere = aligned(MapFn::where, {exists, zero, integer(Poly(-1), dtype)});
  Rows out{aligned(MapFn::where, {inside, local, elsewhere}), inside, {}};
  for (const int m : positions_[inside.index])
    if (m != kNoMesh) out.mesh_axes.push_back(m);
  return out;
}

NodeId MeshBuilder::masked(const MeshValue& value, const Rows& rows, const AxisList& own_map) {
  const Type type = build_.type(value.node);
  const MeshPositions at = positions_[value.node.index];  // a copy: nodes are added
  const NodeId zero = integer(Poly(0), type.dtype);
  AxisList mesh_axes;
  for (int m = 0; m < static_cast<int>(mesh().axes.size()); ++m)
    if (rows.mesh_axes.contains(m) || std::find(at.begin(), at.end(), m) != at.end()) mesh_axes.push_back(m);
  Node node;
  node.op = Op::map;
  node.type.dtype = type.dtype;
  size_t own = 0;
  for (const int m : mesh_axes) node.type.axes.push_back(axis_of(m));
  MapAttr attr{MapFn::where, {}};
  for (const int m : rows.mesh_axes) attr.maps[0].push_back(mesh_axes.find(m));
  for (const int axis : own_map) attr.maps[0].push_back(mesh_axes.size() + axis);
  for (size_t i = 0; i < at.size(); ++i) {
    attr.maps[1].push_back(at[i] == kNoMesh ? mesh_axes.size() + static_cast<int>(own++) : mesh_axes.find(at[i]));
    if (at[i] == kNoMesh) node.type.axes.push_back(type.axes[i]);
  }
  node.operands = {rows.inside, value.node, zero};
  node.attr = attr;
  node.origin = build_.origin;
  return append(std::move(node), leading(mesh_axes, own));
}

// A sum over the devices, of which at most one has a term that is not 0.
MeshValue MeshBuilder::gather_rows(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows) {
  const Node& source = source_[id];
  const GatherAttr& a = source.as<GatherAttr>();
  const Rows here = local_rows(operands[1], rows, source_.type(source.operands[0]).axis(a.axis).size);
  Node node = source;
  node.operands = {operands[0].node, here.index};
  node.type = type_of(source.type, result);
  MeshValue ids = operands[1];
  for (const int m : rows) ids.layout.partial.push_back({m, ReduceFn::sum});  // it has these axes now
  const MeshValue laid_out[] = {operands[0], ids};
  shift_attributes(node, laid_out, result);
  const MeshValue gathered{append(std::move(node), leading(result.mesh_axes(mesh()), source.type.axes.size())), result};
  return {masked(gathered, here, a.ids_map), result};
}

MeshValue MeshBuilder::scatter_rows(NodeId id, std::span<const MeshValue> operands, const Layout& result, const AxisList& rows) {
  const Node& source = source_[id];
  const GatherAttr& a = source.as<GatherAttr>();
  const Rows here = local_rows(operands[1], rows, source.type.axis(a.axis).size);
  MeshValue updates = operands[0], ids = operands[1];
  updates.node = masked(updates, here, a.ids_map);
  for (const int m : rows) {
    updates.layout.partial.push_back({m, ReduceFn::sum});
    ids.layout.partial.push_back({m, ReduceFn::sum});
  }
  ids.node = here.index;
  Node node = source;
  node.operands = {updates.node, ids.node};
  node.type = type_of(source.type, result);
  const MeshValue laid_out[] = {updates, ids};
  shift_attributes(node, laid_out, result);
  return {append(std::move(node), leading(result.mesh_axes(mesh()), source.type.axes.size())), result};
}

}  // namespace einc
