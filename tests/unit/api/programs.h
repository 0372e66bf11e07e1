// SPDX-License-Identifier: Apache-2.0
// Programs and data that the tests of the library share.
#pragma once
#include <einc/einc.h>

#include <cmath>
#include <vector>

#include "tests/support/test_gpu.h"

namespace einc::test {

#ifdef EINC_WITH_LLVM
inline constexpr Target kTargets[] = {Target::cpu, Target::cuda, Target::reference};
#else
inline constexpr Target kTargets[] = {Target::cuda, Target::reference};
#endif

// A small regression: what it computes can be said in two lines of C++.
inline constexpr const char* kLinear = R"(
dim batch, features = 3
input x: f32[batch features]
input y: f32[batch]
param w: [features] ~ normal(0, 1)
param b: [] ~ zeros
state seen: f32[] ~ zeros
p = einsum(x, w, "batch features, features -> batch") + b
output p
seen <- seen + 1
loss = mean((p - y)^2)
minimize loss using sgd(lr = 0.1)
)";

inline CompileOptions options(Target target, int64_t batch = 4) {
  use_test_gpu();
  CompileOptions result;
  result.dims = {{"batch", batch}};
  result.target = target;
  result.code_cache = "";
  return result;
}

inline std::vector<float> numbers(size_t count, double phase) {
  std::vector<float> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = static_cast<float>(std::sin(phase + static_cast<double>(i)));
  return result;
}

}  // namespace einc::test
