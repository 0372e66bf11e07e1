// SPDX-License-Identifier: Apache-2.0
// Names for nodes that a reader can follow: the source's own name for the value where it has one ("scores", "h.0.attn.w_qkv",
// "d_scores"), made unique by a number, else t1, t2, ...
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

std::vector<std::string> node_names(const Graph& graph);

// The node as an expression over those names, in the language's spelling where it has one.
std::string node_expression(const Graph& graph, NodeId id, const std::vector<std::string>& names);

std::string location_text(const SourceLocation& location);  // "gpt2.ein:12:8", empty when unknown

}  // namespace einc
