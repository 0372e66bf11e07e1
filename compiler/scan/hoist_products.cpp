// SPDX-License-Identifier: Apache-2.0
// One product of all iterations has rows enough to fill tiles, where each iteration's has only the batch: the input projections of an LSTM
// run at the speed of a large product. Nothing else is hoisted for its own sake. An elementwise step that reads slices alone is as cheap
// inside, and outside its result of all iterations would have to be stored.
#include "compiler/scan/hoist_products.h"

#include <algorithm>
#include <optional>

namespace einc {
namespace {

// Axes behind the scan's, which comes first; `with_first`: that one as well.
AxisList shifted(const AxisList& list, bool with_first) {
  AxisList out;
  if (with_first) out.push_back(0);
  for (int i = 0; i < list.size(); ++i) out.push_back(list[i] + 1);
  return out;
}

// Counts of split and merge, the scan's axis staying one.
AxisList behind_one(const AxisList& counts) {
  AxisList out;
  out.push_back(1);
  for (int count : counts) out.push_back(count);
  return out;
}

// A node of the body as one outside; `along`: with the scan's axis in front.
struct Batched {
  NodeId node;
  bool along = false;
};

class Batcher {
 public:
  Batcher(Builder& outside, BodyBuilder& body)
      : outside_(outside), body_(body), known_(body.graph().size()), tried_(body.graph().size(), false) {}

  // The node made outside, with what it reads; nothing where some of that cannot be. Each node is made once.
  std::optional<Batched> operator()(NodeId id) {
    if (!tried_[id.index]) {
      tried_[id.index] = true;
      known_[id.index] = make(id);
    }
    return known_[id.index];
  }

 private:
  std::optional<Batched> make(NodeId id) {
    const Node& node = body_.graph()[id];
    if (node.op == Op::input) {
      const NodeId stacked = body_.stacked(id);
      return stacked.valid() ? Batched{stacked, true} : Batched{body_.whole(id), false};
    }
    if (!may_batch(node.op)) return std::nullopt;
    std::vector<Batched> operands;
    bool along = false;
    for (NodeId x : node.operands) {
      const auto operand = (*this)(x);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
      along = along || operand->along;
    }
    Node made = node;
    for (size_t k = 0; k < operands.size(); ++k) made.operands[k] = operands[k].node;
    if (along) {
      if (node.type.rank() == kMaxRank) return std::nullopt;
      made.type.axes.insert(made.type.axes.begin(), body_.axis());
      shift(made, operands);
    }
    return Batched{outside_.append(std::move(made)), along};
  }

  static bool may_batch(Op op) {
    return op == Op::map || op == Op::cast || op == Op::contract || op == Op::reduce || op == Op::permute || op == Op::broadcast ||
           op == Op::split || op == Op::merge || op == Op::slice || op == Op::constant || op == Op::iota;
  }

  // Attributes name axes by their place. One that is there for all iterations alone has no place for the scan's axis.
  static void shift(Node& node, const std::vector<Batched>& operands) {
    if (auto* a = std::get_if<MapAttr>(&node.attr))
      for (size_t k = 0; k < operands.size(); ++k) a->maps[k] = shifted(a->maps[k], operands[k].along);
    if (auto* a = std::get_if<ContractAttr>(&node.attr)) {
      a->left = shifted(a->left, operands[0].along);
      a->right = shifted(a->right, operands[1].along);
    }
    if (auto* a = std::get_if<ReduceAttr>(&node.attr)) a->axes = shifted(a->axes, false);
    if (auto* a = std::get_if<PermuteAttr>(&node.attr)) a->order = shifted(a->order, true);
    if (auto* a = std::get_if<BroadcastAttr>(&node.attr)) a->map = shifted(a->map, true);
    if (auto* a = std::get_if<SplitAttr>(&node.attr)) a->counts = behind_one(a->counts);
    if (auto* a = std::get_if<MergeAttr>(&node.attr)) a->counts = behind_one(a->counts);
    if (auto* a = std::get_if<SliceAttr>(&node.attr)) ++a->axis;
  }

  Builder& outside_;
  BodyBuilder& body_;
  std::vector<std::optional<Batched>> known_;
  std::vector<bool> tried_;
};

// How often iterations read each node.
std::vector<int> readers_in(BodyBuilder& body) {
  std::vector<int> readers(body.graph().size(), 0);
  for (const Node& node : body.graph().nodes)
    for (NodeId x : node.operands) ++readers[x.index];
  for (NodeId root : body.roots()) ++readers[root.index];
  return readers;
}

}  // namespace

void hoist_products(Builder& outside, BodyBuilder& body, std::span<const NodeId> given) {
  const uint32_t nodes = body.graph().size();
  std::vector<bool> varies(nodes, false);  // from one iteration to the next by more than slices
  std::vector<bool> hoisted(nodes, false);
  for (const NodeId id : given) varies[id.index] = true;
  const std::vector<int> readers = readers_in(body);
  Batcher batched(outside, body);
  for (uint32_t i = 0; i < nodes; ++i) {
    const Node& node = body.graph().nodes[i];
    varies[i] = varies[i] || node.op == Op::state || node.op == Op::random || node.op == Op::dropout || node.op == Op::scan;
    for (NodeId x : node.operands) varies[i] = varies[i] || varies[x.index];
    if (varies[i]) continue;
    // A bias goes with its product: what it makes takes the product's place in memory.
    const bool follows =
        node.op == Op::map && std::ranges::any_of(node.operands, [&](NodeId x) { return hoisted[x.index] && readers[x.index] == 1; });
    if (node.op != Op::contract && !follows) continue;
    const auto value = batched(NodeId{i});
    if (!value || !value->along) continue;
    hoisted[i] = true;
    body.replace_by_slice(NodeId{i}, value->node);
  }
}

}  // namespace einc
