// SPDX-License-Identifier: Apache-2.0
// The gradient of a recurrence: a scan in the opposite direction over values that the forward collects.
//
//   forward    h_t, y_t = f(w, x_t, h_{t-1})
//   backward   dh_{t-1}, dx_t, dw_t = f'(w, x_t, h_{t-1})^T (dh_t, dy_t),   dw = sum over t of dw_t
//
// dx is what the reverse scan collects. Of dw_t that are products, the factors are collected and multiplied once behind it, summing over
// the iterations too; others are carried as running sums.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/autodiff/custom_gradients.h"
#include "compiler/ir/build.h"

namespace einc {

// `results`: the gradient of each result of the scan, invalid where none arrived. `wanted`: by operand. The gradients of the operands, of
// their types; invalid where not wanted or none is passed. The scan collects what the reverse reads from then on.
// `customs`: the graph's, that know those of its bodies; null: it has none.
std::vector<NodeId> gradient_of_scan(Builder& build, NodeId scan, std::span<const NodeId> results, const std::vector<bool>& wanted,
                                     CustomGradients* customs, bool* met_custom);

}  // namespace einc
