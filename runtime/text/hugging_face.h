// SPDX-License-Identifier: Apache-2.0
// Tokenizers as Hugging Face's library stores them, tokenizer.json: added tokens are found in the text, the rest is normalized, divided
// into words, and each word encoded by the model. Tokens are those of encode(text, add_special_tokens=False): no template is applied.
// Texts must be UTF-8.
#pragma once
#include <memory>
#include <string>

#include "runtime/text/tokenizer.h"

namespace einc {

// Throws RuntimeFailure: resource, or data with what is wrong or not understood.
std::unique_ptr<Tokenizer> read_hugging_face(const std::string& path);

}  // namespace einc
