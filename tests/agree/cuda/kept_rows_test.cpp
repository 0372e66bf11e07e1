// SPDX-License-Identifier: Apache-2.0
// A row that several stages of a kernel go over comes from memory once: what is its own stays in registers, what all rows read alike comes
// from the caches where it does not fit too. Rows that are too long for registers stay in shared memory.
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

std::string long_norm_of(int64_t cols, const char* dtype) {
  return fmt::format(R"(dim rows = 17, cols = {}
input x: {}[rows cols]
w = cast(x, f32) - mean(cast(x, f32), cols)
output y: {}[rows cols] = cast(w * rsqrt(mean(w^2, cols) + 1e-5), {})
)",
                     cols, dtype, dtype, dtype);
}

struct OnlyKernel {
  std::string kind, body;
  GpuPlan plan;
};

OnlyKernel only_kernel(const std::string& text, const GpuShape& gpu = {}) {
  const Graph graph = assign_precision(simplify(expand(compile_text(text), Roots::inference), Roots::inference), Policy::inherit);
  CudaOptions options;
  options.mode = RunMode::inference;
  options.gpu = gpu;
  const auto program = compile_for_cuda(graph, {}, options);
  REQUIRE(program->list.kernels.size() == 1);
  const GraphKernel& k = program->list.kernels[0];
  return {std::string(k.plan->kind), cuda_function(*k.kernel, *k.plan).body, *k.plan};
}

// Its rows, which are few, are not divided among more blocks.
const GpuShape kOneProcessor = {.processors = 1};

// "" or how a run of what is compiled for that GPU differs from the interpreter's; counts the kernels that keep rows in shared memory.
std::string disagreement_on(const GpuShape& gpu, const std::string& text, int* in_shared = nullptr) {
  std::string problem;
  const auto wanted = interpret_text(text, 3, problem);
  if (!wanted) return problem;
  use_test_gpu();
  CudaOptions options;
  options.mode = wanted->options.mode;
  options.gpu = gpu;
  const auto program = compile_for_cuda(wanted->graph, {}, options);
  if (in_shared)
    *in_shared = static_cast<int>(std::ranges::count_if(
        program->list.kernels, [](const GraphKernel& k) { return k.plan && k.plan->kind == "a row a block, in shared memory"; }));
  return difference(*wanted, run_compiled(program->executable, wanted->inputs, wanted->params, wanted->states, wanted->options, false));
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

TEST_CASE("cuda: all loads of a row stand before its first store") {
  // A sum that is stored, too, and a value that only the last stage wants.
  const std::string text = R"(dim rows = 9, cols = 768
input x: bf16[rows cols]
input y: bf16[rows cols]
input z: bf16[rows cols]
output h: bf16[rows cols] = x + y
w = cast(h, f32)
m = mean(w, cols)
v = mean((w - m)^2, cols)
output n: bf16[rows cols] = cast((w - m) * rsqrt(v + 1e-5) + cast(z, f32), bf16)
)";
  const OnlyKernel kernel = only_kernel(text);
  CHECK(std::get<ThreadedLoops>(kernel.plan.how).threads.ahead.size() == 1);
  const std::string load = "= *reinterpret_cast<const Vec<bf16, 8>*>(b";
  CHECK(count(kernel.body, load) == 3);
  CHECK(kernel.body.rfind(load) < kernel.body.find("*reinterpret_cast<Vec<bf16, 8>*>(b"));
  CHECK(kernel.body.rfind(load) < kernel.body.find("__shfl"));
  CHECK(cuda_disagreement(text, 3) == "");
}

TEST_CASE("cuda: what is loaded ahead leaves registers for what is kept") {
  const auto ahead_of = [](int64_t cols) {
    const std::string text = fmt::format(R"(dim rows = 17, cols = {}
input x: f32[rows cols]
input z: f32[rows cols]
w = x - mean(x, cols)
output n = w * rsqrt(mean(w^2, cols) + 1e-5) + z
)",
                                         cols);
    CHECK(disagreement_on(kOneProcessor, text) == "");
    return std::get<ThreadedLoops>(only_kernel(text, kOneProcessor).plan.how).threads.ahead.size();
  };
  CHECK(ahead_of(1024) == 1);      // a warp: 32 words of each
  CHECK(ahead_of(512 * 16) == 1);  // 512 threads: 16
  CHECK(ahead_of(512 * 20) == 0);  // 20: two blocks of more would not fit
}

