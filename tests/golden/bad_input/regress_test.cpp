// SPDX-License-Identifier: Apache-2.0
// What fuzzing found once: every file of tests/regress/TARGET keeps that target's properties.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "runtime/base/big_stack.h"
#include "tests/fuzz/program_properties.h"
#include "tests/fuzz/properties.h"

namespace einc::test {

TEST_CASE("what fuzzing found") {
  namespace fs = std::filesystem;
  const std::pair<const char*, std::function<void(const std::string&)>> targets[] = {{"lexer", fuzz::check_lexer},
                                                                                     {"pattern", fuzz::check_pattern_text},
                                                                                     {"parser", fuzz::check_parser},
                                                                                     {"program", fuzz::check_program}};
  int files = 0;
  for (const auto& [target, check] : targets) {
    const fs::path folder = fs::path("tests/regress") / target;
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      CAPTURE(entry.path().string());
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      ++files;
      const auto& property = check;
      run_on_big_stack([&] { CHECK_NOTHROW(property(text.str())); });
    }
  }
  CHECK(files > 0);
}

}  // namespace einc::test
