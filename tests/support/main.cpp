// SPDX-License-Identifier: Apache-2.0
// The one translation unit that instantiates doctest; every test executable links it. With EINC_TEST_GPU=real a machine without a GPU
// skips the tests (status 77) and says so. Programs compiled by a test, in this process or one that it starts, are verified.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "runtime/base/failure.h"
#include "runtime/cuda/device.h"
#include "tests/support/test_gpu.h"

namespace {

bool lacks_gpu() {
  try {
    const einc::cuda::Gpu& gpu = einc::cuda::Gpu::get();
    fmt::print("On {} ({})\n", gpu.name(), gpu.shape().arch());
    return false;
  } catch (const einc::RuntimeFailure& failure) {
    fmt::print("Skipped, for want of a GPU: {}\n", failure.what());
    return true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  setenv("EINC_DEBUG", "1", 0);
  if (einc::tests_real_gpu() && lacks_gpu()) return kSkipped;
  return doctest::Context(argc, argv).run();
}
