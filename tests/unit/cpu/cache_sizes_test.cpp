// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cache_sizes.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>
#include <numeric>

namespace einc::test {
namespace {

namespace fs = std::filesystem;

// Processors with an L1 and L2 of their own; `sharing` of them share an L3 of 32 MiB.
class Sysfs {
 public:
  Sysfs(int processors, int sharing) : processors_(static_cast<size_t>(processors)) {
    std::string name = (fs::temp_directory_path() / "einc-sysfs-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    std::iota(processors_.begin(), processors_.end(), 0);
    for (const int p : processors_) {
      const std::string own = std::to_string(p);
      const int first = sharing > 0 ? p / sharing * sharing : 0;
      add(p, 0, "1", "Data", "32K", own);
      add(p, 1, "1", "Instruction", "64K", own);
      add(p, 2, "2", "Unified", "1024K", own);
      if (sharing > 0) add(p, 3, "3", "Unified", "32768K", std::to_string(first) + "-" + std::to_string(first + sharing - 1));
    }
  }
  ~Sysfs() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  int64_t bytes_of(size_t processors) const { return listed_last_cache_bytes(folder, std::span(processors_).first(processors)); }
  fs::path folder;

 private:
  void add(int processor, int index, const char* level, const char* type, const char* size, const std::string& sharers) {
    const fs::path cache = folder / ("cpu" + std::to_string(processor)) / "cache" / ("index" + std::to_string(index));
    fs::create_directories(cache);
    for (const auto& [file, text] :
         {std::pair{"level", std::string(level)}, {"type", std::string(type)}, {"size", std::string(size)}, {"shared_cpu_list", sharers}})
      std::ofstream(cache / file) << text << '\n';
  }

  std::vector<int> processors_;
};

}  // namespace

TEST_CASE("the last cache counts once for the processors that share it, and each that a processor reaches") {
  const Sysfs shared(8, 4);
  CHECK(shared.bytes_of(1) == 32 << 20);
  CHECK(shared.bytes_of(4) == 32 << 20);
  CHECK(shared.bytes_of(5) == 64 << 20);  // the fifth has another L3
  const Sysfs without(3, 0);
  CHECK(without.bytes_of(3) == 3 << 20);  // the second level is the last, and not shared
  CHECK(listed_last_cache_bytes(shared.folder / "nowhere", std::vector{0, 1}) == 0);
}

TEST_CASE("this process may run on some processor, and the file system's list is taken where there is one") {
  const std::vector<int> allowed = allowed_processors();
  REQUIRE(!allowed.empty());
  const int64_t listed = listed_last_cache_bytes("/sys/devices/system/cpu", allowed);
  if (listed > 0) CHECK(last_cache_bytes() == listed);
}

}  // namespace einc::test
