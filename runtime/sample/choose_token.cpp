// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/choose_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/base/failure.h"

namespace einc {
namespace {

int32_t most_likely(std::span<const double> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw RuntimeFailure(FailureKind::numeric, fmt::format("the logit of token {} is NaN", i));
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || std::isinf(logits[best]))
    throw RuntimeFailure(FailureKind::numeric, "no token is possible: the largest logit is not finite");
  return static_cast<int32_t>(best);
}

// The `count` most likely tokens in their order.
std::vector<int32_t> ranked(std::span<const double> logits, size_t count) {
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto before = [&](int32_t a, int32_t b) {
    const double x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto end = tokens.begin() + static_cast<ptrdiff_t>(count);
  if (count < tokens.size()) std::nth_element(tokens.begin(), end, tokens.end(), before);
  tokens.resize(count);
  std::sort(tokens.begin(), tokens.end(), before);
  return tokens;
}

}  // namespace

int32_t choose_token(std::span<const double> logits, const SamplingRule& rule, double uniform) {
  const int32_t best = most_likely(logits);
  if (rule.temperature == 0) return best;
  const double largest = logits[static_cast<size_t>(best)];
  const size_t count = rule.top_k > 0 ? std::min(logits.size(), static_cast<size_t>(rule.top_k)) : logits.size();
  const std::vector<int32_t> tokens = ranked(logits, count);
  std::vector<double> weights;
  for (int32_t token : tokens) weights.push_back(std::exp((logits[static_cast<size_t>(token)] - largest) / rule.temperature));
  const double of_all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  size_t left = 0;
  while (left < weights.size() && (left == 0 || kept < rule.top_p * of_all)) kept += weights[left++];
  double below = 0;
  for (size_t i = 0; i + 1 < left; ++i) {
    below += weights[i];
    if (uniform * kept < below) return tokens[i];
  }
  return tokens[left - 1];
}

}  // namespace einc
