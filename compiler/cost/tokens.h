// The D of 6 N D: how many tokens one step trains on. Elements of the first cross-entropy's result; without one the product
// of the axes that the loss' outermost mean runs over; else 1.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

struct TokenCount {
  Poly tokens{1};
  std::string from;  // for readers
};

TokenCount tokens_per_step(const Graph& graph);

}  // namespace einc
