// SPDX-License-Identifier: Apache-2.0
// What keeps an interpreted run from storing its results, and where that comes from.
#pragma once
#include <functional>
#include <string>

#include "compiler/ir/interpret.h"
#include "runtime/program/executable.h"

namespace einc {

struct ReferenceFault {
  NonFinite means = NonFinite::nothing;
  NodeId node;  // that is not as it must be
};

// `params` and `states` are those that the run was given.
ReferenceFault reference_fault(const Graph& graph, const InterpretResult& result, const TensorMap& params, const TensorMap& states);

// Goes back over nodes that are not finite; `run` gives the values of nodes. "'scores' (model.ein:31:12) is the first tensor that ...".
std::string trace_fault(const Graph& graph, NodeId fault, const std::function<InterpretResult(std::vector<NodeId>)>& run);

}  // namespace einc
