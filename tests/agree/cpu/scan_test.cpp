// Recurrences: generated code against the interpreter, and scans against the same loop unrolled.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/fuse/form_graph.h"
#include "tests/support/agree.h"
#include "tests/support/recurrences.h"
#include "tests/support/run_graph.h"
#include "tests/support/tensor_difference.h"

using namespace einc;

TEST_CASE("generated code agrees with the interpreter, gradients with finite differences") {
  for (const Recurrence& r : kRecurrences) {
    CAPTURE(std::string(r.name));
    CHECK(disagreement(written(r, r.scan, false), 1, all_ways()) == "");
  }
}

// Draws are those of the iteration's number, and the sums of what all iterations add are the only ones that change their order.
TEST_CASE("save every k changes no value of the forward and no draw, and keeps the root of what is kept otherwise") {
  const std::string text = R"(input x: [time=64 n=8]
param w: [n] ~ normal
h = 0
scan t in time%s {
  h = tanh(h * w + dropout(x[time = t], 0.3)) * sigmoid(h)
}
minimize sum(h^2) using sgd(lr = 0.1)
output h
)";
  std::vector<InterpretResult> results;
  std::vector<int64_t> bytes;
  for (const char* saved : {"", ", save every 8"}) {
    std::string problem, program = text;
    program.replace(program.find("%s"), 2, saved);
    const auto made = interpret_text(program, 1, problem);
    REQUIRE(problem == "");
    results.push_back(made->exact);
    bytes.push_back(form_graph(made->graph, {}, RunMode::training).plan.arena_bytes);
  }
  CHECK(results[0].outputs[0].second.reals == results[1].outputs[0].second.reals);
  for (const auto& [path, gradient] : results[0].gradients) CHECK(difference(results[1].gradients.at(path), gradient, 1e-13) == "");
  CHECK(bytes[1] * 2 < bytes[0]);
}

TEST_CASE("a scan gives what the unrolled loop gives") {
  for (const Recurrence& r : kRecurrences) {
    if (r.unrolled == nullptr) continue;
    CAPTURE(std::string(r.name));
    std::string problem;
    const auto scan = interpret_text(written(r, r.scan, false), 1, problem);
    CHECK(problem == "");
    const auto loop = interpret_text(written(r, r.unrolled, true), 1, problem);
    CHECK(problem == "");
    if (!scan || !loop) continue;
    for (size_t o = 0; o < scan->exact.outputs.size(); ++o)
      CHECK(difference(scan->exact.outputs[o].second, loop->exact.outputs[o].second, 1e-12) == "");
    for (const auto& [path, gradient] : scan->exact.gradients) CHECK(difference(gradient, loop->exact.gradients.at(path), 1e-11) == "");
  }
}
