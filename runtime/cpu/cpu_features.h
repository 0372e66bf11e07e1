// SPDX-License-Identifier: Apache-2.0
// What this processor can do, by the names that LLVM has for it: asked of the processor itself, so that a program compiled
// ahead of time can tell whether its code may run.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace einc {

// Names of all features that generated code may make use of and that a processor may lack: "avx2", "avx512bf16", ...
std::span<const std::string_view> cpu_feature_names();

// Whether the processor has the feature and the system lets this process use its registers; false for a name not in the list.
bool has_cpu_feature(std::string_view name);

// Those of a list ("avx2 fma") that are lacking, in the same form; empty when all are there.
std::string missing_cpu_features(std::string_view wanted);

}  // namespace einc
