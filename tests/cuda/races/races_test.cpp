// SPDX-License-Identifier: Apache-2.0
// Generated kernels under ThreadSanitizer: threads of a block that touch one element without a barrier between are found, whatever their
// values come to.
#include <doctest/doctest.h>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "tests/support/kernel_programs.h"
#include "tests/support/sample.h"

namespace {

int reports = 0;
const bool sanitized = (setenv("EINC_EMULATED_GPU", EINC_SANITIZED_GPU, 1), true);

}  // namespace

// The sanitizer's own hooks.
extern "C" void __tsan_on_report(void*) {
  ++reports;
  emulator::stop("a race");
}
extern "C" const char* __tsan_default_options() {
  return "exitcode=0:symbolize=0:print_summary=0:log_path=/dev/null:suppress_equal_stacks=0:suppress_equal_addresses=0";
}

namespace einc {
namespace {

CudaExecutable compiled(const char* text) {
  std::string problem;
  const auto wanted = interpret_text(text, 1, problem);
  REQUIRE(problem.empty());
  CudaOptions options;
  options.library.products = INT64_MAX;
  return compile_for_cuda(wanted->graph, {}, options)->executable;
}

// As far as the first launch that has one, of a run of a program; what values there are does not matter.
int races_of(const CudaExecutable& executable) {
  use_test_gpu();
  const CudaKernels kernels(executable, test_cubins(), 2);
  CudaExecutor machine(executable, kernels);
  for (uint32_t b = 0; b < executable.program.buffers.size(); ++b) {
    const ExecutableBuffer& buffer = executable.program.buffers[b];
    machine.set(b, {buffer.dtype, buffer.shape, std::vector<std::byte>(static_cast<size_t>(buffer.bytes))});
  }
  const int before = reports;
  try {
    machine.run_while(1, 1, [](size_t) { return true; });
  } catch (const RuntimeFailure& e) {
    MESSAGE(e.what());
    emulator::recover();
  }
  return reports - before;
}

constexpr std::string_view kBarrier = "__syncthreads();";  // those of a warp stand behind shuffles, which are barriers themselves

struct Barrier {
  size_t text, at;
};

std::vector<Barrier> barriers_of(const CudaExecutable& executable) {
  std::vector<Barrier> barriers;
  for (size_t t = 0; t < executable.texts.size(); ++t) {
    const std::string& text = executable.texts[t];
    for (size_t at = text.find(kBarrier); at != std::string::npos; at = text.find(kBarrier, at + 1)) barriers.push_back({t, at});
  }
  return barriers;
}

}  // namespace

TEST_CASE("generated kernels have no races, and their values agree") {
  for (const char* text : sampled(kKernelPrograms, 2)) {
    CAPTURE(std::string(text));
    for (const unsigned order : {0u, 1u, 3u}) {
      emulator::set_order(order);
      CHECK(cuda_disagreement(text, 1) == "");
    }
    CHECK(races_of(compiled(text)) == 0);
  }
  emulator::set_order(0);
  CHECK(reports == 0);
}

TEST_CASE("a barrier that is left out is found") {
  size_t planted = 0, found = 0;
  for (const char* text : kKernelPrograms) {
    const CudaExecutable executable = compiled(text);
    for (const Barrier& barrier : barriers_of(executable)) {
      CudaExecutable without = executable;
      without.texts[barrier.text].erase(barrier.at, kBarrier.size());
      ++planted;
      if (races_of(without) > 0) ++found;
    }
  }
  // Some stand between stages of which no thread reads what another made, or before another barrier.
  constexpr size_t kIdle = 5;
  CHECK(planted >= 10);
  CHECK(found + kIdle >= planted);
}

}  // namespace einc
