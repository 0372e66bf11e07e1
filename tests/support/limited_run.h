// SPDX-License-Identifier: Apache-2.0
// A program's step in the least memory that it can take beside its step without a limit.
#pragma once
#include <functional>

#include "compiler/fuse/scheduling.h"
#include "tests/support/least_memory.h"
#include "tests/support/run_cpu.h"

namespace einc {

// "" or what is wrong, its kind before a colon: "run" (fails), "bytes" (takes more), "value" (other bits). `bytes_of`: of the step as
// planned; `run`: its results.
inline std::string limited_difference(const Scheduling& as_is, const std::function<int64_t(const Scheduling&)>& bytes_of,
                                      const std::function<CpuRun(const Scheduling&)>& run) {
  const auto within = [&](int64_t bytes) {
    Scheduling options = as_is;
    options.memory_limit = MemoryLimit{bytes};
    return options;
  };
  try {
    const int64_t least = least_memory([&] { bytes_of(within(1)); });
    if (least >= bytes_of(as_is)) return "";
    if (const int64_t bytes = bytes_of(within(least)); bytes > least) return fmt::format("bytes: {} where {} are enough", bytes, least);
    return same_bits(run(within(least)), run(as_is)) ? "" : "value: other bits in less memory";
  } catch (const std::exception& e) {
    return fmt::format("run: {}", e.what());
  }
}

}  // namespace einc