TEST_CASE("cuda: rows that are too long for registers are read once and kept in shared memory") {
  // Whole packs, the last step of some threads alone; rows that start anywhere in a pack; four and two bytes an element.
  for (const auto& [cols, dtype] : {std::pair<int64_t, const char*>{24592, "f32"}, {24593, "f32"}, {50304, "bf16"}, {50257, "bf16"}}) {
    const std::string text = long_norm_of(cols, dtype);
    CAPTURE(text);
    const OnlyKernel kernel = only_kernel(text, kOneProcessor);
    CHECK(kernel.kind == "a row a block, in shared memory");
    const int64_t bytes = cols * bytes_of(*parse_dtype(dtype));
    CHECK(kernel.plan.shared_bytes >= bytes);
    CHECK(kernel.plan.shared_bytes <= bytes + 32);
    CHECK(kernel.plan.threads() == 1024);
    CHECK(count(kernel.body, "*>(b0 + (") == 1);
    CHECK(disagreement_on(kOneProcessor, text) == "");
  }
}

TEST_CASE("cuda: two tensors' rows lie side by side in shared memory") {
  const std::string text = R"(dim rows = 17, cols = 12297
input x: bf16[rows cols]
input y: f32[rows cols]
input z: bf16[rows cols]
h = cast(x, f32) + y * cast(z, f32)
w = h - mean(h, cols)
output v = w * rsqrt(mean(w^2, cols) + 1e-5)
)";
  int in_shared = 0;
  CHECK(disagreement_on(kOneProcessor, text, &in_shared) == "");
  CHECK(in_shared == 1);
  // Packs of eight f32 are wider than what lies aligned there.
  const std::string body = only_kernel(text, kOneProcessor).body;
  CHECK(body.find("row0[i] = ") != std::string::npos);
  CHECK(count(body, "* row") == 2);
}

TEST_CASE("cuda: a classifier of many classes reads its logits once") {
  // Logits that nobody else wants give their memory to their gradient.
  for (const char* logits : {"output logits", "logits"})
    for (const int64_t classes : {24592, 25001}) {
      const std::string text = fmt::format(R"(dim batch = 17, wide = 3, classes = {}
input x: f32[batch wide]
input label: i32[batch]
param w: [wide classes] ~ normal(std = 0.3)
{} = einsum(x, w, "batch wide, wide classes -> batch classes")
loss = mean(cross_entropy(logits, label, classes))
minimize loss using sgd(lr = 0.5)
)",
                                           classes, logits);
      CAPTURE(text);
      int in_shared = 0;
      CHECK(disagreement_on(kOneProcessor, text, &in_shared) == "");
      CHECK(in_shared == 1);
    }
}

TEST_CASE("cuda: rows of which two do not fit a processor's shared memory come from memory for each stage") {
  const auto stays = [](int64_t cols, std::string_view arch) {
    GpuShape gpu = gpu_shape_of_arch(arch).value();
    gpu.processors = 1;
    return only_kernel(long_norm_of(cols, "f32"), gpu).plan.shared_bytes > 0;
  };
  CHECK(stays(28 << 10, "sm_90"));
  CHECK(!stays(29 << 10, "sm_90"));
  CHECK(stays(20 << 10, "sm_80"));
  CHECK(!stays(21 << 10, "sm_80"));
  CHECK(!stays(24 << 10, "sm_89"));
  // Registers hold shorter ones.
  CHECK(!stays(8 << 10, "sm_90"));
}

TEST_CASE("cuda: blocks of long rows have the threads that two of them may have") {
  const auto threads = [](int64_t cols, std::string_view arch) {
    GpuShape gpu = gpu_shape_of_arch(arch).value();
    gpu.processors = 1;
    return only_kernel(long_norm_of(cols, "bf16"), gpu).plan.threads();
  };
  CHECK(threads(50304, "sm_90") == 1024);
  CHECK(threads(33000, "sm_80") == 1024);
  CHECK(threads(33000, "sm_89") == 512);  // holds 1536
}
