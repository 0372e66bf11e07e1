// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/examples.h"

#include <algorithm>

namespace einc {
namespace {

bool is_draw(const Node& node) {
  return node.op == Op::random && node.origin.phase == Phase::forward && node.as<RandomAttr>().kind != RandomKind::keep_mask;
}

}  // namespace

Poly examples_per_step(const Graph& graph) {
  // A program without inputs draws its examples.
  const bool given = std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == Op::input; });
  const Axis* shared = nullptr;
  for (const Node& node : graph.nodes) {
    if (given ? node.op != Op::input : !is_draw(node)) continue;
    const Type& type = node.type;
    // One input without that axis, as a graph's edges beside its nodes, and nothing says what an example is.
    if (type.rank() == 0 || (shared != nullptr && type.axis(0).name != shared->name)) return Poly(1);
    shared = &type.axis(0);
  }
  return shared != nullptr ? shared->size : Poly(1);
}

Name examples_dim(const Graph& graph) {
  const Poly examples = examples_per_step(graph);
  const std::vector<Name> names = examples.free_names();
  if (names.size() != 1 || !(examples == Poly::dim(names[0]))) return {};
  return graph.dims.find(names[0])->kind == DimKind::derived ? Name() : names[0];
}

}  // namespace einc
