// SPDX-License-Identifier: Apache-2.0
// For each node of a graph, those that read it: all in one array, which is filled at once. Most lists hold one or two nodes.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

class ReaderLists {
 public:
  ReaderLists() = default;
  // Of `nodes` nodes: pairs of what is read and its reader. A list keeps their order.
  ReaderLists(uint32_t nodes, std::span<const std::pair<NodeId, NodeId>> reads) : starts_(nodes + 1, 0), readers_(reads.size()) {
    for (const auto& [read, reader] : reads) ++starts_[read.index + 1];
    for (uint32_t i = 0; i < nodes; ++i) starts_[i + 1] += starts_[i];
    std::vector<uint32_t> next = starts_;
    for (const auto& [read, reader] : reads) readers_[next[read.index]++] = reader;
  }

  std::span<const NodeId> operator[](NodeId id) const {
    return std::span(readers_).subspan(starts_[id.index], starts_[id.index + 1] - starts_[id.index]);
  }

 private:
  std::vector<uint32_t> starts_;  // by node
  std::vector<NodeId> readers_;
};

}  // namespace einc
