// SPDX-License-Identifier: Apache-2.0
// Where the value of each node is made: once, by a kernel that stores it or keeps it among its own, or in every kernel that reads it.
#pragma once
#include <vector>

#include "compiler/fuse/attention_groups.h"
#include "compiler/fuse/reader_lists.h"
#include "compiler/fuse/recompute.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

struct BuiltKernels;

class ValuePlaces {
 public:
  // `roots`: nodes whose values must be in memory at the end.
  ValuePlaces(const BoundGraph& graph, const std::vector<NodeId>& roots);

  // Values per row and key that attention makes are in memory no longer.
  AttentionGroups find_attention();
  // Elementwise values that the backward makes again. What attention reads and makes has been decided before. `built`: kernels that are
  // tried.
  void find_recomputed(const std::vector<GraphKernel>& attentions, const RecomputeLimits& limits, const KernelTarget& target,
                       BuiltKernels& built);

  bool is_root(NodeId id) const { return is_root_[id.index]; }
  bool is_made_where_read(NodeId id) const { return made_where_read_[id.index]; }
  // A node that some kernel has to make.
  bool is_computed(NodeId id) const {
    const Op op = graph_[id].op;
    if (!graph_.live[id.index] || is_source(op)) return false;
    return is_root_[id.index] || (!free_[id.index] && !made_where_read_[id.index] && kind_of(op) != OpKind::view);
  }
  // What one group reads from another is taken to be in memory.
  bool is_in_memory(NodeId id) const { return in_memory_[id.index]; }
  const std::vector<bool>& in_memory() const { return in_memory_; }
  // A function of loop indices that more elements read than it has: stored once, joined to nothing larger.
  bool is_table(NodeId id) const { return tables_[id.index]; }
  // The computed nodes that read it, through views and what is made where it is read.
  std::span<const NodeId> readers(NodeId id) const { return readers_[id]; }
  // Computed nodes and sources that `id` reads, through the same: as often as it reads them, but no more often than twice through one
  // value.
  void for_each_read(NodeId id, const auto& visit) const { walk_reads(id, 2, visit); }
  // Each once.
  void for_each_read_once(NodeId id, const auto& visit) const {
    boost::container::small_vector<NodeId, 16> read;
    walk_reads(id, 1, [&](NodeId x) {
      if (std::ranges::find(read, x) != read.end()) return;
      read.push_back(x);
      visit(x);
    });
  }

 private:
  // Goes through each value that is made where it is read `most` times: an expression of shared values has more paths than can be gone.
  void walk_reads(NodeId id, int most, const auto& visit) const {
    boost::container::small_vector<std::pair<NodeId, int>, 16> inside;
    const auto walk = [&](const auto& self, NodeId from) -> void {
      const bool lie_in_memory = graph_[from].op == Op::scan || is_collective(graph_[from].op);
      for (NodeId x : graph_[from].operands) {
        if (!lie_in_memory) x = below_views(x);
        if (lie_in_memory || !made_where_read_[x.index]) {
          if (lie_in_memory || !free_[x.index]) visit(x);
          continue;
        }
        auto known = std::ranges::find(inside, x, &std::pair<NodeId, int>::first);
        if (known == inside.end()) known = inside.insert(inside.end(), {x, 0});
        if (known->second++ < most) self(self, x);
      }
    };
    walk(walk, id);
  }

  void find_scattered();
  // Values made of constants and loop indices alone.
  void find_free();
  void find_free_but_tables();
  void find_tables();
  bool is_cheap(NodeId id) const;
  bool is_dry_element(NodeId id) const;
  void find_readers();
  bool store_what_fails(const std::vector<bool>& taken, const KernelTarget& target, BuiltKernels& built);
  std::vector<NodeId> recomputed_operands(NodeId id) const;
  NodeId below_views(NodeId id) const {
    while (kind_of(graph_[id].op) == OpKind::view) id = graph_[id].operands[0];
    return id;
  }

  const BoundGraph& graph_;
  std::vector<bool> is_root_, tables_, free_, made_where_read_, in_memory_;
  std::vector<bool> taken_in_parts_;  // draws of which each reader takes a part
  std::vector<bool> scattered_;       // gathers that a sum by index alone reads
  ReaderLists readers_;
};

}  // namespace einc
