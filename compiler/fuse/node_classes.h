// SPDX-License-Identifier: Apache-2.0
// Nodes that do the same with operands that lie alike, of one graph or of several with the same numbers for their dims.
#pragma once
#include <unordered_map>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

// What only names a value: its kernels are told where it lies when they run.
inline bool names_only(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

class NodeClasses {
 public:
  uint32_t class_of(const BoundGraph& graph, NodeId id);

 private:
  // All that a kernel's text follows from, but which operands are in memory.
  struct Work {
    Op op;
    DType dtype;
    Attr attr;
    bool where_read;
    std::vector<MemoryLayout> values;  // its own, then those of its operands
  };
  static bool is_same(const BoundGraph& graph, NodeId id, const Work& work);

  std::vector<Work> works_;  // by class
  std::unordered_map<size_t, std::vector<uint32_t>> by_hash_;
};

}  // namespace einc
