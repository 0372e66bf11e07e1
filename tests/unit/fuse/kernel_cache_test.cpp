// Kernels shared by groups alike are those that each group would get by itself.
#include <doctest/doctest.h>

#include <set>

#include "compiler/pipeline/pipeline.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"

using namespace einc;

namespace {

struct Formed {
  size_t kernels, different;
};

Formed check_each(const char* example, const Bindings& dims) {
  PipelineOptions options;
  options.dims = dims;
  const Compilation c = compile_file(std::string(EINC_SOURCE_DIR "/examples/") + example, options);
  REQUIRE(c.graph.has_value());
  const FormedGraph formed = form_graph(*c.graph, dims, RunMode::training);
  std::set<const Kernel*> different;
  for (const GraphKernel& k : formed.list.kernels) {
    different.insert(k.kernel.get());
    BuildResult alone = build_kernel(formed.bound, k.group, formed.list.in_memory);
    REQUIRE(alone.built.has_value());
    CHECK(alone.built->buffers == k.buffers);
    CHECK(alone.built->streams == k.streams);
    CHECK(alone.built->sites == k.sites);
    Kernel& kernel = alone.built->kernel;
    kernel.streams = k.kernel->streams;
    kernel.sites = k.kernel->sites;
    collapse_axes(kernel);
    find_contraction(kernel);
    CHECK(to_string(kernel) == to_string(*k.kernel));
  }
  return {formed.list.kernels.size(), different.size()};
}

}  // namespace

TEST_CASE("a shared kernel is the one that its group alone would get") {
  check_each("attention.ein", {});
  check_each("cnn.ein", {});
  check_each("lora.ein", {});
  check_each("llama.ein", {{"layers", 3}});
  check_each("nanogpt.ein", {{"layers", 3}});
}

TEST_CASE("more layers make no more different kernels") {
  const Formed few = check_each("gpt2.ein", {{"layers", 9}}), many = check_each("gpt2.ein", {{"layers", 12}});
  CHECK(many.kernels > few.kernels + 100);
  CHECK(many.different == few.different);
}
