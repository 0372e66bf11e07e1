// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/collectives.h"

#include <algorithm>

#include "compiler/ir/print.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

// A reduce over an axis of the mesh, which devices carry out together.
bool reduces_mesh(const Partitioned& partitioned, const Node& node) {
  if (node.op != Op::reduce) return false;
  const MeshPositions& from = partitioned.positions[node.operands[0].index];
  return std::ranges::any_of(node.as<ReduceAttr>().axes, [&](int axis) { return from[static_cast<size_t>(axis)] != kNoMesh; });
}

class Listing {
 public:
  explicit Listing(const Partitioned& partitioned) : p_(partitioned), graph_(partitioned.graph) { count_readers(); }

  std::vector<Collective> run() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (p_.edge[i] || !p_.needed[i]) continue;
      const Node& node = graph_.nodes[i];
      if (reduces_mesh(p_, node))
        add_reduce(i, node);
      else if (node.op == Op::merge && merged_mesh_axis(node) >= 0)
        add_gather(i, node);
      else if (node.op == Op::shift && at(NodeId{i})[static_cast<size_t>(node.as<ShiftAttr>().axis)] != kNoMesh)
        add_shift(i, node);
      else
        check_carried(i, node);
    }
    return std::move(out_);
  }

 private:
  const MeshPositions& at(NodeId id) const { return p_.positions[id.index]; }

  void count_readers() {
    readers_.assign(graph_.size(), 0);
    reader_.assign(graph_.size(), 0);
    // A root is read by the program's edge as well: counted twice, so that no other reader is taken for its only one.
    for_each_root(graph_, [&](NodeId id) {
      if (id.valid()) readers_[id.index] += 2;
    });
    for (uint32_t i = graph_.size(); i-- > 0;)
      if (p_.needed[i])
        for (const NodeId operand : graph_.nodes[i].operands) ++readers_[operand.index], reader_[operand.index] = i;
  }

  // The mesh axis that is merged into one of the value's, or -1.
  int merged_mesh_axis(const Node& node) const {
    const MeshPositions& from = at(node.operands[0]);
    int next = 0;
    for (const int count : node.as<MergeAttr>().counts) {
      for (int k = 0; k < count; ++k, ++next)
        if (count > 1 && from[static_cast<size_t>(next)] != kNoMesh) return from[static_cast<size_t>(next)];
    }
    return -1;
  }

  // The one reader keeps a part of it, by that mesh axis: then no device ever needs the whole, and half of the bytes go.
  bool is_split_by(uint32_t i, int m) const {
    if (readers_[i] != 1) return false;
    const Node& user = graph_.nodes[reader_[i]];
    if (user.op != Op::split || p_.edge[reader_[i]]) return false;
    const MeshPositions &before = at(NodeId{i}), &after = at(NodeId{reader_[i]});
    return std::find(before.begin(), before.end(), m) == before.end() && std::find(after.begin(), after.end(), m) != after.end();
  }

  Poly device_bytes(NodeId id) const {
    const Type& type = graph_.type(id);
    Poly bytes(bytes_of(type.dtype));
    for (size_t i = 0; i < type.axes.size(); ++i)
      if (at(id)[i] == kNoMesh) bytes *= type.axes[i].size;
    return bytes;
  }

  void add(CollectiveKind kind, int m, ReduceFn fn, uint32_t node, const Poly& bytes, int64_t times) {
    const Poly& n = graph_.mesh.axes[static_cast<size_t>(m)].size;
    const bool parts = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
    out_.push_back({kind, m, fn, NodeId{node}, Poly(times) * divide(bytes * (n - Poly(1)), n), parts ? NodeId{reader_[node]} : NodeId{}});
  }

  void add_reduce(uint32_t i, const Node& node) {
    const ReduceAttr& a = node.as<ReduceAttr>();
    const int m = at(node.operands[0])[static_cast<size_t>(a.axes[0])];
    EINC_CHECK(a.axes.size() == 1 && m != kNoMesh, "one mesh axis is reduced at a time: {}", print_node(graph_, NodeId{i}));
    const bool scattered = is_split_by(i, m);
    add(scattered ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, m, a.fn, i, device_bytes(NodeId{i}), scattered ? 1 : 2);
  }

  void add_gather(uint32_t i, const Node& node) {
    const int m = merged_mesh_axis(node);
    if (is_split_by(i, m))
      add(CollectiveKind::all_to_all, m, ReduceFn::sum, i, device_bytes(node.operands[0]), 1);
    else
      add(CollectiveKind::all_gather, m, ReduceFn::sum, i, device_bytes(NodeId{i}), 1);
  }

  void add_shift(uint32_t i, const Node& node) {
    check_carried(i, node);
    const int m = at(NodeId{i})[static_cast<size_t>(node.as<ShiftAttr>().axis)];
    out_.push_back({CollectiveKind::shift, m, ReduceFn::sum, NodeId{i}, device_bytes(NodeId{i})});
  }

  // The result's axis that an operand's axis is, or -1: by the ops' own attributes, apart from how they were shifted.
  int carried_to(const Node& node, size_t k, int axis) const {
    switch (node.op) {
      case Op::map:
        return node.as<MapAttr>().maps[k][axis];
      case Op::contract: {
        const ContractAttr& a = node.as<ContractAttr>();
        const int label = (k == 0 ? a.left : a.right)[axis];
        return label < node.type.rank() ? label : -1;
      }
      case Op::reduce:
      case Op::logsumexp: {
        const AxisList& axes = node.as<ReduceAttr>().axes;
        if (axes.contains(axis)) return -1;
        return axis - static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](int a) { return a < axis; }));
      }
      case Op::permute:
        return node.as<PermuteAttr>().order.find(axis);
      case Op::broadcast:
        return node.as<BroadcastAttr>().map[axis];
      case Op::diagonal:
        return node.as<DiagonalAttr>().map[axis];
      case Op::split:
        return grouped(node.as<SplitAttr>().counts, axis, true);
      case Op::merge:
        return grouped(node.as<MergeAttr>().counts, axis, false);
      case Op::arg_reduce: {
        const int reduced = node.as<ArgReduceAttr>().axis;
        return axis == reduced ? -1 : axis < reduced ? axis : axis - 1;
      }
      case Op::cumulate:
        return axis == node.as<CumulateAttr>().axis ? -1 : axis;
      case Op::top_k_index:
        return axis == node.as<TopKAttr>().axis ? -1 : axis;
      case Op::slice:
        return axis == node.as<SliceAttr>().axis ? -1 : axis;
      case Op::concat:
        return axis == node.as<ConcatAttr>().axis ? -1 : axis;
      case Op::pad:
        return node.as<PadAttr>().before[static_cast<size_t>(axis)].is_zero() &&
                       node.as<PadAttr>().after[static_cast<size_t>(axis)].is_zero()
                   ? axis
                   : -1;
      case Op::window:
      case Op::fold: {  // mesh axes stand in front of the window's
        return axis < node.as<WindowAttr>().axis ? axis : -1;
      }
      case Op::gather:
        return (k == 0 ? node.as<GatherAttr>().table_map : node.as<GatherAttr>().ids_map)[axis];
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
        return node.as<GatherAttr>().table_map.find(k == 0 ? axis : node.as<GatherAttr>().ids_map[axis]);
      case Op::scatter_set:
        if (k == 0) return axis;
        return node.as<GatherAttr>().table_map.find(k == 1 ? axis : node.as<GatherAttr>().ids_map[axis]);
      case Op::softmax:
      case Op::cast:
      case Op::stop_gradient:
      case Op::shift:
      case Op::dropout:
        return axis;
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::constant:
      case Op::iota:
      case Op::random:
      case Op::scan:
      case Op::scan_result:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
      case Op::training:
        return -1;
    }
    return -1;
  }

  // Of a group of one axis: where it stands.
  static int grouped(const AxisList& counts, int axis, bool splits) {
    int fine = 0;
    for (int i = 0; i < counts.size(); ++i) {
      if (splits && i == axis) return counts[i] == 1 ? fine : -1;
      if (!splits && axis >= fine && axis < fine + counts[i]) return counts[i] == 1 ? i : -1;
      fine += counts[i];
    }
    return -1;
  }

  void check_carried(uint32_t i, const Node& node) const {
    if (node.op == Op::scan) return;  // its body does
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const MeshPositions& from = at(node.operands[k]);
      for (size_t axis = 0; axis < from.size(); ++axis) {
        if (from[axis] == kNoMesh) continue;
        const int to = carried_to(node, k, static_cast<int>(axis));
        const bool same = to >= 0 && to < node.type.rank() && at(NodeId{i})[static_cast<size_t>(to)] == from[axis];
        EINC_CHECK(same, "mesh axis {} of operand {} crosses devices without a collective: {}", from[axis], k,
                   print_node(graph_, NodeId{i}));
      }
    }
  }

  const Partitioned& p_;
  const Graph& graph_;
  std::vector<int> readers_;
  std::vector<uint32_t> reader_;
  std::vector<Collective> out_;
};

}  // namespace

std::vector<Collective> collectives_of(const Partitioned& partitioned) { return Listing(partitioned).run(); }

}  // namespace einc
