// SPDX-License-Identifier: Apache-2.0
// Where the value of each node is made: once, by a kernel that stores it or keeps it among its own, or in every kernel that reads it.
#pragma once
#include <vector>

#include "compiler/fuse/attention_groups.h"
#include "compiler/fuse/recompute.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

class ValuePlaces {
 public:
  // `roots`: nodes whose values must be in memory at the end.
  ValuePlaces(const BoundGraph& graph, const std::vector<NodeId>& roots);

  // Values per row and key that attention makes are in memory no longer.
  AttentionGroups find_attention();
  // Elementwise values that the backward makes again. What attention reads and makes has been decided before.
  void find_recomputed(const std::vector<GraphKernel>& attentions, const RecomputeLimits& limits, const KernelTarget& target);

  bool is_root(NodeId id) const { return is_root_[id.index]; }
  bool is_made_where_read(NodeId id) const { return made_where_read_[id.index]; }
  // A node that some kernel has to make.
  bool is_computed(NodeId id) const;
  // What one group reads from another is taken to be in memory.
  bool is_in_memory(NodeId id) const { return in_memory_[id.index]; }
  const std::vector<bool>& in_memory() const { return in_memory_; }
  // A function of loop indices that more elements read than it has: stored once, joined to nothing larger.
  bool is_table(NodeId id) const { return tables_[id.index]; }
  // The computed nodes that read it, through views and what is made where it is read.
  const std::vector<NodeId>& readers(NodeId id) const { return readers_[id.index]; }
  // Computed nodes and sources that `id` reads, through the same: as often as it reads them, or each once, which an expression of shared
  // values made where they are read needs, whose paths are many.
  void for_each_read(NodeId id, const auto& visit) const {
    // They lie in memory as they are.
    if (graph_[id].op == Op::scan || is_collective(graph_[id].op)) return void(std::ranges::for_each(graph_[id].operands, visit));
    for (NodeId x : graph_[id].operands) {
      x = below_views(x);
      if (made_where_read_[x.index])
        for_each_read(x, visit);
      else if (!free_[x.index])
        visit(x);
    }
  }

  void for_each_read_once(NodeId id, const auto& visit) const {
    boost::container::small_vector<NodeId, 16> read, inside{id};
    const auto is_new = [](auto& known, NodeId x) {
      const bool fresh = std::ranges::find(known, x) == known.end();
      if (fresh) known.push_back(x);
      return fresh;
    };
    const auto walk = [&](const auto& self, NodeId from) -> void {
      const bool as_they_are = graph_[from].op == Op::scan || is_collective(graph_[from].op);
      for (NodeId x : graph_[from].operands) {
        if (!as_they_are) x = below_views(x);
        if (!as_they_are && made_where_read_[x.index]) {
          if (is_new(inside, x)) self(self, x);
        } else if ((as_they_are || !free_[x.index]) && is_new(read, x)) {
          visit(x);
        }
      }
    };
    walk(walk, id);
  }

 private:
  // Values made of constants and loop indices alone.
  void find_free();
  void find_free_but_tables();
  void find_tables();
  bool is_cheap(NodeId id) const;
  bool is_dry_element(NodeId id) const;
  void find_readers();
  bool store_what_fails(const KernelTarget& target);
  std::vector<NodeId> recomputed_operands(NodeId id) const;
  NodeId below_views(NodeId id) const {
    while (kind_of(graph_[id].op) == OpKind::view) id = graph_[id].operands[0];
    return id;
  }

  const BoundGraph& graph_;
  std::vector<bool> is_root_, tables_, free_, made_where_read_, in_memory_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace einc
