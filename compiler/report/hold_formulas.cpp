// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/hold_formulas.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/cost/modules.h"

namespace einc {
namespace {

// Calls visit(key, amount) for each amount whose formula sums over loops; keys are alike in reports of one program. Modules of one loop's
// iterations have one key: which of them is the first or the last depends on how many there are.
template <class R, class Visit>
void for_each_sum(R& report, const Visit& visit) {
  visit("parameters", report.parameter_count);
  visit("trained", report.trained_count);
  const auto flops = [&](const std::string& phase, auto& f) {
    visit(phase + "contraction", f.contraction);
    visit(phase + "elementwise", f.elementwise);
    visit(phase + "reduction", f.reduction);
    visit(phase + "other", f.other);
    visit(phase + "total", f.total);
    visit(phase + "transcendental", f.transcendental);
  };
  flops("forward ", report.forward);
  flops("backward ", report.backward);
  flops("optimizer ", report.optimizer);
  visit("step", report.step);
  visit("per token", report.per_token);
  visit("per example", report.per_example);
  for (auto& m : report.modules) {
    const std::string path = "module " + starred(m.path);
    visit(path + " parameters", m.parameters);
    visit(path + " forward", m.flops_forward);
    visit(path + " step", m.flops_step);
    visit(path + " saved", m.saved_activations);
  }
  visit("6ND parameters", report.six_nd.parameters);
  visit("6ND tokens", report.six_nd.tokens);
  visit("6ND", report.six_nd.estimate);
  auto& memory = report.memory;
  visit("memory parameters", memory.parameters);
  visit("memory gradients", memory.gradients);
  visit("memory optimizer", memory.optimizer_state);
  visit("memory state", memory.state);
  visit("memory inputs", memory.inputs);
  visit("memory saved", memory.saved_activations);
  visit("host to device", report.host_to_device);
  for (auto& c : report.components) {
    visit(c.name + " parameters", c.parameters);
    visit(c.name + " flops", c.flops_per_token);
  }
}

// A report's formulas with its numbers of iterations put in: what any formula must give there.
struct Sample {
  Substitution counts;
  std::unordered_map<std::string, std::vector<const Amount*>> sums;

  Sample(const Bindings& values, const Report& report) {
    for (const auto& [dim, value] : values) counts[dim] = Poly(Rational(value));
    for_each_sum(report, [&](const std::string& key, const Amount& amount) { sums[key].push_back(&amount); });
  }

  // The first one's; nullptr where the report has no such sum.
  const Poly* formula_of(const std::string& key) const {
    const auto found = sums.find(key);
    return found == sums.end() ? nullptr : &found->second.front()->formula;
  }

  // With all of that key.
  bool agrees(const std::string& key, const Poly& formula) const {
    const auto found = sums.find(key);
    return found == sums.end() || std::ranges::all_of(found->second, [&](const Amount* own) {
             return own->formula == formula || own->formula.substitute(counts) == formula.substitute(counts);
           });
  }
};

// The dims that loops count, and their values.
Bindings counts_of(const Graph& graph, const Bindings& given) {
  const Bindings values = graph.dims.bind(given).values;
  Bindings counts;
  for (const Dim& dim : graph.dims.dims())
    if (dim.kind != DimKind::derived &&
        std::ranges::any_of(graph.loops, [&](const Loop& loop) { return loop.trip_count.contains(dim.name); }))
      if (const auto value = values.find(dim.name); value != values.end()) counts.insert(*value);
  return counts;
}

// What gives every sample's amounts of that key; nullopt where the samples disagree.
std::optional<Poly> agreed_formula(const std::vector<Sample>& samples, const std::string& key) {
  for (const Sample& sample : samples) {
    const Poly* candidate = sample.formula_of(key);
    if (candidate == nullptr || !std::ranges::all_of(samples, [&](const Sample& s) { return s.agrees(key, *candidate); })) continue;
    return *candidate;
  }
  return std::nullopt;
}

}  // namespace

std::vector<SampledReport> sample_reports(const Graph& graph, const Bindings& given, const CompileWith& compile) {
  std::vector<SampledReport> samples;
  if (!graph.chosen_by.empty()) return samples;
  const Bindings counts = counts_of(graph, given);
  if (counts.empty()) return samples;
  // At 5 the first iteration, the last and those between can be told apart, so a formula read off there is the likeliest to hold; at 2 and
  // at 1 there are none between, and one is both.
  for (const int64_t iterations : {5, 2, 1}) {
    Bindings other = counts;
    for (auto& [dim, value] : other) value = iterations;
    if (other == counts) continue;
    Bindings all = given;
    for (const auto& [dim, value] : other) all[dim] = value;
    const std::optional<Graph> graph_there = compile(all);
    if (!graph_there) continue;  // as where a layer's size depends on how many there are
    ReportOptions options;
    options.given = all;
    options.plan = nullptr;
    samples.push_back({other, build_report(*graph_there, options)});
  }
  return samples;
}

void hold_formulas(Report& report, const Graph& graph, const Bindings& given, const std::vector<SampledReport>& others) {
  if (!graph.chosen_by.empty())  // where the other branch begins to be taken is not known
    return for_each_sum(report, [](const std::string&, Amount& amount) { amount.holds_here = true; });
  const Bindings counts = counts_of(graph, given);
  if (counts.empty()) return;
  const Report own = report;
  std::vector<Sample> samples{Sample(counts, own)};
  for (const SampledReport& other : others) samples.emplace_back(other.counts, other.report);
  // Amounts of one key are alike, and a deep model has hundreds of each.
  std::unordered_map<std::string, std::optional<Poly>> agreed;
  for_each_sum(report, [&](const std::string& key, Amount& amount) {
    const auto [formula, fresh] = agreed.try_emplace(key);
    if (fresh) formula->second = agreed_formula(samples, key);
    if (formula->second)
      amount.formula = *formula->second;
    else
      amount.holds_here = true;
  });
}

}  // namespace einc
