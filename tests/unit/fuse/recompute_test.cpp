// SPDX-License-Identifier: Apache-2.0
// What of the forward is kept for the backward, and what is made again.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "compiler/fuse/form_graph.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

struct RecomputeCase {
  const char* what;
  const char* layer;   // of x [b d] to y [b h]
  int64_t kept, made;  // bytes kept for the backward: as computed, and when values may be made again
};

constexpr int64_t kRows = 128, kWidth = 256, kHidden = 512;
constexpr int64_t kNarrow = 4 * kRows * kWidth, kWide = 4 * kRows * kHidden, kRow = 4 * kRows;

// x reaches the layer through a contraction, its result another one whose gradient needs it; the loss needs z.
std::string layer_program(const char* layer) {
  return "dim b = 128, d = 256, h = 512\ninput data: f32[b i=d]\nparam w0: [i=d d] ~ normal(std = 1)\nparam w1: [d h] ~ normal(std = 1)\n"
         "param g: [d] ~ ones\nparam w2: [h o=d] ~ normal(std = 1)\n"
         "x = einsum(data, w0, \"b i, i d -> b d\")\n" +
         std::string(layer) + "z = einsum(y, w2, \"b h, h o -> b o\")\nloss = sum(z * z)\nminimize loss using sgd(lr = 0.1)\n";
}

const RecomputeCase kRecomputeCases[] = {
    {"a function of what is kept anyway", "u = einsum(x, w1, \"b d, d h -> b h\")\ny = gelu(u)\n", 2 * kNarrow + 2 * kWide,
     2 * kNarrow + kWide},
    {"gated", "u = einsum(x, w1, \"b d, d h -> b h\")\ny = silu(u) * u\n", 2 * kNarrow + 4 * kWide, 2 * kNarrow + kWide},
    {"nothing to win: a value as large is read anyway", "y = einsum(x, w1, \"b d, d h -> b h\")\n", 2 * kNarrow + kWide,
     2 * kNarrow + kWide},
};

FormedGraph formed_of(const Graph& graph, const Scheduling& scheduling) {
  return form_graph(graph, {{"b", kRows}, {"d", kWidth}, {"h", kHidden}}, RunMode::training, scheduling);
}

// What kernels with some of the forward write and kernels without read.
std::vector<NodeId> saved_values(const Graph& graph, const FormedGraph& formed) {
  std::set<uint32_t> made, read;
  for (const GraphKernel& k : formed.list.kernels) {
    const bool forward =
        std::any_of(k.group.members.begin(), k.group.members.end(), [&](NodeId id) { return graph[id].origin.phase == Phase::forward; });
    for (size_t b = 0; b < k.buffers.size(); ++b) {
      if (!k.buffers[b].valid()) continue;
      if (forward && k.kernel->buffers[b].access == BufferAccess::write) made.insert(k.buffers[b].index);
      if (!forward && k.kernel->buffers[b].access == BufferAccess::read) read.insert(k.buffers[b].index);
    }
  }
  std::vector<NodeId> values;
  for (uint32_t id : made)
    if (read.count(id)) values.push_back(NodeId{id});
  return values;
}

int64_t saved(const Graph& graph, const Scheduling& scheduling) {
  const FormedGraph formed = formed_of(graph, scheduling);
  int64_t bytes = 0;
  for (NodeId id : saved_values(formed.bound.graph, formed)) bytes += 4 * formed.bound.count(id);
  return bytes;
}

}  // namespace

TEST_CASE("recompute: what the backward makes again is not kept") {
  for (const RecomputeCase& test : kRecomputeCases) {
    CAPTURE(test.what);
    const Graph graph =
        assign_precision(simplify(expand(compile_text(layer_program(test.layer), {}), Roots::training), Roots::training), Policy::inherit);
    Scheduling kept;
    kept.without = {"recompute"};
    CHECK(saved(graph, kept) == test.kept);
    CHECK(saved(graph, Scheduling::all) == test.made);
  }
}

TEST_CASE("recompute: of a norm of bf16 what it is of is kept, not that in f32 less its mean") {
  const char* norm = "c = x - mean(x, d)\nn = c * rsqrt(mean(c^2, d) + 1e-5) * g\ny = einsum(n, w1, \"b d, d h -> b h\")\n";
  const Graph graph =
      assign_precision(simplify(expand(compile_text(layer_program(norm), {}), Roots::training), Roots::training), Policy::bf16);
  const FormedGraph formed = formed_of(graph, Scheduling::all);
  int wide = 0;
  for (NodeId id : saved_values(formed.bound.graph, formed)) {
    if (formed.bound.count(id) != kRows * kWidth) continue;
    ++wide;
    CHECK(formed.bound[id].type.dtype == DType::bf16);
  }
  CHECK(wide > 0);
}
