// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/fuzz/random_program.h"
#include "tests/support/sample.h"

namespace einc {
namespace {

std::string kind_of(const std::string& problem) { return problem.substr(0, problem.find(':')); }

}  // namespace

void check_random_programs(uint64_t first, uint64_t count, const Disagrees& disagrees) {
  if (const char* asked = std::getenv("EINC_RANDOM_PROGRAMS")) {
    const std::string range = asked;
    const size_t colon = range.find(':');
    REQUIRE(colon != std::string::npos);
    first = std::stoull(range.substr(0, colon));
    count = std::stoull(range.substr(colon + 1));
  }
  constexpr uint64_t kFew = 50;  // asked for one by one, to repeat what failed
  const Sample sample(count > kFew ? 4 : 1);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!sample.takes(seed)) continue;
    const RandomProgram program = random_program(seed);
    const std::string problem = disagrees(program.text(), seed);
    if (problem.empty()) continue;
    const RandomProgram small =
        shrink(program, [&](const std::string& text) { return kind_of(disagrees(text, seed)) == kind_of(problem); });
    MESSAGE(fmt::format("EINC_RANDOM_PROGRAMS={}:1 fails: {}\nThe smallest program found that still fails ({}):\n{}", seed, problem,
                        disagrees(small.text(), seed), small.text()));
    CHECK(problem == "");
  }
}

void check_regress_programs(const Disagrees& disagrees) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(EINC_SOURCE_DIR "/tests/regress"))
    if (entry.path().extension() == ".ein") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(!files.empty());
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    for (const uint64_t seed : {8, 9}) CHECK(disagrees(text.str(), seed) == "");
  }
}

}  // namespace einc
