// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: see properties.h for what is checked.
#include <cstdint>

#include "tests/fuzz/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  einc::fuzz::check_pattern_text(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
