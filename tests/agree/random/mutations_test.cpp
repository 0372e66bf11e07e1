// SPDX-License-Identifier: Apache-2.0
// The comparison of random programs finds what it is made to find: miscompilations planted in their kernels, plans and launches.
#include <fmt/format.h>

#include <map>

#include "runtime/base/failure.h"
#include "tests/fuzz/mutations.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/agree.h"

using namespace einc;

namespace {

enum class Memory { planned, guarded };

// "" or how the run differs.
std::string problem_of(const Wanted& wanted, const LoweredGraph& lowered, Memory memory) {
  FileCache none({});
  const NativeCode native = compile_native(lowered.lowered, none);
  const Executable& program = lowered.lowered.program;
  try {
    if (memory == Memory::planned) {
      Executor executor(program, native.functions, 1);
      return difference(wanted, run_on(executor, program, wanted.inputs, wanted.params, wanted.states, wanted.options));
    }
    GuardedMachine machine(program, native.functions, Guard::after);
    const std::string problem = difference(wanted, run_on(machine, program, wanted.inputs, wanted.params, wanted.states, wanted.options));
    return problem.empty() ? wrong_bound(machine, program) : problem;
  } catch (const GuardHit& hit) {
    return hit.what();
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
}

class Programs {
 public:
  const Wanted& operator[](uint64_t seed) {
    const auto found = known_.find(seed);
    if (found != known_.end()) return found->second;
    std::string problem;
    std::optional<Wanted> wanted = interpret_text(random_program(seed).text(), seed, problem);
    REQUIRE_MESSAGE(wanted.has_value(), problem);
    return known_.emplace(seed, std::move(*wanted)).first->second;
  }

 private:
  std::map<uint64_t, Wanted> known_;
};

constexpr uint64_t kPrograms = 400;  // looked through for places
// At most, until one is found: a place may change nothing that can be seen. A store before a later stage's loads shows only where its value
// lies over what those load, at the 68th place; all others show within 22.
constexpr int kPlanted = 120;

}  // namespace

TEST_CASE("random programs find planted miscompilations") {
  REQUIRE(mutations().size() >= 20);
  Programs programs;
  for (const Mutation& mutation : mutations()) {
    const Memory memory = std::holds_alternative<PlanMutation>(mutation.plant) ? Memory::planned : Memory::guarded;
    std::string problem;
    int planted = 0;
    uint64_t seed = 1;
    for (; problem.empty() && planted < kPlanted && seed <= kPrograms; ++seed) {
      const Wanted& wanted = programs[seed];
      const auto lowered = lower_mutated(wanted.graph, wanted.options.mode, mutation, seed);
      if (!lowered) continue;
      ++planted;
      problem = problem_of(wanted, *lowered, memory);
      if (!problem.empty()) {
        CAPTURE(seed);
        CHECK(problem_of(wanted, *lower_graph(wanted.graph, {}, {}), memory) == "");
      }
    }
    fmt::print("{:<46} found at its place {} in {} programs: {}\n", mutation.name, planted, seed - 1, problem);
    CAPTURE(mutation.name);
    CHECK(problem != "");
  }
}
