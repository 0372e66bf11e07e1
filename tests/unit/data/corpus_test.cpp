// SPDX-License-Identifier: Apache-2.0
// The inputs that fuzzing of the readers of data files starts from, and what it found once: each keeps its reader's property.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/big_stack.h"
#include "tests/fuzz/data_properties.h"

using namespace einc;

TEST_CASE("readers of data files hold their properties on the corpora of fuzzing") {
  namespace fs = std::filesystem;
  for (const fuzz::Reader& reader : fuzz::kReaders) {
    int files = 0;
    for (const char* parent : {"tests/fuzz/corpus", "tests/regress"}) {
      const fs::path folder = fs::path(EINC_SOURCE_DIR) / parent / reader.name;
      if (!fs::exists(folder)) continue;
      for (const auto& entry : fs::directory_iterator(folder)) {
        CAPTURE(entry.path().string());
        std::ifstream in(entry.path(), std::ios::binary);
        const std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        run_on_big_stack([&] { CHECK_NOTHROW(reader.check(content)); });
        ++files;
      }
    }
    CHECK_MESSAGE(files > 0, "no corpus of ", reader.name);
  }
}
