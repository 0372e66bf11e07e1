// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/orient_operands.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/fuse/contraction_labels.h"
#include "compiler/fuse/library_layouts.h"
#include "compiler/fuse/row_values.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

class Orienter {
 public:
  Orienter(const BoundGraph& graph, const KernelTarget& target) : graph_(graph), target_(target), to_(graph.graph.size()) {}

  OrientedGraph run() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      if (graph_.live[i] && suits_library(graph_, NodeId{i}, target_)) find_uses(NodeId{i});
    if (copies_ == 0) return {};
    rows_.emplace(graph_);
    out_ = without_nodes(graph_.graph);
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) add(NodeId{i});
    for (Output& output : out_.outputs) output.node = to_[output.node.index];
    for (std::vector<Update>* list : {&out_.updates, &out_.gradients})
      for (Update& update : *list) update = {to_[update.target.index], to_[update.value.index]};
    if (out_.loss.valid()) out_.loss = to_[out_.loss.index];
    return {std::make_unique<const Graph>(std::move(out_)), std::move(to_)};
  }

 private:
  using Axes = std::vector<int>;  // contracted ones that have more than one step

  // What devices make together lies row-major: whether a product's summed axes are the last, so that it takes the value as it lies.
  static inline const Axes kAsItLies{};
  bool is_last(const Axes& axes, NodeId value) const {
    const Shape& shape = graph_.shape(value);
    size_t left = axes.size();
    for (size_t i = shape.size(); i-- > 0 && left > 0;) {
      if (shape[i] == 1) continue;
      if (axes[--left] != static_cast<int>(i)) return false;
    }
    return true;
  }

  void find_uses(NodeId contraction) {
    const ContractionLabels labels(graph_, contraction, contraction);
    for (size_t t : {0, 1}) {
      const NodeId value = labels.tensors[t];
      const Node& node = graph_[value];
      if (bytes_of(node.type.dtype) != 1 || (node.op != Op::map && !is_collective(node.op))) continue;
      Axes axes;
      for (size_t i = 0; i < labels.of[t].size(); ++i)
        if (graph_.shape(value)[i] > 1 && labels.is_depth(t, i)) axes.push_back(static_cast<int>(i));
      std::vector<Axes>& known = orientations_[value.index];
      if (is_collective(node.op)) {
        if (known.empty()) known.push_back(kAsItLies);
        if (is_last(axes, value)) axes = kAsItLies;
      }
      const auto found = std::find(known.begin(), known.end(), axes);
      const auto copy = static_cast<size_t>(found - known.begin());
      if (found == known.end()) {
        known.push_back(axes);
        if (copy > 0) ++copies_;
      }
      if (copy > 0) uses_[{contraction.index, t}] = copy;
    }
  }

  NodeId emit(Node node) {
    out_.nodes.push_back(std::move(node));
    return NodeId{out_.size() - 1};
  }
  Node moved(NodeId id) const {
    Node node = graph_[id];
    for (NodeId& x : node.operands) x = to_[x.index];
    return node;
  }

  void add(NodeId id) {
    Node node = moved(id);
    for (size_t t = 0; t < node.operands.size(); ++t)
      if (const auto use = uses_.find({id.index, t}); use != uses_.end()) node.operands[t] = copy_of(graph_[id].operands[t], use->second);
    to_[id.index] = emit(std::move(node));
    const auto oriented = orientations_.find(id.index);
    if (oriented == orientations_.end() || is_collective(graph_[id].op)) return;
    for (size_t copy = 1; copy < oriented->second.size(); ++copy)
      made_[{id.index, copy}] = emit(rows_->row_axes(id) > 0 ? cast_of(id) : moved(id));
  }

  // What a kernel makes row by row cannot go through tiles: the copy is made of the value, not of what that follows from, which would have
  // to be stored in full precision.
  Node cast_of(NodeId id) const {
    Node node = graph_[id];
    node.op = Op::cast;
    node.attr = {};
    node.operands = {to_[id.index]};
    return node;
  }

  // A view of a value as one of its copy. What devices make together is turned where it is first wanted: it comes before that.
  NodeId copy_of(NodeId view, size_t copy) {
    const auto known = made_.find({view.index, copy});
    if (known != made_.end()) return known->second;
    if (is_collective(graph_[view].op)) return made_[{view.index, copy}] = emit(cast_of(view));
    Node node = graph_[view];
    node.operands[0] = copy_of(node.operands[0], copy);
    return made_[{view.index, copy}] = emit(std::move(node));
  }

  const BoundGraph& graph_;
  const KernelTarget& target_;
  std::optional<RowValues> rows_;
  std::map<uint32_t, std::vector<Axes>> orientations_;  // of values: the first is the value itself, then its copies
  std::map<std::pair<uint32_t, size_t>, size_t> uses_;  // by contraction and operand: the copy
  std::map<std::pair<uint32_t, size_t>, NodeId> made_;  // by node and copy, in the new graph
  size_t copies_ = 0;
  std::vector<NodeId> to_;
  Graph out_;
};

}  // namespace

OrientedGraph orient_operands(const BoundGraph& graph, const KernelTarget& target) { return Orienter(graph, target).run(); }

}  // namespace einc
