// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/gpu_shape.h"

#include <doctest/doctest.h>

using namespace einc;

// By NVIDIA's sheets and the CUDA C++ Programming Guide.
TEST_CASE("shapes of GPUs") {
  const GpuShape h100;
  CHECK(gpu_shape_of_arch("sm_90") == h100);
  CHECK(gpu_shape_of_arch("sm_90a") == h100);
  CHECK(h100.arch() == "sm_90");
  CHECK(h100.threads(4) == 65536);  // of 67584
  CHECK(gpu_shape(8, 9, 128)->block_shared_bytes == 101376);
  CHECK(gpu_shape(8, 9, 128)->processors == 128);
  CHECK(gpu_shape_of_arch("sm_100")->processors == 148);
  for (const char* unknown : {"", "sm_75", "sm_99", "sm_9", "90", "sm_900"}) CHECK_MESSAGE(!gpu_shape_of_arch(unknown), unknown);
  CHECK(!gpu_shape(7, 0, 80));
}

TEST_CASE("shared memory of blocks that a processor holds together") {
  const GpuShape a100 = *gpu_shape(8, 0, 108);
  CHECK(a100.shared_bytes_of(1) == 163 << 10);
  CHECK(a100.shared_bytes_of(2) == 81 << 10);
  CHECK(gpu_shape(8, 6, 84)->shared_bytes_of(2) == 49 << 10);
}
