// SPDX-License-Identifier: Apache-2.0
// Where inputs, params and states lie: what the shard lines ask, and what `states`, `gradients` and `params` spread besides (ZeRO,
// Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"). A param's optimizer states lie as it
// does. What is spread is split along the first axis that nothing splits yet and that the devices divide, else inside a part.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/partition/layout.h"
#include "compiler/partition/narrowing.h"

namespace einc {

// How often a param that is spread is put together for those who read it whole.
enum class Assembly : uint8_t { never, once, each_phase };

struct DeclaredLayout {
  Layout stored;  // between steps
  Layout read;    // by the forward and the backward
  Assembly assembly = Assembly::never;
};

// By node; of inputs, params, states and draws.
std::vector<DeclaredLayout> declared_layouts(const Graph& graph, const Narrowing& narrowing, const LayoutValues& values);

}  // namespace einc
