// SPDX-License-Identifier: Apache-2.0
// Names that the compiler gives to what a training run looks at.
#pragma once
#include <string_view>

namespace einc {

inline constexpr std::string_view kAddedByTraining = "optimizer.";      // what outputs begin with that are for whoever watches
inline constexpr std::string_view kLossScale = "optimizer.loss_scale";  // a state
inline constexpr std::string_view kGradientSum = ".gradient_sum";       // what states end with that micro-batches add gradients to

}  // namespace einc
