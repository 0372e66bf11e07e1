// SPDX-License-Identifier: Apache-2.0
// Plans with faults: the verifier finds every one that lets a launch read what another has stored over.
#include "compiler/lower/verify_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/memory_owners.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

Graph compiled(const std::string& text) {
  return assign_precision(simplify(expand(compile_text(text, {}), Roots::training), Roots::training), Policy::f32);
}

constexpr const char* kNetwork =
    "dim n = 6, d = 5\ninput x: f32[n d]\nparam a: [d e=d] ~ normal(std=0.3)\nparam b: [d e=d] ~ normal(std=0.3)\n"
    "u = einsum(x, a, \"n d, d e -> n e\")\nv = einsum(x, b, \"n d, d e -> n e\")\nh = u * sigmoid(v)\ns = softmax(h + u, e)\n"
    "output y = s\nminimize mean(s^2) + mean(h^2) using adamw(lr = 0.1, clip_norm = 1)\n";

std::string problem_of(const FormedGraph& formed) { return verify_plan(formed.bound, formed.list, formed.plan, formed.roots); }

FormedGraph copy_of(const FormedGraph& formed) { return {nullptr, formed.bound, formed.list, formed.plan, formed.roots}; }

// Launches between which a node's value must stay: from the one that makes it to the last that reads it.
struct Life {
  size_t first, last;
};
std::optional<Life> life_of(const FormedGraph& formed, NodeId id) {
  std::optional<Life> life;
  for (size_t k = 0; k < formed.list.kernels.size(); ++k)
    for (NodeId x : formed.list.kernels[k].buffers)
      if (x == id) life = life ? Life{life->first, k} : Life{k, k};
  if (life && std::ranges::find(formed.roots, id) != formed.roots.end()) life->last = formed.list.kernels.size();
  return life;
}

}  // namespace

TEST_CASE("owners of memory: intervals split and end") {
  MemoryOwners memory;
  memory.take(0, 100, 1);
  CHECK(!memory.stranger(0, 100, 1));
  memory.take(40, 60, 2);
  CHECK(!memory.stranger(0, 40, 1));
  CHECK(!memory.stranger(60, 100, 1));
  CHECK(memory.stranger(0, 41, 1)->owner == 2);
  CHECK(memory.stranger(59, 61, 2)->owner == 1);
  CHECK(!memory.stranger(99, 101, 1)->owner);
  memory.take(30, 70, 3);
  CHECK(!memory.stranger(30, 70, 3));
  CHECK(memory.stranger(0, 31, 1)->owner == 3);
  memory.take(50, 50, 4);
  CHECK(!memory.stranger(30, 70, 3));
}

TEST_CASE("a value placed over one that is still read is found") {
  const Graph graph = compiled(kNetwork);
  const FormedGraph formed = form_graph(graph, {}, RunMode::training);
  REQUIRE(problem_of(formed) == "");
  int planted = 0;
  for (uint32_t i = 0; i < formed.plan.buffers.size(); ++i)
    for (uint32_t j = 0; j < formed.plan.buffers.size(); ++j) {
      const BufferPlan::Buffer &kept = formed.plan.buffers[i], &moved = formed.plan.buffers[j];
      const auto in_memory = [](const BufferPlan::Buffer& b) { return b.place != BufferPlace::none && b.place != BufferPlace::in_target; };
      if (i == j || !in_memory(kept) || !in_memory(moved)) continue;
      const auto a = life_of(formed, NodeId{i}), b = life_of(formed, NodeId{j});
      // Made after the one and before that is read for the last time; what a launch reads itself is verify_overlap's.
      if (!a || !b || moved.place == BufferPlace::source || b->first <= a->first || b->first >= a->last) continue;
      FormedGraph faulty = copy_of(formed);
      faulty.plan.buffers[j].offset = kept.offset;
      CAPTURE(i);
      CAPTURE(j);
      CHECK(problem_of(faulty) != "");
      ++planted;
    }
  CHECK(planted > 50);
}

TEST_CASE("a result placed over an operand that is read at other elements is found") {
  const Graph graph = compiled("dim n = 6\ninput x: f32[n m=n]\noutput y = einsum(tanh(x), tanh(x), \"n m, m k -> n k\")\n");
  const FormedGraph formed = form_graph(graph, {}, RunMode::inference, Scheduling::unfused);
  FormedGraph faulty = copy_of(formed);
  const GraphKernel& product = formed.list.kernels.back();
  REQUIRE(product.kernel->contraction);
  faulty.plan.buffers[formed.roots[0].index].offset = faulty.plan.buffers[product.buffers[0].index].offset;
  CHECK(problem_of(faulty).find("another point may be stored first") != std::string::npos);
}

TEST_CASE("values outside of the mapping, and updates that overtake a read, are found") {
  const Graph graph = compiled(kNetwork);
  const FormedGraph formed = form_graph(graph, {}, RunMode::training);
  FormedGraph faulty = copy_of(formed);
  faulty.plan.total_bytes = 64;
  CHECK(problem_of(faulty).find("outside of the mapping") != std::string::npos);
  // The first launch last: what it makes is read before.
  FormedGraph late = copy_of(formed);
  std::rotate(late.list.kernels.begin(), late.list.kernels.begin() + 1, late.list.kernels.end());
  CHECK(problem_of(late) != "");
}
