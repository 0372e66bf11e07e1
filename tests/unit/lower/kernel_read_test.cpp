// SPDX-License-Identifier: Apache-2.0
// Kernels read back: those of the examples and the zoo after each pass of both targets, and texts that are none.
#include "compiler/lower/kernel_read.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/fuse/form_graph.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/kernel_text.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

// The kernels of a step after each pass, different ones once, by their text.
void add_kernels(const Graph& graph, const Bindings& dims, const ScheduleTarget& target, std::map<std::string, Kernel>& kernels) {
  Scheduling options;
  options.observe = [&](std::string_view, const Forming& forming, double) {
    for (const GraphKernel& k : forming.list.kernels) kernels.emplace(to_string(*k.kernel), *k.kernel);
  };
  form_graph(graph, dims, RunMode::training, options, target);
}

std::map<std::string, Kernel> many_kernels() {
  std::map<std::string, Kernel> kernels;
  const auto add = [&](const std::string& file, Policy precision) {
    PipelineOptions options;
    options.precision = precision;
    const Compilation c = compile_file(std::string(EINC_SOURCE_DIR "/") + file, options);
    REQUIRE(c.graph.has_value());
    add_kernels(*c.graph, {}, processor_target(), kernels);
    add_kernels(*c.graph, {}, {gpu_passes(), cuda_target({}, {})}, kernels);
  };
  for (const char* name : {"shakespeare_char", "mlp", "cnn", "lora"}) add(std::string("examples/") + name + ".ein", Policy::inherit);
  for (const std::string& name : zoo_models()) add("tests/zoo/models/" + name + ".ein", name == "llama" ? Policy::bf16 : Policy::inherit);
  const Compilation c = compile_text("running", "input x: f32[n=40]\noutput y = cumsum(x, n)\n", {});
  REQUIRE(c.graph.has_value());
  add_kernels(*c.graph, {}, processor_target(), kernels);
  return kernels;
}

std::string error_of(std::string_view text) {
  const auto read = read_kernel(text);
  const auto* error = std::get_if<KernelReadError>(&read);
  return error ? std::to_string(error->line) + ": " + error->message : "";
}

}  // namespace

TEST_CASE("kernels read back") {
  const std::map<std::string, Kernel> kernels = many_kernels();
  CHECK(kernels.size() > 500);
  std::set<ScalarKind> kinds;
  int attention = 0, softmax = 0, contractions = 0, padded = 0, parts = 0;
  for (const auto& [text, kernel] : kernels) {
    CAPTURE(text);
    const Kernel read = kernel_of(text);
    CHECK(to_string(read) == text);
    REQUIRE(read.values.size() == kernel.values.size());
    for (size_t i = 0; i < read.values.size(); ++i)
      CHECK((read.values[i] == kernel.values[i] || (std::isnan(read.values[i].real) && std::isnan(kernel.values[i].real))));
    CHECK(read.stages == kernel.stages);
    CHECK(read.reductions == kernel.reductions);
    CHECK(read.buffers == kernel.buffers);
    for (const Scalar& v : kernel.values) kinds.insert(v.kind);
    if (kernel.attention) CHECK(read.attention->softmax == kernel.attention->softmax);
    if (kernel.contraction) CHECK(read.contraction->padded == kernel.contraction->padded);
    padded += kernel.contraction && !kernel.contraction->padded.empty();
    softmax += kernel.attention && kernel.attention->softmax;
    attention += kernel.attention.has_value(), contractions += kernel.contraction.has_value(), parts += kernel.part.has_value();
  }
  for (int k = 0; k <= static_cast<int>(ScalarKind::running); ++k) CHECK_MESSAGE(kinds.contains(static_cast<ScalarKind>(k)), k);
  CHECK(attention > 5);
  CHECK(softmax > 5);
  CHECK(contractions > 50);
  CHECK(padded > 1);
  CHECK(parts > 3);
}

TEST_CASE("kernels that are none") {
  const std::string begin = "axes a0=4\nouter a0\nb0: read f32[4]\nb1: write f32[4]\nv0: f32 = b0[a0]\n";
  CHECK(error_of(begin + "stage \n  b1[a0] = v0\n") == "");
  const std::pair<const char*, const char*> wrong[] = {
      {"stage \n  b1[a0] = v1\n", "7: 1 is not from 0 to 0"},
      {"stage \n  b1[a1] = v0\n", "7: 1 is not from 0 to 0"},
      {"  b1[a0] = v0\n", "6: a store outside stages"},
      {"stage \n  b1[a0] = v0 v0\n", "7: something is left at the end of the line"},
      {"v2: f32 = b0[a0]\n", "6: expected v1"},
      {"b3: read f32[4]\n", "6: expected b2"},
      {"v1: f33 = b0[a0]\n", "6: 'f33' is no dtype"},
      {"v1: f32 = exp(v0, v0)\n", "6: v1 has 2 operands"},
      {"v1: f32 = expo(v0)\n", "6: expected a number at column 11"},
      {"scores over a0\n", "6: a step of attention outside it"},
      {"softmax scale 0x1p+0\n", "6: softmax outside attention"},
      {"padded beyond 4: 1*(row div 1 mod 4) + 1*(depth div 1 mod 3) + -1\n", "6: padding outside a contraction"},
      {"nonsense\n", "6: 'nonsense' is no line of a kernel"},
      {"v1: f32 = b7[a0]\nstage \n  b1[a0] = v1\n", "8: v1 reads buffer b7"},
  };
  for (const auto& [rest, message] : wrong) CHECK_MESSAGE(error_of(begin + rest) == message, rest);
}

// A reader that trusts a number would read or write beside its kernel.
TEST_CASE("kernels: texts with faults are read or refused") {
  const std::string text = to_string(kernel_of(R"(
axes a0=8 a1=16
outer a0
b0: read f32[128]
b1: write f32[8]
v0: f32 = b0[16*a0 + a1] if 0 <= a1 < 12
v1: f32 = exp(v0)
v2: f32 = r0
stage a1
  r0: f32 = sum v1
stage
  b1[a0] = v2
)"));
  std::mt19937 draw(1);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string faulty = text;
    for (int k = 0; k < 3; ++k) {
      const size_t at = draw() % faulty.size();
      if (draw() % 2)
        faulty[at] = "0123456789abrv[]*+ \n-"[draw() % 21];
      else
        faulty.erase(at, 1 + draw() % 4);
    }
    refused += !error_of(faulty).empty();
  }
  CHECK(refused > 10000);
}
