// SPDX-License-Identifier: Apache-2.0
// The guards around the tensors of these suites see what they are there for.
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/fuzz/mutations.h"

using namespace einc;

namespace {

Graph three_tensors() {
  const Graph graph = compile_text("input x: [rows=3 cols=7]\nparam w: [rows cols] ~ ones\noutput y = x * w\n");
  return assign_precision(simplify(expand(graph, Roots::training), Roots::training), Policy::inherit);
}

// Every load, or every store, one element further or one before.
bool shift_loads(Kernel& kernel, int64_t by) {
  for (Scalar& v : kernel.values)
    if (v.kind == ScalarKind::load) v.index.affine.constant += by;
  return true;
}
bool shift_stores(Kernel& kernel, int64_t by) {
  for (Stage& stage : kernel.stages)
    for (Store& s : stage.stores) s.index.affine.constant += by;
  return true;
}

template <bool shift(Kernel&, int64_t), int64_t by>
bool shifted(Kernel& kernel, Chooser& choose) {
  return choose.here() && shift(kernel, by);
}

struct GuardCase {
  Mutation mutation;
  Guard guard;
  const char* expected;  // an access of several lanes faults at any of its bytes beyond
};

}  // namespace

TEST_CASE("an access outside a tensor is caught, whatever it does to the values") {
  const GuardCase cases[] = {
      {{"loads one further", shifted<shift_loads, 1>}, Guard::after, " bytes after the 84 of "},
      {{"loads one before", shifted<shift_loads, -1>}, Guard::before, "4 bytes before "},
      {{"stores one further", shifted<shift_stores, 1>}, Guard::after, " bytes after the 84 of "},
      {{"stores one before", shifted<shift_stores, -1>}, Guard::before, "4 bytes before "},
  };
  const Graph graph = three_tensors();
  const TensorMap inputs = some_inputs(graph, {}), params = initial_params(graph, {}, 1);
  for (const GuardCase& test : cases) {
    CAPTURE(test.mutation.name);
    const auto lowered = lower_mutated(graph, RunMode::training, test.mutation, 0);
    REQUIRE(lowered != nullptr);
    FileCache none({});
    const NativeCode native = compile_native(lowered->lowered, none);
    for (const Guard guard : {Guard::after, Guard::before}) {
      GuardedMachine machine(lowered->lowered.program, native.functions, guard);
      std::string problem;
      try {
        run_on(machine, lowered->lowered.program, inputs, params, {}, {});
      } catch (const GuardHit& hit) {
        problem = hit.what();
      }
      if (guard == test.guard) CHECK_MESSAGE(problem.find(test.expected) != std::string::npos, problem);
    }
  }
}

TEST_CASE("memory that nothing wrote is seen in the result") {
  const Graph graph = three_tensors();
  const TensorMap inputs = some_inputs(graph, {}), params = initial_params(graph, {}, 1);
  CpuOptions options;
  options.cache.clear();
  const CpuProgram program(graph, {}, options);
  GuardedMachine machine(program.program(), program.functions(), Guard::after);
  Executable nothing_runs = program.program();
  nothing_runs.launches.clear();
  GuardedMachine idle(nothing_runs, program.functions(), Guard::after);
  const CpuRun whole = run_on(machine, program.program(), inputs, params, {}, {}),
               unwritten = run_on(idle, nothing_runs, inputs, params, {}, {});
  for (const double y : whole.outputs[0].second.reals) CHECK(!std::isnan(y));
  for (const double y : unwritten.outputs[0].second.reals) CHECK(std::isnan(y));
}
