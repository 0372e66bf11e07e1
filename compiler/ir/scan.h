// SPDX-License-Identifier: Apache-2.0
// Reading a scan's body: which node is which operand or state (see ScanAttr).
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// The node of each operand that iterations read (invalid: of an initial value), and of each state, in order.
struct ScanSources {
  std::vector<NodeId> inputs, states;
};
ScanSources scan_sources(const Graph& body);

// Names of a body's inputs and states.
inline Name scan_name(size_t index) { return Name(std::to_string(index)); }

// Such a node, which its label calls as the value outside is called.
bool is_scan_source(const Node& node);

inline int whole_operands(const Node& scan) {
  const ScanAttr& attr = scan.as<ScanAttr>();
  return static_cast<int>(scan.operands.size()) - attr.slices - attr.carries;
}

}  // namespace einc
