// SPDX-License-Identifier: Apache-2.0
// Kernels of groups, each built once: groups alike differ in their buffers alone.
#pragma once
#include <unordered_map>

#include "compiler/fuse/kernel_builder.h"
#include "compiler/fuse/signature.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// By signature: of one graph, or of graphs that are nearly the same, as those that a search for what fits a limit tries
// (fuse/remade_step.h). For one target, and one binding of dims.
struct BuiltKernels {
  struct Finished {
    std::shared_ptr<const Kernel> kernel;
    std::vector<uint32_t> buffers;
    std::vector<Parts> parts;
  };
  struct Entry {
    std::string refusal;
    std::optional<Kernel> kernel, column_sums;      // as built, until it is finished
    std::vector<uint32_t> buffers, streams, sites;  // nodes as the signer's numbers
    std::vector<Finished> finished;
  };

  NodeClasses classes;
  std::unordered_map<Signature, Entry, SignatureHash> entries;
};

class KernelCache {
 public:
  // `in_memory`: as for build_kernel. All outlive the cache.
  KernelCache(const BoundGraph& graph, const std::vector<bool>& in_memory, const KernelTarget& target, BuiltKernels& built)
      : graph_(graph), in_memory_(in_memory), target_(target), built_(built), signer_(graph, in_memory, built.classes) {}

  // Why the group should not be one kernel, or nothing.
  const std::string& refusal(const Group& group) { return entry(group).refusal; }
  // Whether the group can be one kernel, if a slow one.
  bool builds(const Group& group);
  // The group's kernels as built: one, or one that leaves sums of parts and one that adds them.
  std::vector<GraphKernel> kernels(const Group& group);

 private:
  using Entry = BuiltKernels::Entry;
  static void finish(Entry& entry);
  Entry& entry(const Group& group);
  Entry build(const Group& group) const;
  void verify(const Group& group, const Entry& known) const;

  const BoundGraph& graph_;
  const std::vector<bool>& in_memory_;
  const KernelTarget& target_;
  BuiltKernels& built_;
  Signer signer_;
};

}  // namespace einc
