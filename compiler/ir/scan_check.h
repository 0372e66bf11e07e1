// SPDX-License-Identifier: Apache-2.0
// What verify asks of a scan: that its body reads operands of their types, slice by slice, and hands on what its states are.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

// Whether a scan with this body goes over pieces, each a scan of its own (ScanAttr::all_pieces): it reads and collects blocks then.
bool runs_pieces(const Graph& body);

// The first thing that is wrong with a node that has a ScanAttr; empty: nothing.
std::string scan_problem(const Graph& graph, const Node& node);

}  // namespace einc
