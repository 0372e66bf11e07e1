// SPDX-License-Identifier: Apache-2.0
// Compares a graph's gradients with finite differences of its loss, both run by the interpreter in f64. The differences are
// of fourth order at two step sizes; where the two disagree the loss has a kink nearby (relu, max) and the element is
// counted as skipped instead of compared.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/ir/interpret.h"

namespace einc {

struct GradientCheckOptions {
  uint64_t seed = 0;                 // of the interpreter's random ops, and of the choice of elements
  int64_t elements = 64;             // at most so many of each param, chosen at random; all when it has no more
  int64_t max_elements = INT64_MAX;  // of all params together, but one of each at least
  double relative_step = 1e-4;       // times max(1, |value|)
  // Told before each element: how many are done, of how many, and the param at hand.
  std::function<void(int64_t done, int64_t all, Name param)> progress = {};
};
// How often the loss is computed for each element.
inline constexpr int64_t kLossesPerElement = 6;

// |symbolic - numeric| / max(|symbolic|, |numeric|, 1e-4 * the param's largest gradient, 1e-7 + 1e-5 * |loss|), worst element.
struct GradientError {
  Name path;
  double error = 0;
  int64_t position = 0;  // row-major
  double symbolic = 0, numeric = 0;
  int64_t compared = 0, skipped = 0, elements = 0;  // elements: that the param has
};

// One row per entry of graph.gradients, in order. The graph has a loss; inputs, params and states as for interpret().
std::vector<GradientError> check_gradients(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params,
                                           const TensorMap& states, const GradientCheckOptions& options = {});

// Inputs to check with when there is no data: normal reals, and integers below the size of every axis that they index.
TensorMap random_inputs(const Graph& graph, const Bindings& dims, uint64_t seed);

}  // namespace einc
