// SPDX-License-Identifier: Apache-2.0
// The forms of --emit that people read: the backward as a program, a table of shapes, a drawing, and JSON.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

// The backward and optimizer nodes, one line each in the language's spelling, with the value each is the gradient of.
std::string emit_grad(const Graph& graph);
// Every named value with its axes and, where dims have values, its shape.
std::string emit_shapes(const Graph& graph, const Bindings& values);
// Graphviz: forward, backward and optimizer in their own colours.
std::string emit_dot(const Graph& graph);
// Nodes as JSON: id, op, type, operands, phase, source.
std::string emit_json(const Graph& graph);
// Contraction orders chosen, one paragraph an einsum (--explain=contraction).
std::string explain_contraction(const Graph& graph, const Bindings& values);
// The dtype of each node and why (--explain=precision).
std::string explain_precision(const Graph& graph);

}  // namespace einc
