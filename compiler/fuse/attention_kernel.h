// SPDX-License-Identifier: Apache-2.0
// From attention's nodes to a kernel: the values of the group at the axes of the scores, its reductions sorted into scores, folds,
// mixes and gathers.
#pragma once
#include <optional>

#include "compiler/fuse/find_attention.h"

namespace einc {

struct AttentionBuild {
  std::optional<GraphKernel> built;
  std::string refusal;  // why it is no kernel
};

// Of values that the backward makes again under a memory limit: whether a kernel reads them, or what the forward has left.
enum class ReadValues : uint8_t { of_forward, made_again };

// `stored`: members whose values go to memory, the results among them. `in_memory` as for build_kernel; false for found.pairs.
AttentionBuild build_attention(const BoundGraph& graph, const FoundAttention& found, const AttentionNodes& nodes,
                               const std::vector<NodeId>& stored, const std::vector<bool>& in_memory, ReadValues read);

}  // namespace einc
