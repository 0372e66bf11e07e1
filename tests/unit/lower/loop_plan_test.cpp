// SPDX-License-Identifier: Apache-2.0
// Along which axis the lanes go: where the fewest loads fetch their lanes one by one, counted as often as the loops run them.
#include "compiler/lower/loop_plan.h"

#include <doctest/doctest.h>

#include "compiler/fuse/form_graph.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

struct Case {
  const char* what;
  const char* program;
  bool outer;      // the lanes run along an outer axis, in all stages
  int64_t extent;  // of the axis that they run along
};

const Case kCases[] = {
    {"distances of pairs: along what is summed, where both operands lie",
     "input x: f32[n d]\ninput z: f32[m d]\noutput y = sum(((x - z): [n d m])^2, d)\n", false, 48},
    {"sums down columns: along the columns", "input x: f32[n d]\noutput y = sum(x^2, n)\n", true, 48},
    {"rows: along them", "input x: f32[n d]\noutput y = x / sum(x, d)\n", false, 48},
    {"distances of pairs that lie the other way: along the pairs",
     "input x: f32[n d]\ninput z: f32[d m]\noutput y = sum(((x - z): [n d m])^2, d)\n", true, 80},
};

}  // namespace

TEST_CASE("loops: the axis of the lanes") {
  const Bindings dims = {{"n", 64}, {"m", 80}, {"d", 48}};
  Processor processor;
  processor.vector_bits = 512, processor.vector_registers = 32;
  for (const Case& test : kCases) {
    CAPTURE(test.what);
    const std::string text = std::string("dim n, m, d\n") + test.program;
    const Graph graph = simplify(expand(compile_text(text, dims), Roots::inference), Roots::inference);
    const FormedGraph formed = form_graph(graph, dims, RunMode::inference, Scheduling::all);
    REQUIRE(formed.list.kernels.size() == 1);
    const Kernel& kernel = *formed.list.kernels[0].kernel;
    const LoopPlan plan = plan_loops(kernel, processor, std::vector<bool>(kernel.buffers.size(), false));
    REQUIRE(plan.outer_vector.has_value() == test.outer);
    const std::optional<AxisId> axis = test.outer ? plan.outer_vector : plan.stage_vector[0];
    REQUIRE(axis);
    CHECK(kernel.extent(*axis) == test.extent);
  }
}
