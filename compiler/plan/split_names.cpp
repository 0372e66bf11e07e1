// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/split_names.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace einc {
namespace {

constexpr size_t kMaxNames = 64;  // bits of a set
constexpr size_t kMaxSets = 8;    // of params: transformers have 3 to 5

Name path_of(const Node& node) {
  if (node.op == Op::input) return node.as<InputAttr>().name;
  return node.op == Op::param ? node.as<ParamAttr>().path : node.as<StateAttr>().path;
}

// As shard lines look for it: by name where an axis has that name, else by size. -1: none, -2: several.
int axis_of(const std::vector<DeclaredAxis>& axes, Name name) {
  const bool by_name = std::ranges::any_of(axes, [&](const DeclaredAxis& axis) { return axis.name == name; });
  int found = -1;
  for (size_t i = 0; i < axes.size(); ++i)
    if ((by_name ? axes[i].name : axes[i].size) == name) found = found == -1 ? static_cast<int>(i) : -2;
  return found;
}

// Of a program that draws its data the axes that no tensor has. Masks follow what they are for.
std::vector<SplitName> drawn_names(const Graph& graph, const DeclaredAxes& declared) {
  const auto is_declared = [&](Name name) {
    return std::ranges::any_of(declared, [&](const auto& entry) {
      return std::ranges::any_of(entry.second, [&](const DeclaredAxis& axis) { return axis.name == name || axis.size == name; });
    });
  };
  std::vector<SplitName> names;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::random || node.as<RandomAttr>().kind == RandomKind::keep_mask) continue;
    for (int i = 0; i < node.type.rank(); ++i) {
      const Axis& axis = node.type.axis(i);
      if (axis.name.empty() || is_declared(axis.name)) continue;
      auto known = std::ranges::find(names, axis.name, &SplitName::name);
      if (known == names.end()) known = names.insert(known, {axis.name, true, {}});
      known->places.push_back({Op::random, node.as<RandomAttr>().stream, i, axis.size});
    }
  }
  return names;
}

// Maximal independent sets, by Bron and Kerbosch's algorithm on the graph of names that no tensor has both of.
class IndependentSets {
 public:
  explicit IndependentSets(std::vector<uint64_t> together) : together_(std::move(together)) {}

  std::vector<uint64_t> run(uint64_t all) {
    grow(0, all, 0);
    return std::move(sets_);
  }

 private:
  void grow(uint64_t set, uint64_t open, uint64_t done) {
    if (sets_.size() >= 1024) return;
    if (open == 0 && done == 0) return sets_.push_back(set);
    while (open != 0) {
      const auto name = static_cast<size_t>(std::countr_zero(open));
      const uint64_t bit = uint64_t{1} << name;
      grow(set | bit, open & together_[name], done & together_[name]);
      open &= ~bit;
      done |= bit;
    }
  }

  const std::vector<uint64_t> together_;  // by name: those that it may be in a set with
  std::vector<uint64_t> sets_;
};

}  // namespace

std::vector<SplitName> split_names(const Graph& graph, const DeclaredAxes& declared) {
  std::vector<SplitName> names;
  std::unordered_map<Name, size_t> index;
  for (const auto& entry : declared)
    for (const DeclaredAxis& axis : entry.second)
      for (const Name name : {axis.size, axis.name}) {
        if (name.empty()) continue;
        index.try_emplace(name, 0);
        if (!axis.size.empty()) break;  // kv=kv_heads answers to its size's name
      }
  std::unordered_map<Name, bool> twice;
  std::unordered_map<std::string, DType> dtype_of;  // of inputs
  for (const Node& node : graph.nodes) {
    const bool splits =
        node.op == Op::input || node.op == Op::param || (node.op == Op::state && node.as<StateAttr>().role == StateRole::user);
    const auto axes = splits ? declared.find({node.op, path_of(node).str()}) : declared.end();
    if (axes == declared.end()) continue;
    if (node.op == Op::input) dtype_of.emplace(path_of(node).str(), node.type.dtype);
    for (const DeclaredAxis& axis : axes->second) {
      const Name name = axis.size.empty() ? axis.name : axis.size;
      const auto place = index.find(name);
      if (place == index.end()) continue;
      const int at = axis_of(axes->second, name);
      if (at == -2) twice[name] = true;
      if (at < 0 || at >= node.type.rank()) continue;
      if (place->second == 0) names.push_back({name, false, {}}), place->second = names.size();
      SplitName& known = names[place->second - 1];
      known.places.push_back({node.op, path_of(node), at, node.type.axis(at).size});
    }
  }
  for (SplitName& name : names) {
    bool input = false, integers = false, param = false;
    for (const SplitPlace& place : name.places) {
      input |= place.declared == Op::input, param |= place.declared == Op::param;
      integers |= place.declared == Op::input && !is_floating(dtype_of.at(place.path.str()));
    }
    name.of_data = integers || (input && !param);
  }
  for (SplitName& name : drawn_names(graph, declared)) names.push_back(std::move(name));
  std::erase_if(names, [&](const SplitName& name) { return twice.contains(name.name); });
  return names;
}

bool is_word_of(const Graph& graph, const DeclaredAxes& declared, Name word) {
  return graph.dims.find(word) || std::ranges::any_of(declared, [&](const auto& entry) {
           return std::ranges::find(entry.second, word, &DeclaredAxis::name) != entry.second.end();
         });
}

std::vector<Spread> spreads_of(const Graph& graph, const DeclaredAxes& declared) {
  std::vector<Spread> spreads(std::begin(kSpreads), std::end(kSpreads));
  std::erase_if(spreads, [&](Spread spread) { return spread != Spread::nothing && is_word_of(graph, declared, Name(to_string(spread))); });
  return spreads;
}

std::vector<std::vector<size_t>> sets_of_params(const std::vector<SplitName>& names) {
  const size_t count = std::min(names.size(), kMaxNames);
  uint64_t all = 0;
  std::map<std::pair<Op, std::string>, uint64_t> tensors;
  for (size_t i = 0; i < count; ++i) {
    if (names[i].of_data) continue;
    all |= uint64_t{1} << i;
    for (const SplitPlace& place : names[i].places) tensors[{place.declared, place.path.str()}] |= uint64_t{1} << i;
  }
  std::vector<uint64_t> together(count, 0);
  for (size_t i = 0; i < count; ++i) together[i] = all & ~(uint64_t{1} << i);
  for (const auto& entry : tensors)
    for (size_t i = 0; i < count; ++i)
      if (entry.second >> i & 1) together[i] &= ~entry.second | (uint64_t{1} << i);
  for (size_t i = 0; i < count; ++i) together[i] &= ~(uint64_t{1} << i);
  std::vector<std::pair<double, uint64_t>> sets;
  if (all != 0)
    for (const uint64_t set : IndependentSets(together).run(all)) {
      double covered = 0;
      for (const auto& entry : tensors) covered += (entry.second & set) != 0 ? 1 : 0;
      sets.emplace_back(-1e6 * std::popcount(set) - covered, set);
    }
  std::ranges::stable_sort(sets, {}, &std::pair<double, uint64_t>::first);
  std::vector<std::vector<size_t>> result;
  for (const auto& [covered, set] : sets) {
    if (result.size() == kMaxSets) break;
    std::vector<size_t>& made = result.emplace_back();
    for (size_t i = 0; i < count; ++i)
      if (set >> i & 1) made.push_back(i);
  }
  return result;
}

}  // namespace einc
