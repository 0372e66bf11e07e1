// SPDX-License-Identifier: Apache-2.0
// Which token follows, given what a language model says of each.
#pragma once
#include <cstdint>
#include <span>

namespace einc {

struct SamplingRule {
  double temperature = 1;  // logits are divided by it; 0: the most likely token, the first of equals
  int64_t top_k = 0;       // only the k most likely tokens; 0: all
  double top_p = 1;        // only the most likely ones, as many as reach probability p together (Holtzman et al., 2020)
};

// The token that `uniform`, in [0, 1), falls on when the tokens that the rule leaves, most likely first and of equals the first by number,
// are laid out with their probabilities. Throws RuntimeFailure (numeric): a logit is NaN, or none is above -inf.
int32_t choose_token(std::span<const double> logits, const SamplingRule& rule, double uniform);

}  // namespace einc
