// SPDX-License-Identifier: Apache-2.0
// The graph as text (`--emit=graph`): one line per dim, condition, loop, node and root, nothing left out, so that
// read_graph gives the graph back and print_graph(read_graph(text)) is the text. What has its default value is not
// written. The grammar, by example:
//
//   graph "gpt2.ein" policy=bf16
//   dim batch = 8                                         (free: `dim batch`; derived: `dim embed := heads*head`)
//   condition divides (width) (heads) "axis (h d)"
//   loop trips=(layers) count=12
//   context parent=0 loop=0 iteration=3
//   %7 = map add real[batch seq three=3 "(h d)"=heads*head 1] %3 %6 maps=[0 1],[1] | forward module="h.0" label="x" at="gpt2.ein":41:8-60
//   output "logits" %7
//
// A scalar is a number, or an exact value in the dims in parentheses: 1e-05, (1/2*heads^-1). `#` starts a comment.
#pragma once
#include <functional>
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

// What to say behind a node in a comment (costs, say); empty for nothing.
using NodeNote = std::function<std::string(NodeId)>;

std::string print_graph(const Graph& graph, const NodeNote& note = {});
// One node's line without the line's end.
std::string print_node(const Graph& graph, NodeId id);
// What messages call a node: its name, path or label, else its op.
std::string describe_node(const Graph& graph, NodeId id);

}  // namespace einc
