// SPDX-License-Identifier: Apache-2.0
// Divides a graph into kernels. Every computed node starts as a group of its own; going through the graph once, a node joins
// the groups of its operands where the result is still one kernel (it is built to see) and no other group lies between them.
#pragma once
#include <memory>

#include "compiler/fuse/kernel_cache.h"
#include "compiler/fuse/value_places.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

class KernelFormer {
 public:
  // Kernels of attention are taken from `attention` as they are, others from `built` where it has them. `list` gets the kernels, and why
  // others were not formed; it says whether results may be written in place. All outlive the former.
  KernelFormer(const BoundGraph& graph, const ValuePlaces& values, AttentionGroups& attention, const KernelTarget& target,
               BuiltKernels& built, KernelList& list);
  ~KernelFormer();
  KernelFormer(KernelFormer&&) noexcept;
  KernelFormer& operator=(KernelFormer&&) noexcept;

  void join_operands();
  void keep_apart();  // instead: each node a group of its own
  // What reduces a whole value joins a kernel that goes over it anyway; sums down columns of one value are made by one.
  void join_whole_reductions();
  // Kernels of the groups, as built, in an order that respects their operands.
  void emit();

 private:
  class Former;
  std::unique_ptr<Former> former_;
};

}  // namespace einc
