// SPDX-License-Identifier: Apache-2.0
// Values that the forward saves and the backward makes again instead: which nodes that means, what they cost, and the graph with copies of
// them. The graph and its dims are fixed; which values are chosen is the search's affair (memory_limit).
//   saved        read by the backward where the forward left it: copies are made from these
//   chosen       saved values that no longer are: a copy of each is stored before its first reader
//   early        of the backward, but made by a kernel of the forward, which reads what the forward made
//   where read   what readers make of a saved value for themselves: they make it of the copy in the same way
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

class RemadeValues {
 public:
  // Per node. `fixed`: made by kernels of attention, whose values are never copied.
  struct Places {
    std::vector<bool> saved, fixed, early, where_read;
    // Nodes that a product makes in its epilogue, as long as none of them is made twice, and the bytes that this saves.
    struct Epilogue {
      std::vector<NodeId> nodes;
      int64_t bytes = 0;
    };
    std::vector<Epilogue> epilogues;
  };
  // `flops_per_byte`: of the machine, by which traffic counts as the work that takes as long.
  RemadeValues(const BoundGraph& graph, Places places, double flops_per_byte)
      : graph_(graph), places_(std::move(places)), flops_per_byte_(flops_per_byte) {}

  // Products, elementwise functions, views and draws. Sums along rows are not: in a kernel of their own they could run in another order.
  bool may_be_made(NodeId id) const;
  int64_t bytes(NodeId id) const;
  // FLOPs of all that a choice makes anew, with those that take as long as the bytes that it moves.
  double cost(const std::vector<NodeId>& chosen) const;

  struct Copies {
    std::unique_ptr<const Graph> graph;
    std::vector<NodeId> at;                // of each node given
    std::vector<NodeId> late, where_read;  // copies in kernels of their own, and those that readers make
    std::vector<NodeId> twice;             // what there are copies of, and the copies
  };
  Copies copies(const std::vector<NodeId>& chosen) const;
  // Per node whether it is made anew, and whether it is chosen: choices that agree in this have the same copies.
  std::vector<bool> made_and_chosen(const std::vector<NodeId>& chosen) const;

  const std::vector<bool>& saved() const { return places_.saved; }
  void save_just(std::vector<bool> saved) { places_.saved = std::move(saved); }

 private:
  std::vector<bool> made_for(const std::vector<NodeId>& chosen) const;
  double cost(NodeId id) const;

  const BoundGraph& graph_;
  Places places_;
  const double flops_per_byte_;
};

}  // namespace einc
