// Random programs on the emulated GPU give what the interpreter gives. EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds.
#include <fmt/format.h>

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

TEST_CASE("cuda: programs once compiled wrongly agree") { check_regress_programs(cuda_disagreement); }

TEST_CASE("cuda: random programs agree") { check_random_programs(1, 40, cuda_disagreement); }
