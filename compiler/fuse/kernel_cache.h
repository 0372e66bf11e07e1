// SPDX-License-Identifier: Apache-2.0
// Kernels of groups, each built once: groups alike differ in their buffers alone.
#pragma once
#include <unordered_map>

#include "compiler/fuse/kernel_builder.h"
#include "compiler/fuse/signature.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

class KernelCache {
 public:
  // `in_memory`: as for build_kernel. Both outlive the cache.
  KernelCache(const BoundGraph& graph, const std::vector<bool>& in_memory, const KernelTarget& target)
      : graph_(graph), in_memory_(in_memory), target_(target), signer_(graph, in_memory) {}

  // Why the group should not be one kernel, or nothing.
  const std::string& refusal(const Group& group) { return entry(group).refusal; }
  // Whether the group can be one kernel, if a slow one.
  bool builds(const Group& group);
  // The group's kernels as built: one, or one that leaves sums of parts and one that adds them.
  std::vector<GraphKernel> kernels(const Group& group);

 private:
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
  void finish(Entry& entry);
  Entry& entry(const Group& group);
  void build(const Group& group, Entry& entry);

  const BoundGraph& graph_;
  const std::vector<bool>& in_memory_;
  const KernelTarget target_;
  Signer signer_;
  std::unordered_map<Signature, Entry, SignatureHash> entries_;
};

}  // namespace einc
