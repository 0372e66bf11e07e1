// SPDX-License-Identifier: Apache-2.0
// Attention of a sequence in parts: rows stay where they are, whatever the order in which a program names them, and what crosses devices
// is what Llama 3 sends (Llama Team 2024, "The Llama 3 Herd of Models", section 3.3.2): keys and values once, their gradients once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "tests/support/context_programs.h"
#include "tests/support/mesh_examples.h"

using namespace einc;

namespace {

// Tensors that cross devices, by collective; single numbers and gradients of params are not counted.
std::string sequence_moves(const Partitioned& p, Phase phase) {
  std::map<std::string, int> counts;
  for (const Collective& c : collectives_of(p)) {
    const Node& node = p.graph[c.node];
    if (node.origin.phase != phase || node.type.rank() == 0 || c.kind == CollectiveKind::all_reduce) continue;
    ++counts[std::string(to_string(c.kind))];
  }
  std::string text;
  for (const auto& [kind, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, count);
  return text;
}

}  // namespace

TEST_CASE("context: keys and values are gathered, their gradients scattered, results those of the whole program") {
  check_on_meshes({"context = 2", "context = 4", "data = 2, context = 2", "context = 2, model = 2"}, false,
                  [](const ContextProgram& program, const std::string&, Roots roots, const Partitioned& parts) {
                    const bool masked = std::string(program.scores).find("keep") != std::string::npos;  // one number of a key besides
                    CHECK(sequence_moves(parts, Phase::forward) == (masked ? "all_gather 3" : "all_gather 2"));
                    CHECK(sequence_moves(parts, Phase::backward) == (roots == Roots::training ? "reduce_scatter 2" : ""));
                  });
}
