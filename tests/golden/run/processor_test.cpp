// SPDX-License-Identifier: Apache-2.0
// EINC_CPU: code for a lesser processor than this one.
#include <doctest/doctest.h>

#include "runtime/cpu/cpu_features.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Ran made_for(const std::string& cpu) {
  Surroundings surroundings;
  surroundings.launcher = {"env", "EINC_CPU=" + cpu};
  return run_einc({"examples/two_layer.ein", "--emit=asm"}, surroundings);
}

}  // namespace

TEST_CASE("EINC_CPU names the processor that code is made for") {
  const Ran lesser = made_for("x86-64-v3");
  CHECK(lesser.status == 0);
  CHECK(made_for("host").output == made_for("").output);
  CHECK(has(lesser.output, "%ymm"));
  CHECK(!has(lesser.output, "%zmm"));
  const bool wide = has_cpu_feature("avx512f");
  for (const char* this_one : {"", "host"}) CHECK(has(made_for(this_one).output, "%zmm") == wide);
  const Ran large = made_for("x86-64-v4");
  CHECK(large.status == (wide ? 0 : 4));
  if (!wide) CHECK(has(large.errors, "EINC_CPU=x86-64-v4: this processor lacks avx512f"));
  for (const std::string none : {"x86-64-v2", "foo"}) {
    const Ran refused = made_for(none);
    CHECK(refused.status == 4);
    CHECK(has(refused.errors, "EINC_CPU=" + none + ": no processor of this name with AVX2 and FMA: give x86-64-v3"));
  }
}

}  // namespace einc::test
