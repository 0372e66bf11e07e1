// SPDX-License-Identifier: Apache-2.0
// Several GPUs in one process beside a caller that uses them too, and what a GPU's driver and NVRTC take of each other.
#include <doctest/doctest.h>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/mirror.h"
#include "tests/unit/cuda/trained_program.h"

namespace einc {
namespace {

void train(SessionRep& session) {
  session.initialize(1);
  const float x[] = {1, 2, 3, 4}, t[] = {0, 2, 0, 5};
  const int32_t ids[] = {0, 1, 2, 3};
  session.set(kX, x), session.set(kT, t), session.set(kIds, ids);
  session.step();
}

cuda::Context current() {
  cuda::Context context = nullptr;
  cuda::driver().cuCtxGetCurrent(&context);
  return context;
}

struct TwoGpus {
  TwoGpus() { emulator::set_devices(2); }
  ~TwoGpus() { emulator::set_devices(1); }
};

}  // namespace

TEST_CASE("a thread has the context afterwards that it had before, whatever was asked for") {
  const TwoGpus two;
  trained_program();
  const cuda::Context others = cuda::Gpu::numbered(1).context();
  for (const cuda::Context context : {others, cuda::Context{}}) {
    cuda::driver().cuCtxSetCurrent(context);
    {
      SessionRep session(trained_program(), 1);
      CHECK(current() == context);
      train(session);
      CHECK(current() == context);
      session.memory(kW);
      session.runner().output(0);
      session.numerics(Part::training);
      CHECK(current() == context);
    }
    CHECK(current() == context);
    cuda::Gpu::get().free_bytes();
    CHECK(current() == context);
    OnGpu gpu(one_kernel("saxpy", kSaxpy, {"x", "z"}, 100, {{2, 1, 1}, {64, 1, 1}, 0}));
    gpu.executor.run(1, 2);
    CHECK(current() == context);
  }
  cuda::driver().cuCtxSetCurrent(nullptr);
}

TEST_CASE("each session has its GPU") {
  const TwoGpus two;
  SessionRep first(trained_program(), 1), second(trained_program(), 1, 1);
  train(first);
  const auto on_first = emulator::kernels_on(0), on_second = emulator::kernels_on(1);
  train(second);
  CHECK(emulator::kernels_on(0) == on_first);
  CHECK(emulator::kernels_on(1) > on_second);
  CHECK(std::memcmp(first.memory(kW), second.memory(kW), 16) == 0);
  first.step(), second.step();  // in turn, on one thread
  CHECK(std::memcmp(first.memory(kW), second.memory(kW), 16) == 0);
  CHECK_THROWS_WITH_AS(second.share(kW, first, kW), "a param or state that a session on GPU 0 holds is bound on GPU 1 too", RuntimeFailure);
  CHECK_THROWS_WITH_AS(SessionRep(trained_program(), 1, 2), "there is no GPU 2: there are 2, numbered from 0", RuntimeFailure);
}

TEST_CASE("libraries are of a CUDA that the driver takes") {
  CHECK(cuda::usable_cuda_versions(13000) == std::vector{13, 12});
  CHECK(cuda::usable_cuda_versions(12080) == std::vector{12});
  CHECK(cuda::usable_cuda_versions(14010) == std::vector{13, 12});
  CHECK(cuda::usable_cuda_versions(0) == std::vector{13, 12});  // none here: code for other machines
  trained_program();
  CHECK(emulator::calls("cuDriverGetVersion") > 0);
}

TEST_CASE("a GPU newer than NVRTC gets PTX of the newest arch that NVRTC knows") {
  CHECK(cuda::code_for("sm_90") == "sm_90");
  CHECK(cuda::code_for("sm_103") == "compute_100");
  const CudaExecutable executable = one_kernel("saxpy", kSaxpy, {"x", "z"}, 100, {{2, 1, 1}, {64, 1, 1}, 0});
  emulator::set_newest_arch(86);
  const auto made = emulator::calls("nvrtcGetPTX");
  FileCache nothing("");
  const CudaKernels kernels(executable, nothing, 1);
  emulator::set_newest_arch(120);
  CHECK(emulator::calls("nvrtcGetPTX") == made + 1);
  CudaExecutor executor(executable, kernels);
  executor.set(0, f32_array(std::vector<float>(100, 3)));
  executor.set(1, f32_array(std::vector<float>(100, 1)));
  executor.run(1, 1);
  CHECK(floats_of(executor.get(2)) == std::vector<float>(100, 7));
}

TEST_CASE("memory of the caller's is read before a copy returns: pinned memory is copied while the host goes on") {
  const cuda::GpuScope scope(cuda::Gpu::get());
  const cuda::HostMemory pinned = cuda::allocate_host(4);
  auto* number = static_cast<float*>(pinned.get());
  *number = 1;
  const auto mirror = CudaMirror::of(static_cast<std::byte*>(pinned.get()), 4);
  const cuda::OwnedStream stream = cuda::make_stream();
  mirror->update_gpu(stream.get());
  *number = 2;
  mirror->gpu_wrote();
  mirror->update_host(stream.get());
  CHECK(*number == 1);
}

}  // namespace einc
