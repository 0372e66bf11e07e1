// SPDX-License-Identifier: Apache-2.0
// A row that several stages of a kernel go over comes from memory once: what is its own stays in registers, what all rows read alike comes
// from the caches where it does not fit too.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/codegen/cuda/kernel_text.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/kernel_programs.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

// A norm of a sum, with a bias in front and weights behind.
std::string norm_of(int64_t cols) {
  return fmt::format(R"(dim rows = 9, cols = {}
input x: bf16[rows cols]
input y: bf16[rows cols]
input bias: f32[cols]
input scale: f32[cols]
h = cast(x, f32) + cast(y, f32) + bias
m = mean(h, cols)
v = mean((h - m)^2, cols)
output z: bf16[rows cols] = cast((h - m) * rsqrt(v + 1e-5) * scale, bf16)
)",
                     cols);
}

struct OnlyKernel {
  std::string kind, body;
};

OnlyKernel only_kernel(const std::string& text) {
  const Graph graph = assign_precision(simplify(expand(compile_text(text), Roots::inference), Roots::inference), Policy::inherit);
  CudaOptions options;
  options.mode = RunMode::inference;
  const auto program = compile_for_cuda(graph, {}, options);
  REQUIRE(program->list.kernels.size() == 1);
  const GraphKernel& k = program->list.kernels[0];
  return {std::string(k.plan->kind), cuda_function(*k.kernel, *k.plan).body};
}

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("cuda: a norm reads its row once") {
  for (const int64_t cols : {768, 1024, 1600}) {
    CAPTURE(cols);
    const std::string text = norm_of(cols);
    const OnlyKernel kernel = only_kernel(text);
    CHECK(kernel.kind.find("in registers") != std::string::npos);
    CHECK(count(kernel.body, "*reinterpret_cast<const Vec<bf16, 8>*>(b") == 2);
    CHECK(cuda_disagreement(text, 3) == "");
  }
}
