// SPDX-License-Identifier: Apache-2.0
// The runtime's own look at the processor against LLVM's.
#include <doctest/doctest.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include "compiler/codegen/llvm/cpu_target.h"
#include "runtime/cpu/cpu_features.h"

using namespace einc;

TEST_CASE("the processor's features are those that LLVM finds") {
  const llvm::StringMap<bool> found = llvm::sys::getHostCPUFeatures();
  int known = 0;
  for (const std::string_view name : cpu_feature_names()) {
    const auto entry = found.find(llvm::StringRef(name.data(), name.size()));
    if (entry == found.end()) continue;
    ++known;
    CHECK_MESSAGE(has_cpu_feature(name) == entry->second, name);
  }
  CHECK(known == static_cast<int>(cpu_feature_names().size()));
  CHECK(!has_cpu_feature("no-such-feature"));
}

TEST_CASE("code for this processor runs on this processor, and a lesser one asks for less") {
  CHECK(missing_cpu_features(CpuTarget::host().required_features()).empty());
  const auto old = CpuTarget::named("x86-64-v3");
  REQUIRE(old.has_value());
  CHECK(old->processor().vector_bits == 256);
  CHECK((' ' + old->required_features() + ' ').find(" avx2 ") != std::string::npos);
  CHECK(old->required_features().find("avx512") == std::string::npos);
  CHECK(CpuTarget::named("x86-64-v4")->processor().vector_bits == 512);
  CHECK(!CpuTarget::named("x86-64-v2").has_value());
  for (const char* cpu : {"cooperlake", "znver4"})
    CHECK((CpuTarget::named(cpu)->processor().bf16_pairs && !CpuTarget::named(cpu)->processor().matrix_tiles));
  for (const char* cpu : {"sapphirerapids", "graniterapids"})
    CHECK((CpuTarget::named(cpu)->processor().matrix_tiles && !CpuTarget::named(cpu)->processor().bf16_pairs));
  CHECK(!CpuTarget::named("x86-64-v4")->processor().bf16_pairs);
  CHECK(!CpuTarget::named("no-such-processor").has_value());
}
