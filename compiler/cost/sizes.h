// SPDX-License-Identifier: Apache-2.0
// Element counts and bytes of every node, worked out once: a large graph repeats few shapes, and products of sizes are the
// bulk of what counting costs.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

class Sizes {
 public:
  explicit Sizes(const Graph& graph);
  const Poly& count(NodeId id) const { return shapes_[shape_[id.index]].count; }
  const Poly& bytes(NodeId id) const { return shapes_[shape_[id.index]].bytes; }

 private:
  struct Shape {
    Poly count, bytes;
  };
  std::vector<uint32_t> shape_;  // per node
  std::vector<Shape> shapes_;
};

}  // namespace einc
