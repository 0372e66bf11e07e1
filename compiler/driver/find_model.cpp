// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/find_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/printable.h"

namespace einc {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const ModelTensors& wanted) : graph_(graph), wanted_(wanted) {}

  std::optional<FoundModel> run() {
    FoundModel found;
    const Node* tokens = input("tokens", wanted_.tokens, "--tokens-input", [](const Type& t) { return t.rank() > 0; });
    if (!tokens) return std::nullopt;
    found.tensors.tokens = tokens->as<InputAttr>().name.str();
    const Poly length = tokens->type.axes.back().size;
    const std::optional<Name> sequence = dim_of(length);
    if (!sequence) return fail(fmt::format("the last axis of input '{}' is not a dim that -D can set", found.tensors.tokens));
    found.sequence = *sequence;
    for (size_t axis = 0; axis + 1 < tokens->type.axes.size(); ++axis)
      if (const auto dim = dim_of(tokens->type.axes[axis].size)) found.texts.push_back(*dim);
    found.cache = find_cache();
    if (found.cache) {
      const Node* position = input("position", wanted_.position, "--position-input", [](const Type& t) { return t.rank() == 0; });
      if (!position) return std::nullopt;
      found.tensors.position = position->as<InputAttr>().name.str();
    }
    if (!find_logits(length, found.tensors.logits)) return std::nullopt;
    return found;
  }

 private:
  std::nullopt_t fail(const std::string& message) const {
    fmt::print(stderr, "einc: {}\n", message);
    return std::nullopt;
  }

  // That -D can set.
  std::optional<Name> dim_of(const Poly& size) const {
    for (const Dim& dim : graph_.dims.dims())
      if ((dim.kind == DimKind::free || dim.kind == DimKind::defaulted) && size == Poly::dim(dim.name)) return dim.name;
    return std::nullopt;
  }

  // The integer input of that name; without one the only one that fits, or among several that called `role`.
  const Node* input(const char* role, const std::string& name, const char* option, bool (*fits)(const Type&)) const {
    std::vector<const Node*> all;
    for (const Node& node : graph_.nodes) {
      if (node.op != Op::input || is_floating(node.type.dtype) || node.type.dtype == DType::boolean || !fits(node.type)) continue;
      const std::string& own = node.as<InputAttr>().name.str();
      if (name.empty() ? own == role : own == name) return &node;
      all.push_back(&node);
    }
    if (name.empty() && all.size() == 1) return all.front();
    std::string names;
    for (const Node* node : all) names += (names.empty() ? "" : ", ") + node->as<InputAttr>().name.str();
    if (!name.empty())
      fail(fmt::format("no input '{}' can hold the {}; these can: {}", printable(name), role, names.empty() ? "none" : names));
    else if (all.empty())
      fail(fmt::format("no integer input can hold the {}", role));
    else
      fail(fmt::format("several inputs could hold the {}: {}; say which by {} NAME", role, names, option));
    return nullptr;
  }

  // Positions that updates write to.
  std::optional<Poly> find_cache() const {
    for (const Update& update : graph_.updates) {
      const Node& value = graph_[update.value];
      if (value.op == Op::scatter_set && value.operands[0] == update.target) return value.type.axis(value.as<GatherAttr>().axis).size;
    }
    return std::nullopt;
  }

  bool find_logits(const Poly& length, std::string& name) const {
    std::string names;
    for (const Output& output : graph_.outputs) {
      const Type& type = graph_[output.node].type;
      const bool fits = type.rank() >= 2 && is_floating(type.dtype) && type.axis(type.rank() - 2).size == length;
      if (!fits || (!wanted_.logits.empty() && output.name.str() != wanted_.logits)) continue;
      if (!name.empty() && output.name.str() != "logits") continue;
      name = output.name.str();
    }
    if (name.empty()) fail("no output has the axes of logits: ..., the tokens' own, the vocabulary");
    return !name.empty();
  }

  const Graph& graph_;
  const ModelTensors& wanted_;
};

}  // namespace

std::optional<FoundModel> find_model(const Graph& graph, const ModelTensors& wanted) { return Finder(graph, wanted).run(); }

}  // namespace einc
