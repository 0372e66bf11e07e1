// SPDX-License-Identifier: Apache-2.0
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
