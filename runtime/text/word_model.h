// SPDX-License-Identifier: Apache-2.0
// The models of a tokenizer.json: what tokens a word becomes. Vocabularies are read as hostile.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

class WordModel {
 public:
  WordModel() = default;
  virtual ~WordModel() = default;
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;

  // The vocabulary: token by number; "" where a number is free.
  virtual const std::vector<std::string>& tokens() const = 0;
  // Appends the tokens of a word.
  virtual void encode(std::string_view word, std::vector<int32_t>& tokens) const = 0;
};

// Of the object "model". Throws std::invalid_argument with what is wrong or not understood.
std::unique_ptr<WordModel> read_word_model(const nlohmann::json& object);

}  // namespace einc
