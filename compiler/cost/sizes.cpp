// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/sizes.h"

#include <unordered_map>

namespace einc {
namespace {

struct ShapeKey {
  const Type* type;
  bool operator==(const ShapeKey& other) const { return type->dtype == other.type->dtype && type->same_sizes(*other.type); }
};
struct ShapeHash {
  size_t operator()(const ShapeKey& key) const {
    size_t h = static_cast<size_t>(key.type->dtype);
    for (const Axis& axis : key.type->axes) h = h * 0x9E3779B97F4A7C15u + axis.size.hash();
    return h;
  }
};

}  // namespace

Sizes::Sizes(const Graph& graph) : shape_(graph.size()) {
  std::unordered_map<ShapeKey, uint32_t, ShapeHash> known;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Type& type = graph.nodes[i].type;
    const auto [it, fresh] = known.emplace(ShapeKey{&type}, static_cast<uint32_t>(shapes_.size()));
    if (fresh) shapes_.push_back({type.count(), type.bytes()});
    shape_[i] = it->second;
  }
}

}  // namespace einc
