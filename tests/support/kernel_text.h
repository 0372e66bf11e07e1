// SPDX-License-Identifier: Apache-2.0
// Kernels written as text in a test.
#pragma once
#include <doctest/doctest.h>

#include "compiler/lower/kernel_read.h"

namespace einc {

inline Kernel kernel_of(std::string_view text) {
  auto read = read_kernel(text);
  if (const auto* error = std::get_if<KernelReadError>(&read)) FAIL("line " << error->line << ": " << error->message);
  return std::get<Kernel>(std::move(read));
}

// 8 x 32 times 32 x 16, as a sum of products that find_contraction takes for one.
inline constexpr std::string_view kProductText = R"(
axes a0=8 a1=16 a2=32
outer a0 a1
b0: read f32[256]
b1: read f32[512]
b2: write f32[128]
v0: f32 = b0[32*a0 + a2]
v1: f32 = b1[16*a2 + a1]
v2: f32 = mul(v0, v1)
v3: f32 = r0
stage a2
  r0: f32 = sum v2
stage
  b2[16*a0 + a1] = v3
)";

}  // namespace einc
