// SPDX-License-Identifier: Apache-2.0
// Which launches of one kernel run as one, and what in between forbids it: other launches, and alternatives that run at their place.
#include "compiler/lower/join_launches.h"

#include <doctest/doctest.h>

#include "tests/support/run_graph.h"

using namespace einc;

namespace {

enum class Written : uint8_t { values, states };

struct OneLaunch {
  uint32_t in, out;
  int kernel = 0;  // which of several
};

// Eight values of 64 bytes, each at a place of its own: the step makes them, or from the fourth on three of them are states.
struct Launches {
  Graph graph = compile_text(
      "input x: f32[n=16]\nstate s: f32[n] ~ zeros\nstate t: f32[n] ~ zeros\nstate u: f32[n] ~ zeros\n"
      "output a = tanh(x)\noutput b = exp(x)\noutput c = sin(x)\noutput d = cos(x)\n"
      "output e = sigmoid(x)\noutput f = tanh(-x)\noutput g = exp(-x)\noutput h = sin(-x)\n",
      {});
  std::vector<NodeId> values;
  BufferPlan plan;
  KernelList list;

  Launches(const std::vector<OneLaunch>& launches, Written written) {
    std::vector<NodeId> states;
    for (uint32_t i = 0; i < graph.size(); ++i)
      if (graph.nodes[i].op == Op::state) states.push_back(NodeId{i});
    for (const Output& output : graph.outputs) values.push_back(output.node);
    if (written == Written::states) std::ranges::copy(states, values.begin() + 3);
    plan.buffers.resize(graph.size());
    for (size_t i = 0; i < values.size(); ++i) {
      BufferPlan::Buffer& place = plan.buffers[values[i].index];
      place.place = is_source(graph[values[i]].op) ? BufferPlace::source : BufferPlace::arena;
      place.offset = static_cast<int64_t>(64 * i), place.bytes = 64;
    }
    for (const OneLaunch& one : launches) {
      const auto kernel = std::make_shared<Kernel>();
      kernel->buffers = {{DType::f32, BufferAccess::read, 16 - one.kernel}, {DType::f32, BufferAccess::write, 16}};
      GraphKernel& launch = list.kernels.emplace_back();
      launch.kernel = kernel;
      launch.buffers = {values[one.in], values[one.out]};
    }
  }

  std::vector<uint32_t> joined() {
    const BoundGraph bound = bind_graph(graph, {}, std::vector<bool>(graph.size(), true));
    join_launches(bound, plan, list);
    return list.runs_with;
  }
};

std::vector<uint32_t> joined(const std::vector<OneLaunch>& launches, Written written = Written::values) {
  return Launches(launches, written).joined();
}

using Joined = std::vector<uint32_t>;

}  // namespace

TEST_CASE("launches of one kernel join where nothing in between forbids it") {
  CHECK(joined({{0, 3}, {1, 4}, {2, 5}}) == Joined{0, 0, 0});
  CHECK(joined({{0, 3}, {3, 4}}) == Joined{0, 1});                   // reads what the first makes
  CHECK(joined({{0, 3}, {1, 0}}) == Joined{0, 1});                   // writes what the first reads
  CHECK(joined({{0, 3}, {1, 3}}) == Joined{0, 1});                   // writes what the first writes
  CHECK(joined({{0, 3}, {3, 1}, {1, 4}}) == Joined{0, 1, 2});        // one in between makes what it reads
  CHECK(joined({{0, 1}, {2, 4}}, Written::states) == Joined{0, 1});  // an update never runs before what may forbid it
  CHECK(joined({{0, 3}, {1, 4}}, Written::states) == Joined{0, 0});
}

// Kernel 0 makes what kernel 1 reads, as parts of sums are made and added up.
TEST_CASE("what is in the way may move first, or later") {
  CHECK(joined({{0, 1}, {1, 2, 1}, {0, 3}, {3, 4, 1}}) == Joined{0, 1, 0, 1});
  CHECK(joined({{0, 2, 1}, {0, 1}, {0, 3}, {3, 4, 1}}) == Joined{0, 1, 1, 3});  // made behind the leader, even when it has moved
  CHECK(joined({{0, 1, 1}, {0, 2}, {2, 3, 1}, {0, 4}, {4, 5, 1}}) == Joined{0, 1, 2, 1, 2});  // in a second round
  // The last two have joined; what one reads forbids both to move to the third.
  CHECK(joined({{0, 1, 1}, {0, 2}, {1, 3, 1}, {0, 4, 2}, {0, 5}, {5, 6, 1}, {4, 7, 1}}) == Joined{0, 1, 2, 3, 1, 5, 5});
}

TEST_CASE("an alternative runs alone, and touches at its place what its parts do and what is held for it") {
  Launches parts({{0, 3}, {1, 4}, {2, 5}}, Written::values);
  parts.list.library.fused.push_back({{}, {0, 1}, 0, 1});
  CHECK(parts.joined() == Joined{0, 1, 2});
  // The third launch may join the first, but not where an alternative at the second still reads what it writes.
  Launches held({{0, 3}, {1, 4}, {2, 5}}, Written::values);
  held.list.library.held.push_back({held.values[5], 1});
  CHECK(held.joined() == Joined{0, 0, 2});
}
