// SPDX-License-Identifier: Apache-2.0
// Contraction orders: the table of opt_einsum's and numpy's hard cases, with the exhaustively found least costs in
// opt_einsum's convention, and properties of the search on small and large problems.
#include "compiler/contraction/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/support/case_table.h"

namespace einc {
namespace {

using Labels = std::set<int>;

struct Replay {
  const ContractionProblem& problem;
  std::vector<Labels> terms;
  std::vector<bool> alive;

  explicit Replay(const ContractionProblem& p) : problem(p) {
    for (const auto& operand : p.operands) terms.emplace_back(operand.begin(), operand.end());
    alive.assign(terms.size(), true);
  }
  double product(const Labels& labels) const {
    double n = 1;
    for (const int label : labels) n *= problem.sizes[static_cast<size_t>(label)];
    return n;
  }
  bool needed(int label) const {
    if (std::find(problem.output.begin(), problem.output.end(), label) != problem.output.end()) return true;
    for (size_t t = 0; t < terms.size(); ++t)
      if (alive[t] && terms[t].contains(label)) return true;
    return false;
  }
  // Cost of one step; the terms are joined.
  double join(const ContractionStep& step) {
    const auto l = static_cast<size_t>(step.left), r = static_cast<size_t>(step.right);
    REQUIRE(l < terms.size());
    REQUIRE(r < terms.size());
    REQUIRE(alive[l]);
    REQUIRE(alive[r]);
    alive[l] = alive[r] = false;
    Labels both = terms[l], kept;
    both.insert(terms[r].begin(), terms[r].end());
    for (const int label : both)
      if (needed(label)) kept.insert(label);
    terms.push_back(kept);
    alive.push_back(true);
    return product(both) * (kept.size() == both.size() ? 1 : 2);
  }
  // Sums over labels of a single term beforehand; cost 2 * size of the term.
  double sum_lone_labels() {
    double cost = 0;
    for (size_t t = 0; t < terms.size(); ++t) {
      alive[t] = false;
      Labels kept;
      for (const int label : terms[t])
        if (needed(label)) kept.insert(label);
      alive[t] = true;
      if (kept.size() == terms[t].size()) continue;
      cost += 2 * product(terms[t]);
      terms[t] = kept;
    }
    return cost;
  }
};

ContractionProblem read_problem(const std::string& pattern, const std::vector<std::vector<int64_t>>& shapes) {
  const size_t arrow = pattern.find("->");
  ContractionProblem problem;
  std::map<char, int> labels;
  const auto operands = test::split_fields(pattern.substr(0, arrow), ",");
  for (size_t t = 0; t < operands.size(); ++t) {
    auto& operand = problem.operands.emplace_back();
    for (size_t i = 0; i < operands[t].size(); ++i) {
      const auto [it, added] = labels.try_emplace(operands[t][i], static_cast<int>(labels.size()));
      if (added) problem.sizes.push_back(static_cast<double>(shapes[t][i]));
      operand.push_back(it->second);
    }
  }
  for (const char c : pattern.substr(arrow + 2)) problem.output.push_back(labels.at(c));
  return problem;
}

double brute_force(Replay state, size_t open) {
  if (open == 1) return 0;
  double best = 1e300;
  for (size_t i = 0; i < state.terms.size(); ++i)
    for (size_t j = i + 1; j < state.terms.size(); ++j) {
      if (!state.alive[i] || !state.alive[j]) continue;
      Replay next = state;
      const double cost = next.join({static_cast<int>(i), static_cast<int>(j)});
      if (cost < best) best = std::min(best, cost + brute_force(next, open - 1));
    }
  return best;
}

ContractionProblem random_problem(std::mt19937& random, int operands, int labels) {
  ContractionProblem problem;
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int l = 0; l < labels; ++l) problem.sizes.push_back(1 + below(6));
  problem.operands.resize(static_cast<size_t>(operands));
  for (int l = 0; l < labels; ++l) {
    Labels in;  // every label in two operands, or one and the output
    in.insert(below(operands));
    if (below(4) == 0) problem.output.push_back(l);
    while (in.size() < 2) in.insert(below(operands));
    if (below(5) == 0) in.insert(below(operands));
    for (const int t : in) problem.operands[static_cast<size_t>(t)].push_back(l);
  }
  return problem;
}

TEST_CASE("the cost of every case in the table is reached") {
  int executed = 0;
  for (const test::CaseRow& row : test::read_case_table(EINC_SOURCE_DIR "/tests/numeric/patterns/cases.md")) {
    if (!row.section.starts_with("contraction order")) continue;
    CAPTURE(row.fields[0]);
    const ContractionProblem problem = read_problem(row.fields[2], test::parse_shapes(row.fields[3]));
    Replay replay(problem);
    double cost = replay.sum_lone_labels();
    const ContractionOrder order = choose_order(problem);
    double steps = 0;
    for (const ContractionStep& step : order.steps) steps += replay.join(step);
    cost += steps;
    CHECK(order.flops == steps);
    CHECK(order.steps.size() == problem.operands.size() - 1);
    CHECK(cost <= std::stod(row.fields[5].substr(5)));
    ++executed;
  }
  CHECK(executed >= 11);
}

TEST_CASE("the exact search equals brute force") {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const ContractionProblem problem = random_problem(random, 2 + round % 4, 3 + round % 6);
    const ContractionOrder order = choose_order(problem);
    CHECK(order.method == OrderMethod::exact);
    CHECK(order.flops == doctest::Approx(brute_force(Replay(problem), problem.operands.size())));
  }
}

TEST_CASE("above the exact limit a chain is still contracted well") {
  ContractionProblem chain;
  std::mt19937 random(2);
  for (int t = 0; t < 40; ++t) chain.operands.push_back({t, t + 1});
  for (int l = 0; l <= 40; ++l) chain.sizes.push_back(static_cast<double>(5 + random() % 60));
  chain.output = {0, 40};
  const ContractionOrder order = choose_order(chain);
  CHECK(order.method == OrderMethod::greedy);
  REQUIRE(order.steps.size() == 39);
  // the matrix chain's own dynamic program gives the optimum
  std::vector<std::vector<double>> best(40, std::vector<double>(40));
  for (size_t length = 1; length < 40; ++length)
    for (size_t i = 0; i + length < 40; ++i) {
      const size_t j = i + length;
      best[i][j] = 1e300;
      for (size_t k = i; k < j; ++k)
        best[i][j] = std::min(best[i][j], best[i][k] + best[k + 1][j] + 2 * chain.sizes[i] * chain.sizes[k + 1] * chain.sizes[j + 1]);
    }
  CHECK(order.flops <= 1.05 * best[0][39]);
  Replay replay(chain);
  double cost = 0;
  for (const ContractionStep& step : order.steps) cost += replay.join(step);
  CHECK(cost == doctest::Approx(order.flops));
}

TEST_CASE("scalars, equal labels everywhere, and outer products have an order") {
  CHECK(choose_order({{{}, {}, {}}, {}, {}}).steps.size() == 2);
  CHECK(choose_order({{{0}, {0}, {0}}, {0}, {7}}).flops == 14);
  CHECK(choose_order({{{0}}, {}, {7}}).steps.empty());
  std::vector<std::vector<int>> many(kMaxContractionOperands, std::vector<int>{0, 1});
  CHECK(choose_order({many, {1}, {3, 5}}).steps.size() == kMaxContractionOperands - 1);
}

}  // namespace
}  // namespace einc
