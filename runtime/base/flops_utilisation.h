// SPDX-License-Identifier: Apache-2.0
// Which part of a machine's peak a step uses.
#pragma once
#include <optional>

namespace einc {

// Model FLOPs utilisation (Chowdhery et al. 2022, PaLM, appendix B): FLOPs by the report's rules, of what the peak allows in that time.
// None without a peak or a time, and none above 1: then other work ran while the peak was measured, or the step skips work that the rules
// count, as attention skips keys that a mask hides and convolutions the zeros around an image.
inline std::optional<double> flops_utilisation(double flops, double seconds, double peak) {
  const double part = peak > 0 && seconds > 0 ? flops / seconds / peak : 2;
  return part <= 1 ? std::optional(part) : std::nullopt;
}

}  // namespace einc
