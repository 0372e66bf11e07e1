// SPDX-License-Identifier: Apache-2.0
// Kernels shared by groups alike are those that each group would get by itself.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/fuse/kernel_builder.h"
#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/divide_reductions.h"
#include "compiler/lower/flatten_sums.h"
#include "compiler/lower/keep_rows.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/debug.h"
#include "tests/support/least_memory.h"

using namespace einc;

namespace {

struct KernelCounts {
  size_t kernels, different;
};

KernelCounts check_each(const char* example, const Bindings& dims) {
  PipelineOptions options;
  options.dims = dims;
  const Compilation c = compile_file(std::string(EINC_SOURCE_DIR "/examples/") + example, options);
  REQUIRE(c.graph.has_value());
  const FormedGraph formed = form_graph(*c.graph, dims, RunMode::training,
                                        Scheduling::without_attention.and_without("store_concatenated").and_without("leave_out_padding"));
  std::set<std::string> different;
  const std::vector<GraphKernel>& list = formed.list.kernels;
  for (size_t i = 0; i < list.size();) {
    BuildResult alone = build_kernel(formed.bound, list[i].group, formed.list.in_memory);
    REQUIRE(alone.built.has_value());
    alone.built->kernel.streams = list[i].kernel->streams;
    alone.built->kernel.sites = list[i].kernel->sites;
    collapse_axes(alone.built->kernel);
    flatten_sums(alone.built->kernel);
    for (DividedKernel& divided : divide_reductions(alone.built->kernel)) {
      REQUIRE(i < list.size());
      const GraphKernel& k = list[i++];
      different.insert(to_string(*k.kernel));
      CHECK(alone.built->streams == k.streams);
      CHECK(alone.built->sites == k.sites);
      collapse_axes(divided.kernel);
      find_contraction(divided.kernel);
      keep_rows(divided.kernel);
      CHECK(to_string(divided.kernel) == to_string(*k.kernel));
      REQUIRE(k.buffers.size() == divided.buffers.size());
      for (size_t b = 0; b < k.buffers.size(); ++b)
        CHECK(k.buffers[b] == (divided.buffers[b] == DividedKernel::kParts ? NodeId() : alone.built->buffers[divided.buffers[b]]));
    }
  }
  return {formed.list.kernels.size(), different.size()};
}

// While it lives each kernel that a group shares is built for it again.
class BuiltAgain {
 public:
  BuiltAgain() { setenv("EINC_DEBUG", "2", 1); }
  ~BuiltAgain() { setenv("EINC_DEBUG", before_.c_str(), 1); }

 private:
  std::string before_ = std::to_string(debug_level());
};

}  // namespace

TEST_CASE("a shared kernel is the one that its group alone would get") {
  check_each("attention.ein", {});
  check_each("cnn.ein", {});
  check_each("lora.ein", {});
  check_each("llama.ein", {{"layers", 3}});
  check_each("nanogpt.ein", {{"layers", 3}});
}

// But a few: what is looked at of all params is put together by kernels whose numbers of operands depend on how many there are.
TEST_CASE("more layers make no more different kernels") {
  const KernelCounts few = check_each("gpt2.ein", {{"layers", 9}}), many = check_each("gpt2.ein", {{"layers", 12}});
  CHECK(many.kernels > few.kernels + 100);
  CHECK(many.different <= few.different + 4);
}

TEST_CASE("rows that are padded take no kernel of rows that are not") {
  const BuiltAgain check;
  const ScheduleTarget gpu{gpu_passes(), cuda_target({}, {1, 1, 1})};
  const Compilation c = compile_file(EINC_SOURCE_DIR "/tests/regress/padded_rows.ein", {});
  REQUIRE(c.graph.has_value());
  form_graph(*c.graph, {}, RunMode::training, Scheduling::all, gpu);
}

TEST_CASE("choices under a limit of memory share the kernels that each alone would get") {
  const BuiltAgain check;
  const Compilation c = compile_text("deep.ein", R"(
input x: [rows=16 wide=8]
for i in 3 {
  param w: [wide hidden=24] ~ normal(std = 0.3)
  param back: [hidden wide] ~ normal(std = 0.3)
  x = x + einsum(gelu(einsum(x, w, "rows wide, wide hidden -> rows hidden")), back, "rows hidden, hidden wide -> rows wide")
}
loss = mean(x^2)
minimize loss using sgd(lr = 0.1)
)",
                                     {});
  REQUIRE(c.graph.has_value());
  for (const ScheduleTarget& target : {processor_target(), ScheduleTarget{gpu_passes(), cuda_target({}, {1, 1, 1})}}) {
    const auto within = [&](int64_t bytes) {
      Scheduling scheduling;
      scheduling.memory_limit = MemoryLimit{bytes};
      return form_graph(*c.graph, {}, RunMode::training, scheduling, target);
    };
    const int64_t least = least_memory([&] { within(1); });
    CHECK(!within(least).recomputation.values.empty());
  }
}
