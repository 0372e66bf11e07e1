// SPDX-License-Identifier: Apache-2.0
// Partitioned and local nodes correspond one to one, but for three kinds: a reduce or merge over a mesh axis is a collective (with the
// split behind it, which keeps a part: a reduce_scatter or all_to_all); a split that makes a mesh axis of what each device has whole is a
// gather at the device's coordinate; an iota along a mesh axis is that coordinate. All else loses the mesh axes of its attributes
// (strip_mesh).
#include "compiler/partition/localize.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/ir/scan.h"
#include "compiler/partition/collectives.h"
#include "compiler/partition/local_parts.h"
#include "compiler/partition/strip_mesh.h"

namespace einc {
namespace {

class Localizer {
 public:
  explicit Localizer(const Partitioned& partitioned)
      : p_(partitioned), in_(partitioned.graph), list_(collectives_of(partitioned)), build_(out_.graph), at_(in_.size()) {
    Graph& g = out_.graph;
    g.name = in_.name, g.dims = in_.dims, g.mesh = in_.mesh, g.policy = in_.policy;
    g.loops = in_.loops, g.loop_contexts = in_.loop_contexts, g.chosen_by = in_.chosen_by, g.plans = in_.plans;
    out_.coordinates.resize(in_.mesh.axes.size());
    for (const Collective& c : list_) {
      collectives_.emplace(c.node.index, c);
      if (c.split.valid()) splits_.emplace(c.split.index, c);
    }
  }

  Localized run() {
    mark_needed();
    for (const EdgeValue& value : p_.declared) declare(value);
    for (uint32_t i = 0; i < in_.size(); ++i)
      if (needed_[i] && !at_[i].valid()) node(NodeId{i});
    roots();
    for (const Collective& c : list_) out_.collectives.push_back(at_[(c.split.valid() ? c.split : c.node).index]);
    return std::move(out_);
  }

 private:
  // ---- what of the partitioned graph a device computes

  void mark_needed() {
    needed_.resize(in_.size(), false);
    std::vector<bool> declared(in_.size(), false);
    for (const EdgeValue& value : p_.declared) declared[value.part.index] = true;
    const auto need = [&](const EdgeValue& value) {
      if (value.part.valid()) needed_[value.part.index] = true;
    };
    for (const auto* list : {&p_.outputs, &p_.updates, &p_.gradients})
      for (const EdgeValue& value : *list) need(value);
    need(p_.loss);
    for (uint32_t i = in_.size(); i-- > 0;)
      if (needed_[i] && !declared[i])
        for (const NodeId operand : in_.nodes[i].operands) needed_[operand.index] = true;
  }

  void declare(const EdgeValue& value) {
    Node node = in_[value.whole];
    node.type = local_type(value.part);
    const NodeId id = build_.append(std::move(node));
    at_[value.whole.index] = at_[value.part.index] = id;
    out_.declared.push_back({id, value.layout, value.zigzag});
  }

  void roots() {
    const auto local = [&](const EdgeValue& value) {
      EINC_CHECK(value.layout.partial.empty(), "a result is a sum still to be taken");
      return DeviceValue{value.part.valid() ? at_[value.part.index] : NodeId{}, value.layout, value.zigzag};
    };
    Graph& g = out_.graph;
    for (size_t i = 0; i < p_.outputs.size(); ++i) {
      out_.outputs.push_back(local(p_.outputs[i]));
      g.outputs.push_back({in_.outputs[i].name, out_.outputs.back().node});
    }
    for (size_t i = 0; i < p_.updates.size(); ++i) {
      out_.updates.push_back(local(p_.updates[i]));
      g.updates.push_back({at_[in_.updates[i].target.index], out_.updates.back().node});
    }
    for (size_t i = 0; i < p_.gradients.size(); ++i) {
      out_.gradients.push_back(local(p_.gradients[i]));
      out_.trained.push_back(at_[in_.gradients[i].target.index]);
    }
    out_.loss = local(p_.loss);
    g.loss = out_.loss.node;
  }

  // ---- axes

  const MeshPositions& mesh_of(NodeId id) const { return p_.positions[id.index]; }

  // Where an axis of a partitioned node stands on the device; -1: it is the mesh's.
  std::vector<int> local_axes(NodeId id) const { return own_axes(mesh_of(id)); }

  Type local_type(NodeId id) const { return own_type(in_.type(id), mesh_of(id)); }

  // ---- nodes

  void node(NodeId id) {
    const Node& n = in_[id];
    build_.origin = n.origin;
    if (const auto c = collectives_.find(id.index); c != collectives_.end()) {
      if (!c->second.split.valid()) at_[id.index] = collective(c->second, 0);
      return;  // with the split that keeps a part of it
    }
    if (const auto c = splits_.find(id.index); c != splits_.end()) {
      at_[id.index] = collective(c->second, split_axis(id));
      return;
    }
    if (n.op == Op::iota && mesh_of(id)[0] != kNoMesh) {
      at_[id.index] = coordinate(mesh_of(id)[0], n.type.dtype);
      return;
    }
    if (n.op == Op::split)
      if (const int m = new_mesh_axis(id); m != kNoMesh) {
        at_[id.index] = own_part(id, m);
        return;
      }
    at_[id.index] = stripped(id);
  }

