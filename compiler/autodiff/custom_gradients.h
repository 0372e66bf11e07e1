// SPDX-License-Identifier: Apache-2.0
// Gradients that a program writes itself (`fn f(x) { ... } gradient(dy) { ... }`). A call's results are identities that hide the fn's
// body from differentiation: what reaches them goes through the block instead, whose nodes were made once for cotangents that are
// placeholders. Each differentiation copies the block's nodes with what arrived in the placeholders' stead.
#pragma once
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/build.h"

namespace einc {

struct CustomGradient {
  std::vector<NodeId> results;     // consecutive nodes
  std::vector<NodeId> cotangents;  // a placeholder for each result, of its type
  std::vector<NodeId> inputs;      // arguments and params, all before the results
  std::vector<NodeId> gradients;   // of each input, of its type
  uint32_t first = 0, last = 0;    // the block's nodes: [first, last)
};

class CustomGradients {
 public:
  // The one that `id` is a result of; null for any other node. Pointers last until the next add.
  const CustomGradient* of(NodeId id) const;
  void add(CustomGradient custom) { list_.push_back(std::move(custom)); }
  // Those from number `first` on, which leave the list.
  std::vector<CustomGradient> take_from(size_t first);
  // Calls inside the body of a scan; their nodes are the body's. Lists of bodies in each other are one.
  void set_inside(std::shared_ptr<const Graph> body, std::vector<CustomGradient> customs);
  CustomGradients inside(const std::shared_ptr<const Graph>& body) const;
  std::span<const CustomGradient> list() const { return list_; }

  size_t size() const { return list_.size(); }
  void resize(size_t count) { list_.resize(count); }  // forgets the youngest

  // Appends a copy of the block of results with the cotangents given, which have the placeholders' types, and gives the gradients
  // of the inputs.
  std::vector<NodeId> copy_block(Builder& build, CustomGradient custom, std::span<const NodeId> cotangents);

 private:
  using Bodies = std::unordered_map<std::shared_ptr<const Graph>, std::vector<CustomGradient>>;
  std::vector<CustomGradient> list_;  // by their results, increasing
  std::shared_ptr<Bodies> bodies_ = std::make_shared<Bodies>();
};

}  // namespace einc
