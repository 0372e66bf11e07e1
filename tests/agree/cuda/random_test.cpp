// Random programs on the emulated GPU give what the interpreter gives. EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/fuzz/random_program.h"
#include "tests/support/agree.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

std::string cuda_disagreement(const std::string& text, uint64_t seed) {
  std::string problem;
  const std::optional<Wanted> wanted = interpret_text(text, seed, problem);
  if (!wanted) return problem;
  try {
    return difference(*wanted, run_cuda(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options));
  } catch (const std::exception& e) {
    return fmt::format("run: {}", e.what());
  }
}

}  // namespace

TEST_CASE("cuda: random programs agree") {
  uint64_t first = 1, count = 40;
  if (const char* asked = std::getenv("EINC_RANDOM_PROGRAMS")) {
    const std::string range = asked;
    const size_t colon = range.find(':');
    REQUIRE(colon != std::string::npos);
    first = std::stoull(range.substr(0, colon));
    count = std::stoull(range.substr(colon + 1));
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = random_program(seed);
    const std::string problem = cuda_disagreement(program.text(), seed);
    if (problem.empty()) continue;
    const auto kind = [](const std::string& p) { return p.substr(0, p.find(':')); };
    const RandomProgram small =
        shrink(program, [&](const std::string& text) { return kind(cuda_disagreement(text, seed)) == kind(problem); });
    MESSAGE(fmt::format("seed {}: {}\nThe smallest program found that still fails:\n{}", seed, problem, small.text()));
    CHECK(problem == "");
  }
}
