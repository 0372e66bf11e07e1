// SPDX-License-Identifier: Apache-2.0
// How params become values of fewer bits: a cast, or, to fp8, a division by a scale that is cut off at the largest number, beside the
// largest element that scales the next run. All of it may be done with parts of a param, of which the narrow value is put together.
#pragma once
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

struct Narrowing {
  std::vector<bool> only;                          // by node, of params: nothing else of the forward and backward reads it
  std::vector<bool> on_way;                        // by node: takes parts of a param, or of what is made of one on the way
  std::unordered_map<uint32_t, uint32_t> made_of;  // by narrow value: the param
};

Narrowing find_narrowing(const Graph& graph);

}  // namespace einc
