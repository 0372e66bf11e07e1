// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/custom_gradients.h"

#include <algorithm>

namespace einc {

const CustomGradient* CustomGradients::of(NodeId id) const {
  const auto behind = std::ranges::upper_bound(list_, id, {}, [](const CustomGradient& c) { return c.results.front(); });
  if (behind == list_.begin()) return nullptr;
  const CustomGradient& custom = *std::prev(behind);
  return id <= custom.results.back() ? &custom : nullptr;
}

std::vector<CustomGradient> CustomGradients::take_from(size_t first) {
  const auto begin = list_.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<CustomGradient> taken(begin, list_.end());
  list_.erase(begin, list_.end());
  return taken;
}

void CustomGradients::set_inside(std::shared_ptr<const Graph> body, std::vector<CustomGradient> customs) {
  if (!customs.empty()) (*bodies_)[std::move(body)] = std::move(customs);
}

CustomGradients CustomGradients::inside(const std::shared_ptr<const Graph>& body) const {
  CustomGradients customs;
  customs.bodies_ = bodies_;
  if (const auto known = bodies_->find(body); known != bodies_->end()) customs.list_ = known->second;
  return customs;
}

// A block may call fns that have blocks of their own: their entries are copied, too.
std::vector<NodeId> CustomGradients::copy_block(Builder& build, CustomGradient custom, std::span<const NodeId> cotangents) {
  std::vector<NodeId> to(custom.last - custom.first);
  const auto mapped = [&](NodeId id) {
    const auto placeholder = std::ranges::find(custom.cotangents, id);
    if (placeholder != custom.cotangents.end()) return cotangents[static_cast<size_t>(placeholder - custom.cotangents.begin())];
    return id.index >= custom.first && id.index < custom.last ? to[id.index - custom.first] : id;
  };
  for (uint32_t i = custom.first; i < custom.last; ++i) {
    Node node = build.graph()[NodeId{i}];
    for (NodeId& operand : node.operands) operand = mapped(operand);
    node.origin.phase = Phase::backward;
    to[i - custom.first] = build.append(std::move(node));
  }
  const size_t known = list_.size();
  for (size_t i = 0; i < known; ++i) {
    if (list_[i].results.front().index < custom.first || list_[i].results.front().index >= custom.last) continue;
    CustomGradient inner = list_[i];
    for (auto* nodes : {&inner.results, &inner.cotangents, &inner.inputs, &inner.gradients})
      for (NodeId& id : *nodes) id = mapped(id);
    const uint32_t begin = to[inner.first - custom.first].index;
    inner.last = begin + (inner.last - inner.first);
    inner.first = begin;
    list_.push_back(std::move(inner));
  }
  std::vector<NodeId> gradients;
  for (const NodeId gradient : custom.gradients) gradients.push_back(mapped(gradient));
  return gradients;
}

}  // namespace einc
