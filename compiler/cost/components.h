// SPDX-License-Identifier: Apache-2.0
// The parts of a transformer, found by structure rather than by name (the rows of Kaplan et al. 2020, "Scaling Laws for
// Neural Language Models", table 1): scores contract two activations and lead to a softmax, the value mix contracts that
// softmax, qkv are the weights that lead to either, the projection follows the mix, the de-embedding leads to the loss or an
// output, other weights are the feed-forward. Forward FLOPs and the parameters involved.
#pragma once
#include <array>
#include <string_view>

#include "compiler/cost/op_cost.h"

namespace einc {

enum class Component : uint8_t { embed, qkv, scores, value_mix, projection, feed_forward, de_embed };
inline constexpr int kComponents = 7;
std::string_view to_string(Component component);

struct ComponentCosts {
  std::array<Poly, kComponents> parameters, flops;
};

// Nothing when the program has no attention.
std::optional<ComponentCosts> transformer_components(const Graph& graph, const std::vector<FlopCost>& costs);

}  // namespace einc
