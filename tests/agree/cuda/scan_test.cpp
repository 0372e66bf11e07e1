// SPDX-License-Identifier: Apache-2.0
// Recurrences on the GPU: their iterations are launches with addresses of their own.
#include <doctest/doctest.h>

#include "runtime/base/failure.h"
#include "tests/support/kernel_programs.h"
#include "tests/support/recurrences.h"

using namespace einc;

TEST_CASE("cuda: recurrences give what the interpreter gives") {
  for (const Recurrence& r : kRecurrences) {
    CAPTURE(std::string(r.name));
    CHECK(cuda_disagreement(written(r, r.scan, false), 1) == "");
  }
}

// Kernels of rows that one team cannot hold work in memory besides, which the scan hands to its iterations.
TEST_CASE("cuda: iterations work in memory besides") {
  CHECK(cuda_disagreement(R"(input x: [time=3 n=40000]
h = 0
scan t in time {
  h = softmax(h + x[time = t], n)
  collect hs = h
}
output hs
)",
                          1) == "");
}

TEST_CASE("cuda: an index out of range names the iterations") {
  std::string problem;
  auto wanted = interpret_text(R"(input table: [rows=4 n=3]
input ids: i32[steps=2 time=5]
h = 0
scan s in steps {
  scan t in time { h = 0.5 * h + table[rows = ids[steps = s, time = t]] }
}
output h
)",
                               1, problem);
  REQUIRE(problem == "");
  Tensor& ids = wanted->inputs.at("ids");
  ids.ints.at(7) = 9;
  const auto message = [&](auto run) -> std::string {
    try {
      run();
    } catch (const FaultyElement& fault) {
      return fault.what();
    }
    return "no fault";
  };
  const std::string said =
      "index out of range: 'gather' at [] is 9, but axis 'rows' of 'table' has size 4 (random.ein:5:34), iteration 2, iteration 1";
  CHECK(message([&] { run_cuda(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options); }) == said);
#ifdef EINC_WITH_LLVM
  CHECK(message([&] { run_cpu(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options); }) == said);
#endif
  CHECK(message([&] { interpret(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options); }) == said);
}
