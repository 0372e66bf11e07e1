// SPDX-License-Identifier: Apache-2.0
// Rows too short for a warp on the emulated GPU: a part of a warp takes one, and each of its lanes a whole pack.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/gpu_plan/gpu_plan.h"
#include "tests/support/kernel_programs.h"

using namespace einc;

namespace {

std::string dot_of(int64_t rows, int64_t cols, const char* dtype) {
  return fmt::format(R"(dim rows = {}, cols = {}
input x: {}[rows cols]
input y: {}[rows cols]
output d = sum(cast(x, f32) * cast(y, f32), cols)
)",
                     rows, cols, dtype, dtype);
}

// Several stages, whose rows stay in registers; what one lane stores for its row; the first of equal elements.
std::string norm_of(int64_t rows, int64_t cols, const char* dtype) {
  return fmt::format(R"(dim rows = {}, cols = {}
input x: {}[rows cols]
input scale: f32[cols]
w = cast(x, f32)
m = mean(w, cols)
v = mean((w - m)^2, cols)
output y: {}[rows cols] = cast((w - m) * rsqrt(v + 1e-5) * scale, {})
output middle = m
output largest = argmax(x, cols)
)",
                     rows, cols, dtype, dtype, dtype);
}

ThreadPlan plan_of(const std::string& text) {
  std::string problem;
  const auto wanted = interpret_text(text, 1, problem);
  REQUIRE(problem == "");
  CudaOptions options;
  options.mode = wanted->options.mode;
  const auto program = compile_for_cuda(wanted->graph, {}, options);
  return std::get<ThreadedLoops>(program->list.kernels[0].plan->how).threads;
}

}  // namespace

TEST_CASE("cuda: as many lanes for a row as it has whole packs") {
  struct Case {
    int64_t rows, cols;
    const char* dtype;
    int team, pack;
  };
  for (const Case& c : {Case{24, 64, "bf16", 8, 8}, Case{24, 64, "f32", 16, 4}, Case{24, 128, "bf16", 16, 8}, Case{24, 256, "bf16", 32, 8},
                        Case{24, 20, "f32", 8, 4}, Case{24, 16, "bf16", 4, 4}, Case{28, 64, "bf16", 8, 8}, Case{24, 17, "f32", 32, 1},
                        // Of 26 rows two go into whole warps, of 25 one.
                        Case{26, 64, "bf16", 16, 4}, Case{25, 64, "bf16", 32, 2}}) {
    const std::string text = dot_of(c.rows, c.cols, c.dtype);
    CAPTURE(text);
    const ThreadPlan plan = plan_of(text);
    CHECK(plan.kind == CudaTeam::warp);
    CHECK(plan.team == c.team);
    CHECK(plan.pack == c.pack);
    CHECK(plan.block_threads == 128);
    CHECK(cuda_disagreement(text, 2) == "");
  }
}

TEST_CASE("cuda: rows of a part of a warp with several reductions") {
  for (const char* dtype : {"f32", "bf16"})
    for (const int64_t cols : {16, 24, 40, 64, 100})
      for (const int64_t rows : {8, 25, 44, 136}) {
        const std::string text = norm_of(rows, cols, dtype);
        CAPTURE(text);
        CHECK(cuda_disagreement(text, 2) == "");
      }
}
