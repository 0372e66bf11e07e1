// SPDX-License-Identifier: Apache-2.0
// Names that the compiler gives to what a pullback takes and gives, in front of an output's and a source's; no name of a program has a dot
// there.
#pragma once
#include <string_view>

namespace einc {

inline constexpr std::string_view kCotangent = "cotangent.";  // an input: the gradient of an output
inline constexpr std::string_view kNextState = "next.";       // an output: the new value of a state
inline constexpr std::string_view kPulledBack = "gradient.";  // an output: the gradient by an input or param

}  // namespace einc
