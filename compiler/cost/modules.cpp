// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/modules.h"

#include <algorithm>

#include "compiler/cost/sum.h"

namespace einc {
namespace {

bool is_index(const std::string& step) {
  return !step.empty() && std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> steps;
  for (size_t begin = 0; begin < path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    steps.push_back(path.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return steps;
}

// Loops around a node from the outside in.
std::vector<uint32_t> loops_around(const Graph& graph, uint32_t context) {
  std::vector<uint32_t> loops;
  for (; context != 0; context = graph.loop_contexts[context].parent) loops.push_back(graph.loop_contexts[context].loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

}  // namespace

std::string starred(const std::string& path) {
  std::string result;
  for (const std::string& step : components(path)) result += (result.empty() ? "" : ".") + (is_index(step) ? "*" : step);
  return result;
}

ModuleSums::ModuleSums(const Graph& graph) : graph_(graph) { by_path_.emplace(Name(), 0); }

uint32_t ModuleSums::child(uint32_t parent, const std::string& step) {
  for (uint32_t c : entries_[parent].children)
    if (entries_[c].step == step) return c;
  const auto fresh = static_cast<uint32_t>(entries_.size());
  entries_.emplace_back();
  entries_[fresh].step = step;
  entries_[parent].children.push_back(fresh);
  return fresh;
}

uint32_t ModuleSums::entry_of(const Origin& origin) {
  const auto found = by_path_.find(origin.module);
  if (found != by_path_.end()) return found->second;
  const std::vector<std::string> steps = components(origin.module.str());
  const std::vector<uint32_t> loops = loops_around(graph_, origin.loop_context);
  const auto indices = static_cast<size_t>(std::count_if(steps.begin(), steps.end(), is_index));
  uint32_t at = 0;
  size_t depth = 0;
  for (const std::string& step : steps) {
    if (is_index(step)) {
      if (indices <= loops.size()) entries_[at].loop = loops[depth];
      ++depth;
    }
    at = child(at, step);
  }
  by_path_.emplace(origin.module, at);
  return at;
}

void ModuleSums::add(ModuleColumn column, const Origin& origin, const Poly& amount) {
  if (amount.is_zero()) return;
  const auto [it, fresh] = index_.emplace(amount, static_cast<uint32_t>(distinct_.size()));
  if (fresh) distinct_.push_back(amount);
  auto& own = entries_[entry_of(origin)].own[static_cast<size_t>(column)];
  for (auto& [poly, times] : own)
    if (poly == it->second) {
      ++times;
      return;
    }
  own.emplace_back(it->second, 1);
}

void ModuleSums::collect(uint32_t index, const std::string& path, std::vector<ModuleRow>& rows) const {
  const Entry& entry = entries_[index];
  const size_t here = rows.size();
  rows.push_back({path, {}});
  std::array<Poly, kModuleColumns> sums;
  std::array<std::vector<Poly>, kModuleColumns> iterations;
  for (size_t k = 0; k < kModuleColumns; ++k)
    for (const auto& [poly, times] : entry.own[k]) sums[k] += distinct_[poly] * Poly(times);
  for (uint32_t c : entry.children) {
    const size_t row = rows.size();
    collect(c, path.empty() ? entries_[c].step : path + "." + entries_[c].step, rows);
    const bool iteration = entry.loop != UINT32_MAX && is_index(entries_[c].step);
    for (size_t k = 0; k < kModuleColumns; ++k) {
      if (!iteration)
        sums[k] += rows[row].amounts[k];
      else if (!rows[row].amounts[k].is_zero())
        iterations[k].push_back(rows[row].amounts[k]);
    }
  }
  for (size_t k = 0; k < kModuleColumns; ++k)
    if (!iterations[k].empty()) sums[k] += fold_iterations(graph_.loops[entry.loop], iterations[k]);
  rows[here].amounts = std::move(sums);
}

std::vector<ModuleRow> ModuleSums::rows() const {
  std::vector<ModuleRow> rows;
  collect(0, "", rows);
  return rows;
}

}  // namespace einc
