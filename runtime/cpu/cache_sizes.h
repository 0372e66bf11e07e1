// SPDX-License-Identifier: Apache-2.0
// The size of the last cache, as the kernel's sysfs lists it: by instance. glibc's sysconf gives a socket's caches together on some
// virtual machines (320 MiB on a Zen 4 guest of two cores, which share 32), so it is asked only where there is no list.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace einc {

// Bytes of the caches of the highest level that these processors reach, each cache once. `folder` holds one `cpuN/cache` per processor;
// nothing is known (0) where it lists none.
int64_t listed_last_cache_bytes(const std::filesystem::path& folder, std::span<const int> processors);

// Processors that this process may run on.
std::vector<int> allowed_processors();

// Of the last caches of the allowed processors, as the system says; 0: it does not.
int64_t last_cache_bytes();

}  // namespace einc
