// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/signature.h"

#include <algorithm>

#include "compiler/ir/attr_hash.h"

namespace einc {
namespace {

// Marks in a signature; classes and numbers follow them.
enum Mark : uint32_t { kMember, kStored, kLocal, kOutside, kInline, kAgain, kInPlace, kSiblings };

bool names_only(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

// What two nodes of one class agree in beside their operands' and their own shapes.
size_t hash_of_work(const Node& node) {
  if (names_only(node.op)) return 0;
  return node.op == Op::random ? static_cast<size_t>(node.as<RandomAttr>().kind) : hash_of(node.attr);
}

// Draws of two streams are one kernel, which is told the stream's key when it runs. All else that a draw depends on is in its code.
bool same_draws(RandomAttr a, const RandomAttr& b) {
  a.stream = b.stream;
  return a == b;
}

bool same_work(const Node& a, const Node& b) {
  return names_only(a.op) || (a.op == Op::random ? same_draws(a.as<RandomAttr>(), b.as<RandomAttr>()) : a.attr == b.attr);
}

}  // namespace

bool Signer::lie_alike(NodeId a, NodeId b) const {
  return graph_.shape(a) == graph_.shape(b) && (graph_.order.empty() || graph_.order[a.index] == graph_.order[b.index]);
}

uint32_t Signer::class_of(NodeId id) {
  uint32_t& known = class_of_[id.index];
  if (known != kUnknown) return known;
  const Node& node = graph_[id];
  size_t hash = mix(mix(static_cast<size_t>(node.op), static_cast<size_t>(node.type.dtype)), hash_of_work(node));
  const auto mix_shape = [&](NodeId x) {
    for (int64_t extent : graph_.shape(x)) hash = mix(hash, static_cast<size_t>(extent));
  };
  mix_shape(id);
  for (NodeId x : node.operands) mix_shape(x);
  std::vector<NodeId>& alike = by_hash_[hash];
  const auto same = std::find_if(alike.begin(), alike.end(), [&](NodeId other) {
    const Node& b = graph_[other];
    if (b.op != node.op || b.type.dtype != node.type.dtype || !lie_alike(other, id)) return false;
    if (!same_work(node, b) || b.operands.size() != node.operands.size()) return false;
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (!lie_alike(node.operands[k], b.operands[k])) return false;
    return true;
  });
  if (same != alike.end()) return known = same->index;
  alike.push_back(id);
  return known = id.index;
}

void Signer::write(NodeId id, const Group& group, Signature& out) {
  const auto member = std::lower_bound(group.members.begin(), group.members.end(), id);
  if (member != group.members.end() && *member == id) {
    out.insert(out.end(), {kLocal, static_cast<uint32_t>(member - group.members.begin())});
    return;
  }
  const auto number = [&] {
    auto seen = std::find(outside_.begin(), outside_.end(), id);
    if (seen == outside_.end()) seen = outside_.insert(outside_.end(), id);
    return static_cast<uint32_t>(seen - outside_.begin());
  };
  if (names_only(graph_[id].op) || in_memory_[id.index]) {
    out.insert(out.end(), {kOutside, number(), static_cast<uint32_t>(graph_[id].type.dtype)});
    return;
  }
  // Once in a group: an expression of shared values has more paths than can be written.
  Inlined& inlined = inlined_[id.index];
  if (inlined.group == groups_) {
    out.insert(out.end(), {kAgain, inlined.number});
    return;
  }
  inlined = {groups_, inlines_++};
  out.insert(out.end(), {kInline, class_of(id)});
  if (graph_[id].op == Op::gather) out.push_back(number());  // a site that checks an index
  for (NodeId x : graph_[id].operands) write(x, group, out);
}

Signature Signer::sign(const Group& group) {
  outside_.clear();
  ++groups_, inlines_ = 0;
  Signature out;
  if (group.base.valid()) out.push_back(kInPlace);
  if (group.siblings) out.push_back(kSiblings);
  for (NodeId id : group.members) {
    out.push_back(kMember);
    if (std::binary_search(group.stored.begin(), group.stored.end(), id)) out.push_back(kStored);
    out.push_back(class_of(id));
    for (NodeId x : graph_[id].operands) write(x, group, out);
  }
  return out;
}

}  // namespace einc
