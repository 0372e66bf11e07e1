// SPDX-License-Identifier: Apache-2.0
// What decides whether a group is one kernel, as a list of numbers: equal lists, equal answers. The layers of a model are
// alike, so most groups have been tried before.
#pragma once
#include <span>
#include <vector>

#include "compiler/fuse/node_classes.h"
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

using Signature = std::vector<uint32_t>;

struct SignatureHash {
  size_t operator()(const Signature& s) const {
    size_t h = s.size();
    for (uint32_t x : s) h = (h ^ x) * size_t{0x9E3779B97F4A7C15u} + (h >> 29);
    return h;
  }
};

class Signer {
 public:
  // `in_memory`: nodes that others load, as for build_kernel. Signatures of graphs that share `classes` are alike where their groups are.
  Signer(const BoundGraph& graph, const std::vector<bool>& in_memory, NodeClasses& classes)
      : graph_(graph), in_memory_(in_memory), classes_(classes), class_of_(graph.graph.size(), kUnknown), inlined_(graph.graph.size()) {}

  // Valid until the next one.
  const Signature& sign(const Group& group);
  // What else decides goes behind it: a number, or which of the group's nodes it is, or of those that it reads or makes where they are
  // read.
  void add(uint32_t number) { out_.push_back(number); }
  void add_place(NodeId id, const Group& group);
  const Signature& signature() const { return out_; }

  // Nodes of the group signed last as numbers that are alike in groups alike: members by their place, what it reads from memory behind
  // them by first appearance. An invalid node is kNoNode.
  static constexpr uint32_t kNoNode = UINT32_MAX;
  std::vector<uint32_t> numbers_of(std::span<const NodeId> nodes, const Group& group) const;
  std::vector<NodeId> nodes_of(std::span<const uint32_t> numbers, const Group& group) const;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  uint32_t number_of(NodeId id, const Group& group) const;
  uint32_t class_of(NodeId id);
  void write(NodeId id, const Group& group);

  const BoundGraph& graph_;
  const std::vector<bool>& in_memory_;
  NodeClasses& classes_;
  std::vector<uint32_t> class_of_;  // by node
  Signature out_;                   // of the group being signed
  std::vector<NodeId> outside_;     // what that reads from memory, by first appearance
  // What is made where it is read: in which group it was written last, and as which of those there.
  struct Inlined {
    uint32_t group = 0, number = 0;
  };
  std::vector<Inlined> inlined_;       // by node
  uint32_t groups_ = 0, inlines_ = 0;  // signed so far; in the last one
};

}  // namespace einc
