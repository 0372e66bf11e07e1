// SPDX-License-Identifier: Apache-2.0
// Text from a language model, token by token.
#pragma once
#include <functional>

#include "runtime/sample/choose_token.h"
#include "runtime/sample/language_model.h"

namespace einc {

struct GenerationSettings {
  SamplingRule rule = {};
  uint64_t seed = 0;
  int64_t count = 0;        // of tokens to make
  int64_t vocabulary = -1;  // only tokens below are made; negative: all that the model has
};

// Goes on from `prompt`, which has at least one token. A text that is longer than the model's context is cut to its later half: with a
// cache or without, the model reads the same. Draw n of a seed is a function of both. `made` gets each token and ends the text by false.
void generate(LanguageModel& model, std::span<const int32_t> prompt, const GenerationSettings& settings,
              const std::function<bool(int32_t)>& made);

}  // namespace einc
