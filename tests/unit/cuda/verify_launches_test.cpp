// SPDX-License-Identifier: Apache-2.0
// Launch lists with faults: launches joined that must run one after another, and alternatives that run too early or too late.
#include "compiler/codegen/cuda/verify_launches.h"

#include <doctest/doctest.h>

#include "compiler/pipeline/cuda_program.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

// A block of GPT-2 with products by cuBLASLt: launches joined (updates of params), products with epilogues.
struct Compiled {
  Graph graph;
  std::unique_ptr<CudaProgramText> program;

  Compiled() {
    const Bindings dims{{"batch", 2}, {"seq", 16}, {"vocab", 64}, {"layers", 2}, {"heads", 2}, {"head", 16}};
    graph = assign_precision(simplify(expand(compile_example("gpt2.ein", dims), Roots::training), Roots::training), Policy::bf16);
    CudaOptions options;
    options.library.products = 1;
    program = compile_for_cuda(graph, dims, options);
  }
  std::string problem(const CudaExecutable& executable) const { return verify_launches(executable, program->list); }
};

// Whether launch b reads or writes what a writes.
bool depends(const CudaExecutable& e, const KernelList& list, uint32_t b, uint32_t a) {
  const auto &first = e.program.launches[a].buffers, &second = e.program.launches[b].buffers;
  const auto& uses = list.kernels[a].kernel->buffers;
  for (size_t i = 0; i < uses.size() && i < first.size(); ++i)
    if (uses[i].access != BufferAccess::read && std::ranges::find(second, first[i]) != second.end()) return true;
  return false;
}

}  // namespace

TEST_CASE("launches that are joined although one needs the other are found") {
  const Compiled compiled;
  CudaExecutable faulty = compiled.program->executable;
  REQUIRE(compiled.problem(faulty) == "");
  int planted = 0;
  for (uint32_t a = 0; a + 1 < faulty.calls.size(); ++a) {
    const uint32_t b = a + 1;
    if (faulty.calls[a].done_before || faulty.calls[b].done_before || !depends(faulty, compiled.program->list, b, a)) continue;
    faulty.calls[a].together.push_back(b), faulty.calls[b].done_before = true;
    CAPTURE(a);
    CHECK(compiled.problem(faulty) != "");
    faulty.calls[a].together.pop_back(), faulty.calls[b].done_before = false;
    ++planted;
  }
  CHECK(planted > 20);
}

TEST_CASE("a product with its epilogue at a place where an operand is not made yet is found, and one that leaves a result out") {
  const Compiled compiled;
  const CudaExecutable& right = compiled.program->executable;
  REQUIRE(!right.fused.empty());
  for (size_t i = 0; i < right.fused.size(); ++i) {
    CAPTURE(i);
    CudaExecutable early = right;
    early.fused[i].at = 0;
    CHECK(compiled.problem(early) != "");
    CudaExecutable elsewhere = right;
    elsewhere.fused[i].gemm.result.buffer = right.fused[i].gemm.left.buffer;
    CHECK(compiled.problem(elsewhere) != "");
  }
}

TEST_CASE("a launch that is left out is found") {
  const Compiled compiled;
  for (uint32_t l = 0; l < compiled.program->executable.calls.size(); ++l) {
    CudaExecutable faulty = compiled.program->executable;
    if (faulty.calls[l].done_before || !faulty.calls[l].together.empty()) continue;
    faulty.calls[l].done_before = true;
    CAPTURE(l);
    CHECK(compiled.problem(faulty) != "");
  }
}

TEST_CASE("a plan that does not hold what an alternative reads or writes at another's place is found") {
  // `x` is the product's, whose epilogue would run where `g` is stored; sums of `x` would be stored three launches before their own.
  const char* const reads_later =
      "input x0: f32[rows=64 deep=16]\ninput w: f32[deep wide=16]\ninput v: f32[wide out=16]\n"
      "x = tanh(x0)\nh = einsum(x, w, \"rows deep, deep wide -> rows wide\")\ng = gelu_tanh(h)\n"
      "output y = einsum(g, v, \"rows wide, wide out -> rows out\") + einsum(h, v, \"rows wide, wide out -> rows out\")\n";
  const char* const writes_earlier =
      "input x0: f32[rows=64 deep=16]\ninput b: f32[rows wide=16]\ninput q: f32[deep out=4]\n"
      "x = tanh(x0)\noutput c = einsum(x, b, \"rows deep, rows wide -> deep wide\")\n"
      "t = softmax(reduce(c, \"deep wide -> deep\", \"sum\"), deep)\nu = softmax(einsum(t, q, \"deep, deep out -> out\"), out)\n"
      "output s = reduce(x, \"rows deep -> deep\", \"sum\") * reduce(u * u, \"out -> \", \"sum\")\n";
  for (const char* const text : {reads_later, writes_earlier}) {
    const Graph graph = simplify(expand(compile_text(text, {}), Roots::inference), Roots::inference);
    CudaOptions options;
    options.mode = RunMode::inference;
    options.library.products = 1;
    const auto program = compile_for_cuda(graph, {}, options);
    const auto problem = [&] {
      const BufferPlan plan = plan_buffers(program->bound, program->list, program->roots, RunMode::inference);
      return verify_launches(make_cuda_program(program->bound, program->list, plan, program->gpu), program->list);
    };
    CAPTURE(text);
    REQUIRE(!program->list.library.held.empty());
    CHECK(problem() == "");
    program->list.library.held.clear();
    CHECK(problem() != "");
  }
}
