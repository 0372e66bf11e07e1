// SPDX-License-Identifier: Apache-2.0
// How much data one step trains on: the D of 6 N D in tokens, or examples where nothing in the loss is a token.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

struct TokenCount {
  Poly tokens{1};
  std::string from;  // for readers
  // The first cross-entropy has a target for each of several places of an example, or the program looks up integers in a param: words,
  // not pictures. Elsewhere the count is none of tokens.
  bool are_tokens = false;
};

// Elements of the first cross-entropy's result; without one the product of the axes that the loss' outermost mean runs over; else 1.
TokenCount tokens_per_step(const Graph& graph);

}  // namespace einc
