// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cache_sizes.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace einc {
namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// `32768K`; sysfs writes kibibytes.
std::optional<int64_t> bytes_in(const std::string& size) {
  char* end = nullptr;
  const int64_t count = std::strtoll(size.c_str(), &end, 10);
  if (end == size.c_str() || count <= 0) return std::nullopt;
  return *end == 'K' ? count << 10 : *end == 'M' ? count << 20 : count;
}

}  // namespace

int64_t listed_last_cache_bytes(const std::filesystem::path& folder, std::span<const int> processors) {
  std::map<int, std::map<std::string, int64_t>> caches;  // by level: those processors that share one, and its bytes
  for (const int processor : processors) {
    const auto of_processor = folder / ("cpu" + std::to_string(processor)) / "cache";
    for (int index = 0; std::filesystem::exists(of_processor / ("index" + std::to_string(index))); ++index) {
      const auto cache = of_processor / ("index" + std::to_string(index));
      const auto bytes = bytes_in(first_word(cache / "size"));
      if (!bytes || first_word(cache / "type") == "Instruction") continue;
      std::string sharers = first_word(cache / "shared_cpu_list");
      if (sharers.empty()) sharers = std::to_string(processor);
      caches[std::atoi(first_word(cache / "level").c_str())][sharers] = *bytes;
    }
  }
  int64_t sum = 0;
  if (!caches.empty())
    for (const auto& [sharers, bytes] : caches.rbegin()->second) sum += bytes;
  return sum;
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  return processors;
}

int64_t last_cache_bytes() {
  if (const int64_t listed = listed_last_cache_bytes("/sys/devices/system/cpu", allowed_processors()); listed > 0) return listed;
  const long third = sysconf(_SC_LEVEL3_CACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::max<long>(0, third > 0 ? third : second);
}

}  // namespace einc
