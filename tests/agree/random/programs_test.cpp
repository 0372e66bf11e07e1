// Random programs: machine code gives what the interpreter gives. ctest runs 2000 in four parts that can run at once;
// EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/support/agree.h"
#include "tests/fuzz/random_program.h"

using namespace einc;

TEST_CASE("random programs agree") {
  uint64_t first = 1, count = 500;
  if (const char* asked = std::getenv("EINC_RANDOM_PROGRAMS")) {
    const std::string range = asked;
    const size_t colon = range.find(':');
    REQUIRE(colon != std::string::npos);
    first = std::stoull(range.substr(0, colon));
    count = std::stoull(range.substr(colon + 1));
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = random_program(seed);
    const std::string problem = disagreement(program.text(), seed);
    if (problem.empty()) continue;
    const auto kind = [](const std::string& p) { return p.substr(0, p.find(':')); };
    const RandomProgram small = shrink(program, [&](const std::string& text) { return kind(disagreement(text, seed)) == kind(problem); });
    MESSAGE(fmt::format("seed {}: {}\nThe smallest program found that still fails:\n{}", seed, problem, small.text()));
    CHECK(problem == "");
  }
}
