// SPDX-License-Identifier: Apache-2.0
// Generated kernels under AddressSanitizer and UBSan: accesses beside memory, and vectors that are not aligned.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator.h"
#include "tests/support/kernel_programs.h"
#include "tests/unit/cuda/saxpy.h"

namespace {

const bool sanitized = (setenv("EINC_EMULATED_GPU", EINC_SANITIZED_GPU, 1), true);

}  // namespace

extern "C" const char* __asan_default_options() { return "detect_leaks=0:detect_stack_use_after_return=0:use_sigaltstack=0"; }

namespace einc {
namespace {

// Whether a sanitizer ends a process that runs the kernel over 64 floats, by 64 threads.
bool is_stopped(const std::string& body) {
  const std::string text =
      "extern \"C\" __global__ void bad(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {\n" + body +
      "\n}";
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    OnGpu gpu(one_kernel("bad", text, {"x"}, 64, {{1, 1, 1}, {64, 1, 1}, 256}));
    gpu.executor.set(0, f32_array(std::vector<float>(64, 1)));
    gpu.executor.run(1, 1);
    gpu.executor.wait();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

TEST_CASE("generated kernels stay inside their memory, aligned and defined") {
  for (const char* text : kKernelPrograms) {
    CAPTURE(text);
    for (const unsigned order : {0u, 1u}) {
      emulator::set_order(order);
      CHECK(cuda_disagreement(text, 1) == "");
    }
  }
  emulator::set_order(0);
}

TEST_CASE("accesses outside are stopped") {
  CHECK_FALSE(is_stopped("y[threadIdx.x] = x[63 - threadIdx.x];"));
  CHECK(is_stopped("y[threadIdx.x] = x[threadIdx.x - 8192];"));  // before all memory
  CHECK(is_stopped(
      "__shared__ f32 part[64];\npart[threadIdx.x + 1] = 1;\n__syncthreads();\ny[0] = part[5];"));  // behind static shared memory
  CHECK(is_stopped("EINC_SHARED(m);\nreinterpret_cast<f32*>(m)[threadIdx.x + 64] = 1;"));           // behind the dynamic
  CHECK(is_stopped("store_vec(y + 1, load_vec<4>(x));"));                                           // not aligned
  CHECK(is_stopped("y[0] = 1 << (threadIdx.x + 1);"));                                              // undefined
  CHECK(is_stopped("i32 near = 2147483600;\ny[0] = near + static_cast<i32>(threadIdx.x);"));
}

}  // namespace einc
