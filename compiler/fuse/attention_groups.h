// SPDX-License-Identifier: Apache-2.0
// The attention of a graph as kernels, each made of the nodes it takes in one go: what remains is grouped node by node.
#pragma once
#include "compiler/fuse/attention_kernel.h"
#include "compiler/fuse/reader_lists.h"

namespace einc {

struct AttentionGroups {
  std::vector<GraphKernel> kernels;
  std::vector<FusionRefusal> refusals;
  std::vector<FoundAttention> found;  // what the kernels are of
};

// `readers`: per node the computed nodes that read it, through views. Clears `in_memory` for values per row and key.
AttentionGroups group_attention(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free,
                                const ReaderLists& readers, std::vector<bool>& in_memory);

}  // namespace einc
