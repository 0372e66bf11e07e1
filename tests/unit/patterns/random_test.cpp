// SPDX-License-Identifier: Apache-2.0
// Patterns put together at random from the notation's pieces, on tensors of random symbolic shapes: each either gives a
// graph that the verifier accepts or a message that points into the call. Nothing else may happen.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/verify.h"

namespace einc {
namespace {

using Random = std::mt19937;

size_t below(Random& random, size_t n) { return random() % n; }

template <size_t N>
std::string pick(Random& random, const char* const (&words)[N]) {
  return words[below(random, N)];
}

struct Operand {
  const char* name;
  std::vector<std::vector<const char*>> axes;  // what may stand for each
};

const Operand kOperands[] = {
    {"x0", {}},
    {"x1", {{"embed", "a", "(n b)", "(n 2 2)", "(a + b)", "(2*c + d)", "(4 n)"}}},
    {"x2", {{"n", "a", "(b c)", "b"}, {"m", "b", "c", "(a + m)", "(1 d)"}}},
    {"x3", {{"n", "a", "(2*a + b)"}, {"n", "a", "c"}, {"embed", "d", "(n b)", "(a d)"}}},
    {"x4", {{"a", "(a b)", "(m c)", "(a + b)", "(2*a + 3*b)"}, {"b", "1", "()", "d"}, {"c", "(c 2)", "(3*c + d)", "(a b)"}}},
    {"x5", {{"a", "2", "c"}, {"m", "b", "3"}, {"c", "4", "(2 a)", "(b d)"}, {"embed", "d", "e"}}},
};

std::string random_side(Random& random, const Operand& operand) {
  static const char* const kOthers[] = {"...", "(...)", "*", "1", "(a 2)", "embed", "b"};
  std::string text;
  const bool dots = below(random, 4) == 0;
  const size_t from = dots ? below(random, operand.axes.size() + 1) : 0, cut = dots ? below(random, operand.axes.size() + 1 - from) : 0;
  for (size_t i = 0; i < operand.axes.size(); ++i) {
    if (dots && i == from) text += "... ";
    if (dots && i >= from && i < from + cut) continue;
    const auto& words = operand.axes[i];
    text += std::string(words[below(random, words.size())]) + " ";
  }
  if (dots && from == operand.axes.size()) text += "... ";
  if (below(random, 20) == 0) text += pick(random, kOthers) + " ";
  return text;
}

// A right side that uses what stands on the left, so that many patterns are sound.
std::string shuffled_names(Random& random, const std::string& left) {
  std::vector<std::string> names;
  for (const char* name : {"a", "b", "c", "d", "n", "m", "embed", "..."})
    if (left.find(name) != std::string::npos && below(random, 5) != 0) names.emplace_back(name);
  std::shuffle(names.begin(), names.end(), random);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i + 1 < names.size() && below(random, 5) == 0) {
      text += fmt::format("({} {}) ", names[i], names[i + 1]);
      ++i;
    } else {
      text += names[i] + " ";
    }
  }
  return text;
}

std::string random_call(Random& random) {
  static const char* const kSizes[] = {", a=2", ", b=n", ", b=4", ", c=3", ", d=4", ", n=2", ", e=2", ", m=n + 1"};
  static const char* const kReductions[] = {"sum", "mean", "max", "prod", "any", "median"};
  std::string sizes, tensors, left;
  for (size_t k = below(random, 3); k > 0; --k) sizes += pick(random, kSizes);
  const size_t kind = below(random, 6), count = kind < 3 ? 1 : 1 + below(random, 4);
  for (size_t k = 0; k < count; ++k) {
    const Operand& operand = kOperands[below(random, std::size(kOperands))];
    tensors += std::string(operand.name) + ", ";
    left += (k == 0 ? "" : ", ") + random_side(random, operand);
  }
  const std::string right = below(random, 10) == 0 ? "c ... 1" : shuffled_names(random, left);
  switch (kind) {
    case 0:
      return fmt::format("rearrange({}\"{}-> {}\"{})", tensors, left, right, sizes);
    case 1:
      return fmt::format("reduce({}\"{}-> {}\", \"{}\"{})", tensors, left, right, pick(random, kReductions), sizes);
    case 2:
      return fmt::format("repeat({}\"{}-> {}e (e2 1)\", e2=n{})", tensors, left, right, sizes);
    case 3:
      return fmt::format("pack({}\"{}\")", tensors, below(random, 2) == 0 ? "*" : "* " + left.substr(0, left.find(' ')));
    default:
      return fmt::format("einsum({}\"{}-> {}\"{})", tensors, left, right, sizes);
  }
}

TEST_CASE("random patterns give a sound graph or a message in place") {
  const std::string prelude = R"(dim n, m = 3
dim embed = 4 * n
input x0: f32[]
input x1: f32[embed]
input x2: f32[n m]
input x3: f32[n n embed]
input x4: i32[a=12 b=1 c=6]
input x5: bool[p=2 q=3 r=4 s=embed]
)";
  Random random(11);
  int sound = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = prelude + "output r = " + random_call(random) + "\n";
    CAPTURE(text);
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.add("random.ein", text, diagnostics);
    REQUIRE(file);
    const std::optional<Graph> graph = elaborate(sources, *file, {}, diagnostics);
    REQUIRE(graph.has_value() == !diagnostics.has_errors());
    if (graph) {
      ++sound;
      const std::vector<std::string> problems = verify(*graph);
      REQUIRE_MESSAGE(problems.empty(), problems.front());
    } else {
      for (const Diagnostic& d : diagnostics.list()) REQUIRE(d.span.begin >= prelude.size());
    }
  }
  MESSAGE(sound, " of 20000 random patterns are sound");
  CHECK(sound > 1000);
}

}  // namespace
}  // namespace einc
