// SPDX-License-Identifier: Apache-2.0
// A file of tokens that is larger than memory.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "data.h"
#include "runtime/train/prefetch.h"

using namespace einc;

namespace {

// Memory of this process that no file stands behind, in KiB.
int64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8));
  return -1;
}

}  // namespace

TEST_CASE("batches of a sparse file of 64 GB leave anonymous memory as it is") {
  constexpr uint64_t kBytes = 64'000'000'000;
  const TestFile file("sparse.bin", "");
  std::error_code refused;
  std::filesystem::resize_file(file.path(), kBytes, refused);
  REQUIRE_MESSAGE(!refused, "the file system of ", file.path(), " refuses a sparse file of 64 GB: ", refused.message());
  // Where the last window lies something is to be read.
  constexpr uint64_t kTokens = kBytes / 2, kSeq = 1024, kLast = (kTokens - 1) / kSeq - 1;
  {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<int64_t>(kLast * kSeq * 2)).write("\7", 1);
  }
  const std::vector<TensorInfo> inputs{input_of("tokens", {16, kSeq}), input_of("targets", {16, kSeq})};
  for (const RowOrder order : {RowOrder::random, RowOrder::epochs}) {
    DataSettings settings = ordered(order, 1);
    settings.files = {{"tokens", file.path()}};
    const auto batches = open_batches(settings, inputs);
    CHECK(batches->description().find("32000000000") != std::string::npos);
    Prefetch prefetch(batches, inputs, 0);
    for (int n = 0; n < 50; ++n) prefetch.next();
    const int64_t before = anonymous_memory();
    REQUIRE(before > 0);
    for (int n = 0; n < 1000; ++n) prefetch.next();
    const int64_t after = anonymous_memory();
    CHECK_MESSAGE(std::abs(after - before) * 20 <= before, before, " KiB became ", after, " KiB");
  }
  DataSettings settings = ordered(RowOrder::in_order);
  settings.files = {{"tokens", file.path()}};
  CHECK(fill(*open_batches(settings, inputs), kLast / 16, inputs).at("tokens")[kLast % 16 * kSeq] == 7);
}
