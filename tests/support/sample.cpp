// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sample.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace einc {
namespace {

size_t turn() {
  if (const char* asked = std::getenv("EINC_SAMPLE")) return std::strtoull(asked, nullptr, 10);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<size_t>(std::chrono::duration_cast<std::chrono::hours>(now).count() / 24);
}

}  // namespace

Sample::Sample(size_t every) : every_(std::getenv("EINC_ALL") != nullptr ? 1 : every), first_(turn() % every_) {
  if (every_ > 1)
    fmt::print("one of {} cases, from number {} on: EINC_SAMPLE={} repeats it, EINC_ALL=1 takes all\n", every_, first_, turn());
}

}  // namespace einc
