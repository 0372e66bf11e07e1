// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/narrow_products.h"

#include <algorithm>
#include <array>

#include "compiler/fuse/contraction_labels.h"
#include "compiler/fuse/library_layouts.h"
#include "compiler/lower/library_products.h"

namespace einc {
namespace {

class Narrower {
 public:
  Narrower(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target)
      : graph_(graph), target_(target), reads_(graph.graph.size(), 0) {
    for (uint32_t i = 0; i < graph.graph.size(); ++i)
      if (graph.live[i])
        for (NodeId x : graph.graph.nodes[i].operands) ++reads_[x.index];
    for (NodeId root : roots) ++reads_[root.index];
  }

  std::unique_ptr<const Graph> run() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      if (graph_.live[i] && widens(NodeId{i})) narrow(NodeId{i});
    for (uint32_t i = 0; i < graph_.graph.size() && out_; ++i)
      if (graph_.live[i]) round_at_once(NodeId{i});
    return std::move(out_);
  }

 private:
  bool is_widened(NodeId id) const {
    const Node& node = graph_[id];
    return node.op == Op::cast && is_fp8(graph_[node.operands[0]].type.dtype);
  }
  // Every fp8 value is one of f32, bf16 and f16, too, and f32 holds every product of two.
  bool widens(NodeId id) const {
    const Node& node = graph_[id];
    if (node.op != Op::contract || node.type.dtype == DType::f64 ||
        !std::ranges::all_of(node.operands, [&](NodeId x) { return is_widened(x); }))
      return false;
    const NodeId left = graph_[node.operands[0]].operands[0], right = graph_[node.operands[1]].operands[0];
    return is_fp8_product(graph_[left].type.dtype, graph_[right].type.dtype) && suits_library_as_fp8(graph_, id, target_) &&
           lie_along_depth(id);
  }

  // As the library reads fp8.
  bool lie_along_depth(NodeId id) const {
    const ContractionLabels labels(graph_, id, id);
    return std::ranges::all_of(std::array{size_t{0}, size_t{1}}, [&](size_t t) {
      const size_t rank = labels.of[t].size();
      return rank > 0 && labels.is_depth(t, rank - 1);
    });
  }

  void narrow(NodeId id) {
    if (!out_) out_ = std::make_unique<Graph>(graph_.graph);
    for (NodeId& x : out_->nodes[id.index].operands) x = graph_[x].operands[0];
  }

  // A cast of sums that nothing else reads becomes the contraction itself.
  void round_at_once(NodeId id) {
    const Node& cast = graph_[id];
    if (cast.op != Op::cast || (cast.type.dtype != DType::bf16 && cast.type.dtype != DType::f16)) return;
    const NodeId sums = cast.operands[0];
    if (reads_[sums.index] != 1 || graph_[sums].type.dtype != DType::f32 || !widens(sums)) return;
    Node& result = out_->nodes[id.index];
    result.op = Op::contract;
    result.attr = out_->nodes[sums.index].attr;
    result.operands = out_->nodes[sums.index].operands;
  }

  const BoundGraph& graph_;
  const KernelTarget& target_;
  std::vector<int> reads_;  // of each value, roots included
  std::unique_ptr<Graph> out_;
};

}  // namespace

std::unique_ptr<const Graph> narrow_products(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  return Narrower(graph, roots, target).run();
}

}  // namespace einc
