// Predicted bytes against the bytes an executor asks the system for, read off mmap itself.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/precision/assign.h"
#include "compiler/report/report.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

namespace {
size_t mapped_bytes = 0;  // since last set to 0
}

// The program's mmap: every mapping is made here, those of malloc's large blocks excepted.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  mapped_bytes += length;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

using namespace einc;

TEST_CASE("memory: an executor maps the peak that the report states") {
  const std::pair<const char*, Bindings> models[] = {
      {"two_layer.ein", {{"batch", 64}, {"width", 40}, {"out", 24}}},
      {"mlp.ein", {{"batch", 32}, {"features", 50}, {"hidden", 40}, {"classes", 10}}},
      {"gpt2.ein", {{"batch", 2}, {"seq", 32}, {"vocab", 100}, {"layers", 3}, {"heads", 2}, {"head", 16}}},
  };
  for (const auto& [name, dims] : models) {
    CAPTURE(name);
    const Graph graph = assign_precision(simplify(expand(compile_example(name, dims), Roots::training), Roots::training));
    const Report report =
        build_report(graph, {.given = dims, .detail = Detail::totals, .device = {}, .training = {}, .processor = native_processor()});
    CpuOptions options;
    options.cache.clear();
    const CpuProgram program(graph, dims, options);
    mapped_bytes = 0;
    const Executor executor(program.program(), program.functions(), 1);
    CHECK(Rational(static_cast<int64_t>(mapped_bytes)) == report.memory.peak_training.value);
  }
}
