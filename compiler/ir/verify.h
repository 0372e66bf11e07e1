// SPDX-License-Identifier: Apache-2.0
// Checks a graph against the rules of its ops, for tests, for passes under EINC_DEBUG and for graphs read from text.
// It shares no code with the builder: each op's result type is worked out again from the comments in graph.h.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// What is wrong, one line each, in node order: "%7 contract: label 3 is summed but in one operand only". Empty: all well.
std::vector<std::string> verify(const Graph& graph);

}  // namespace einc
