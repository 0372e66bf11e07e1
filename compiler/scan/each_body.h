// SPDX-License-Identifier: Apache-2.0
// Passes over graphs, inside the bodies of scans as well.
#pragma once
#include <unordered_map>
#include <utility>

#include "compiler/ir/graph.h"

namespace einc {

// Each body becomes what `pass` makes of it; scans that share one go on sharing.
template <class Pass>
void for_each_body(Graph& graph, Pass pass) {
  std::unordered_map<const Graph*, std::shared_ptr<const Graph>> known;
  for (Node& node : graph.nodes) {
    auto* scan = std::get_if<ScanAttr>(&node.attr);
    if (scan == nullptr) continue;
    std::shared_ptr<const Graph>& made = known[scan->body.get()];
    if (made == nullptr) made = std::make_shared<const Graph>(pass(Graph(*scan->body)));
    scan->body = made;
  }
}

}  // namespace einc
