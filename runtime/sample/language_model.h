// SPDX-License-Identifier: Apache-2.0
// Programs that say what follows a sequence of tokens: with a cache of what they have read in their states, or reading all of it anew.
#pragma once
#include <einc/runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace einc {

// Which tensors are what. `tokens`: an integer input whose last axis is the sequence, all others of size 1. `logits`: an output whose
// last two axes are the sequence and the vocabulary.
struct ModelTensors {
  std::string tokens, logits;
  std::string position;  // the scalar input that says where the first of `tokens` stands; empty: it stands at 0
};

class LanguageModel {
 public:
  LanguageModel() = default;
  virtual ~LanguageModel() = default;
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  // At most so many tokens can be read.
  virtual int64_t context() const = 0;
  // One number for each token of the vocabulary. `text`: 1 to context() tokens.
  virtual std::vector<double> logits_after(std::span<const int32_t> text) = 0;
};

// Reads the whole text each time, with whatever behind it: its programs look back only, as causal attention does.
// Sessions outlive the model.
std::unique_ptr<LanguageModel> model_without_cache(Session& session, ModelTensors tensors);

// `several` and `one` are specialisations of the same program for sequences of several tokens and of one. They share their params and
// states, which are those of `one`. Only what was not in the text before is read.
std::unique_ptr<LanguageModel> model_with_cache(Session& several, Session& one, ModelTensors tensors, int64_t context);

}  // namespace einc
