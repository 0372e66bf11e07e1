// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/signature.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace einc {
namespace {

// Marks in a signature; classes and numbers follow them.
enum Mark : uint32_t { kMember, kStored, kLocal, kOutside, kInline, kAgain, kInPlace, kSiblings, kNowhere };

}  // namespace

uint32_t Signer::class_of(NodeId id) {
  uint32_t& known = class_of_[id.index];
  if (known == kUnknown) known = classes_.class_of(graph_, id);
  return known;
}

void Signer::write(NodeId id, const Group& group) {
  const auto member = std::lower_bound(group.members.begin(), group.members.end(), id);
  if (member != group.members.end() && *member == id) {
    out_.push_back(kLocal);
    out_.push_back(static_cast<uint32_t>(member - group.members.begin()));
    return;
  }
  const auto number = [&] {
    auto seen = std::find(outside_.begin(), outside_.end(), id);
    if (seen == outside_.end()) seen = outside_.insert(outside_.end(), id);
    return static_cast<uint32_t>(seen - outside_.begin());
  };
  if (names_only(graph_[id].op) || in_memory_[id.index]) {
    out_.push_back(kOutside);
    out_.push_back(number());
    out_.push_back(static_cast<uint32_t>(graph_[id].type.dtype));
    return;
  }
  // Once in a group: an expression of shared values has more paths than can be written.
  Inlined& inlined = inlined_[id.index];
  if (inlined.group == groups_) {
    out_.push_back(kAgain);
    out_.push_back(inlined.number);
    return;
  }
  inlined = {groups_, inlines_++};
  out_.push_back(kInline);
  out_.push_back(class_of(id));
  // A site that checks an index, a stream of draws.
  if (graph_[id].op == Op::gather || graph_[id].op == Op::random) out_.push_back(number());
  for (NodeId x : graph_[id].operands) write(x, group);
}

const Signature& Signer::sign(const Group& group) {
  out_.clear();
  outside_.clear();
  ++groups_, inlines_ = 0;
  if (group.base.valid()) out_.push_back(kInPlace);
  if (group.siblings) out_.push_back(kSiblings);
  for (NodeId id : group.members) {
    out_.push_back(kMember);
    if (std::binary_search(group.stored.begin(), group.stored.end(), id)) out_.push_back(kStored);
    out_.push_back(class_of(id));
    for (NodeId x : graph_[id].operands) write(x, group);
  }
  return out_;
}

void Signer::add_place(NodeId id, const Group& group) {
  const uint32_t number = number_of(id, group);
  const bool made = number == kNoNode && id.valid() && inlined_[id.index].group == groups_;
  out_.push_back(number != kNoNode ? kLocal : made ? kInline : kNowhere);
  out_.push_back(made ? inlined_[id.index].number : number);
}

// kNoNode for one that the group neither holds nor reads.
uint32_t Signer::number_of(NodeId id, const Group& group) const {
  const auto member = std::lower_bound(group.members.begin(), group.members.end(), id);
  if (member != group.members.end() && *member == id) return static_cast<uint32_t>(member - group.members.begin());
  const auto read = std::find(outside_.begin(), outside_.end(), id);
  return read == outside_.end() ? kNoNode : static_cast<uint32_t>(group.members.size() + static_cast<size_t>(read - outside_.begin()));
}

std::vector<uint32_t> Signer::numbers_of(std::span<const NodeId> nodes, const Group& group) const {
  std::vector<uint32_t> numbers;
  for (const NodeId id : nodes) {
    numbers.push_back(number_of(id, group));
    EINC_CHECK(!id.valid() || numbers.back() != kNoNode, "a kernel's buffer is no node of its group");
  }
  return numbers;
}

std::vector<NodeId> Signer::nodes_of(std::span<const uint32_t> numbers, const Group& group) const {
  std::vector<NodeId> nodes;
  for (const uint32_t number : numbers) {
    if (number == kNoNode)
      nodes.emplace_back();
    else
      nodes.push_back(number < group.members.size() ? group.members[number] : outside_[number - group.members.size()]);
  }
  return nodes;
}

}  // namespace einc
