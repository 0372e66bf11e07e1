// SPDX-License-Identifier: Apache-2.0
// What a ring needs to know of one attention: its softmax, read by what its nodes are, and whether each step may be computed by itself.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "compiler/context/split_attention.h"

namespace einc {

struct RingForm {
  const SplitAttention* split = nullptr;
  int64_t devices = 0;
  NodeId max, difference, exponential, sum, weight;  // weight = exp(logits - max) / sum
  std::vector<NodeId> forward, backward;             // contractions over keys or rows
};

// Or why its keys are gathered.
std::variant<RingForm, FusionRefusal> ring_form(const Graph& graph, const SplitAttention& split, const Bindings& given);

}  // namespace einc