  Node copy_of(NodeId id) const {
    Node node = in_[id];
    node.type = local_type(id);
    for (NodeId& operand : node.operands) operand = at_[operand.index];
    return node;
  }

  NodeId stripped(NodeId id) {
    Node node = copy_of(id);
    if (node.op == Op::permute && only_mesh_moves(id)) return node.operands[0];
    if (node.op == Op::scan) return scan(id, std::move(node));
    if (node.op == Op::scan_result) return build_.append(std::move(node));
    std::vector<std::vector<int>> from;
    for (const NodeId operand : in_[id].operands) from.push_back(local_axes(operand));
    strip_mesh(node, in_[id], from, local_axes(id));
    return build_.append(std::move(node));
  }

  // Iterations that make parts of what follows from places read where the device is.
  NodeId scan(NodeId id, Node node) {
    auto& attr = std::get<ScanAttr>(node.attr);
    const int wholes = whole_operands(node);
    LocalBody body = local_body(*attr.body, p_.bodies.at(id.index), wholes, in_.mesh);
    attr.body = std::move(body.graph);
    SmallVector<NodeId, 3> operands;
    for (int k = 0; k < wholes; ++k) operands.push_back(node.operands[static_cast<size_t>(k)]);
    for (const int m : body.coordinates) operands.push_back(coordinate(m, DType::i32));
    for (size_t k = static_cast<size_t>(wholes); k < node.operands.size(); ++k) operands.push_back(node.operands[k]);
    node.operands.clear();
    for (const NodeId operand : operands) node.operands.push_back(operand);
    build_.origin = in_[id].origin;
    return build_.append(std::move(node));
  }

  // Whether the device's own axes stay in their order.
  bool only_mesh_moves(NodeId id) const {
    int last = -1;
    for (const int from : in_[id].as<PermuteAttr>().order) {
      if (mesh_of(in_[id].operands[0])[static_cast<size_t>(from)] != kNoMesh) continue;
      if (from < last) return false;
      last = from;
    }
    return true;
  }

  NodeId collective(const Collective& c, int divided) {
    if (c.kind == CollectiveKind::shift) {
      Node node = copy_of(c.node);
      node.attr = ShiftAttr{0, in_[c.node].as<ShiftAttr>().by, c.mesh_axis};
      return build_.append(std::move(node));
    }
    static constexpr Op kOps[] = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::all_to_all};
    const int gathered = in_[c.node].op == Op::merge ? gathered_axis(c.node) : 0;
    build_.origin = in_[c.node].origin;
    return build_.collective(kOps[static_cast<size_t>(c.kind)], at_[in_[c.node].operands[0].index], {c.mesh_axis, c.fn, gathered, divided});
  }

  // Of a merge of a mesh axis with the one behind it.
  int gathered_axis(NodeId id) const {
    const AxisList& counts = in_[id].as<MergeAttr>().counts;
    for (int i = 0; i < counts.size(); ++i)
      if (counts[i] > 1) return local_axes(id)[static_cast<size_t>(i)];
    return 0;
  }

  int new_mesh_axis(NodeId id) const { return new_mesh_axis_of(mesh_of(in_[id].operands[0]), mesh_of(id)); }

  int split_axis(NodeId id) const { return split_axis_of(in_[id], local_axes(in_[id].operands[0])); }

  NodeId coordinate(int m, DType dtype) {
    NodeId& input = out_.coordinates[static_cast<size_t>(m)];
    if (!input.valid()) {
      const Origin origin = std::exchange(build_.origin, Origin{});
      // No input of a program has a name with a space.
      input = build_.input(Name("coordinate " + in_.mesh.axes[static_cast<size_t>(m)].name.str()), Type{DType::i32, {}});
      build_.origin = origin;
    }
    return dtype == DType::i32 ? input : build_.cast(input, dtype);
  }

  NodeId own_part(NodeId id, int m) {
    const NodeId x = at_[in_[id].operands[0].index];
    const Type part = local_type(id);
    if (part.rank() == 1 && in_[in_[id].operands[0]].op == Op::iota && part.axis(0).size == Poly(1))
      return build_.broadcast(coordinate(m, part.dtype), {}, part.axes);
    return part_at(build_, x, split_axis(id), in_.mesh.axes[static_cast<size_t>(m)], coordinate(m, DType::i32), part);
  }

  const Partitioned& p_;
  const Graph& in_;
  const std::vector<Collective> list_;
  Localized out_;
  Builder build_;
  std::vector<NodeId> at_;
  std::vector<bool> needed_;
  std::unordered_map<uint32_t, Collective> collectives_, splits_;  // by the node that begins, and the one that ends it
};

}  // namespace

Localized localize(const Partitioned& partitioned) { return Localizer(partitioned).run(); }

}  // namespace einc
