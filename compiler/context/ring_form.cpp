// SPDX-License-Identifier: Apache-2.0
#include "compiler/context/ring_form.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/fuse/softmax_attention.h"

namespace einc {
namespace {

constexpr int64_t kMostDevices = 64;  // steps are unrolled

class Reader {
 public:
  Reader(const Graph& graph, const SplitAttention& split) : graph_(graph), found_(split.attention), split_(split) {}

  std::variant<RingForm, FusionRefusal> run(int64_t devices) {
    form_.split = &split_;
    form_.devices = devices;
    if (devices > kMostDevices) refuse(found_.scores, "more devices than steps are unrolled for");
    if (split_.key_over.size() != 1 || split_.row_over.size() != 1) refuse(found_.scores, "several mesh axes split its rows or keys");
    find_softmax();
    if (!refusal_) check_pairs();
    if (!refusal_) check_results();
    if (refusal_) return *refusal_;
    return form_;
  }

 private:
  void refuse(NodeId at, const char* reason) {
    if (!refusal_) refusal_ = FusionRefusal{found_.scores, at, reason};
  }

  bool is_fold(NodeId id) const {
    const Node& node = graph_[id];
    return node.op == Op::reduce && std::ranges::binary_search(found_.pairs, node.operands[0]);
  }

  void find_softmax() {
    for (const NodeId id : found_.forward.members) {
      if (!is_fold(id)) continue;
      const ReduceFn fn = graph_[id].as<ReduceAttr>().fn;
      NodeId& place = fn == ReduceFn::max ? form_.max : form_.sum;
      if (place.valid() || (fn != ReduceFn::max && fn != ReduceFn::sum)) return refuse(id, "it folds more than one softmax does");
      place = id;
    }
    for (const NodeId id : found_.backward.members)
      if (is_fold(id)) return refuse(id, "its backward sums over keys before it knows what the softmax's gradient subtracts");
    if (!form_.max.valid() || !form_.sum.valid()) return refuse(found_.scores, "it has no softmax");
    for (const NodeId id : found_.pairs)
      if (const auto weight = softmax_weight(graph_, found_, id); weight && weight->max == form_.max && weight->sum == form_.sum) {
        form_.weight = id;
        form_.exponential = weight->exponential;
        form_.difference = weight->difference;
      }
    if (!form_.weight.valid() || graph_[form_.sum].type.dtype != graph_[form_.max].type.dtype)
      return refuse(form_.sum, "its softmax has another form");
    const std::vector<int>& axes = found_.axes.at(form_.max.index);
    if (std::ranges::find(axes, -1) != axes.end()) refuse(form_.max, "its rows have an axis of size 1 more than its scores");
  }

  // Values per row and key are made at each step from what it meets; those that follow from weights, by the forward alone, and so that a
  // factor may be taken out of them.
  void check_pairs() {
    follows_.insert(form_.difference);
    follows_.insert(form_.exponential);
    follows_.insert(form_.weight);
    for (const NodeId id : found_.pairs) {
      const Node& node = graph_[id];
      const bool known =
          node.op == Op::contract || node.op == Op::map || node.op == Op::cast || node.op == Op::stop_gradient || node.op == Op::permute;
      if (!known) return refuse(id, "its scores are made of more than products and elementwise values");
      if (follows_.contains(id)) continue;
      const auto follows = [&](NodeId x) { return follows_.contains(x) || x == form_.sum; };
      if (std::ranges::none_of(node.operands, follows)) continue;
      if (node.origin.phase != Phase::forward) return refuse(id, "its backward reads the forward's weights");
      const bool scales = node.op == Op::cast || (is_map(node, MapFn::mul) && std::ranges::count_if(node.operands, follows) == 1);
      if (!scales || std::ranges::none_of(node.operands, [&](NodeId x) { return is_weight(x); }))
        return refuse(id, "its weights are not only scaled before they meet the values");
      follows_.insert(id);
    }
  }

  void check_results() {
    for (const NodeId id : found_.forward.results) {
      const Node& node = graph_[id];
      if (std::ranges::none_of(node.operands, [&](NodeId x) { return is_weight(x); }))
        return refuse(id, "values are mixed by other numbers than weights");
      form_.forward.push_back(id);
    }
    form_.backward = found_.backward.results;
  }

  // The weight, or it times what does not follow from it.
  bool is_weight(NodeId id) const {
    if (id == form_.weight) return true;
    const Node& node = graph_[id];
    if (id == form_.exponential || id == form_.difference || !follows_.contains(id)) return false;
    return std::ranges::any_of(node.operands, [&](NodeId x) { return is_weight(x); });
  }

  const Graph& graph_;
  const FoundAttention& found_;
  const SplitAttention& split_;
  RingForm form_;
  std::set<NodeId> follows_;  // from what the softmax subtracts
  std::optional<FusionRefusal> refusal_;
};

}  // namespace

std::variant<RingForm, FusionRefusal> ring_form(const Graph& graph, const SplitAttention& split, const Bindings& given) {
  const Poly& devices = graph.mesh.axes[static_cast<size_t>(split.mesh_axis)].size;
  return Reader(graph, split).run(devices.evaluate_integer(graph.dims.bind(given).values).value_or(INT64_MAX));
}

}  // namespace einc
