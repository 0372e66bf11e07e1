// SPDX-License-Identifier: Apache-2.0
// libFuzzer targets of the readers of data files, one for each: see data_properties.h for what is checked.
#include <cstdint>

#include "tests/fuzz/data_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  einc::fuzz::EINC_FUZZ_CHECK(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
