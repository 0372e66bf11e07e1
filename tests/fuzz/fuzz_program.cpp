// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: see program_properties.h for what is checked.
#include <cstdint>

#include "runtime/base/big_stack.h"
#include "tests/fuzz/program_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  einc::run_on_big_stack([&] { einc::fuzz::check_program(text); });
  return 0;
}
