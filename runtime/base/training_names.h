// Names that the compiler gives to what a training run looks at.
#pragma once
#include <string_view>

namespace einc {

inline constexpr std::string_view kAddedByTraining = "optimizer.";            // what outputs begin with that are for whoever watches
inline constexpr std::string_view kGradientNorm = "optimizer.gradient_norm";  // an output; of further groups of params with ".1" and so on
inline constexpr std::string_view kLossScale = "optimizer.loss_scale";        // a state

}  // namespace einc
