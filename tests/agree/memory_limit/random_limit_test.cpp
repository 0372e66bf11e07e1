// SPDX-License-Identifier: Apache-2.0
// Random programs in the least memory that their steps can take.
#include <doctest/doctest.h>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/planned_step.h"
#include "tests/support/agree.h"
#include "tests/support/limited_run.h"
#include "tests/support/random_check.h"

using namespace einc;

namespace {

std::string wrong_in_little_memory(const std::string& text, uint64_t seed) {
  std::string problem;
  const auto wanted = interpret_text(text, seed, problem);
  if (!wanted) return problem;
  const auto bytes_of = [&](const Scheduling& options) {
    return plan_for_processor(native_processor(), options)(wanted->graph, {}, RunMode::training, {}).memory.total();
  };
  const auto run = [&](const Scheduling& options) {
    return run_cpu(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options, 1, options);
  };
  return limited_difference({}, bytes_of, run);
}

}  // namespace

TEST_CASE("memory limit: random programs have the same bits within it") { check_random_programs(1, 80, wrong_in_little_memory); }
