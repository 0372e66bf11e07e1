// Steps under a limit of memory: they keep within it, give the same bits, and take about the least time that any choice would.
#include <doctest/doctest.h>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "runtime/base/failure.h"
#include "tests/support/attention_programs.h"
#include "tests/support/run_cpu.h"
#include "tests/support/run_graph.h"
#include "tests/support/zoo.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

Scheduling within(int64_t bytes) {
  Scheduling options;
  options.memory_limit = MemoryLimit{bytes};
  return options;
}

int64_t bytes_of_step(const Graph& graph, const Bindings& dims, const Scheduling& options = Scheduling::all) {
  return plan_for_processor(native_processor(), options)(graph, dims, RunMode::training).memory.total();
}

// The least that the planner reaches, by its own word.
int64_t least_bytes(const Graph& graph, const Bindings& dims) {
  try {
    bytes_of_step(graph, dims, within(1));
  } catch (const RuntimeFailure& failure) {
    CHECK(failure.kind() == FailureKind::resource);
    const std::string text = failure.what(), words = " bytes, and ";
    return std::stoll(text.substr(text.find(words) + words.size()));
  }
  FAIL("a step fits one byte");
  return 0;
}

void check_bits(const std::string& name, const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params,
                const TensorMap& states) {
  CAPTURE(name);
  const int64_t whole = bytes_of_step(graph, dims), least = least_bytes(graph, dims);
  CAPTURE(whole);
  CAPTURE(least);
  const CpuRun wanted = run_cpu(graph, dims, inputs, params, states, {}, 2);
  for (const int64_t limit : {least, (whole + least) / 2}) {
    const Scheduling options = within(limit);
    CHECK(bytes_of_step(graph, dims, options) <= limit);
    CHECK(same_bits(run_cpu(graph, dims, inputs, params, states, {}, 2, options), wanted));  // scratch of one thread is counted
  }
}

void check_bits(const std::string& name, const Graph& graph, const Bindings& dims) {
  check_bits(name, graph, dims, inputs_of(graph, dims), initial_params(graph, dims, 1), initial_states(graph, dims, 1));
}

Graph step_of(const std::string& text, const Bindings& dims = {}) { return finished(compile_text(text, dims), Roots::training); }

// Layers whose gradients are updated as they are made, so that what the forward saves is most of the memory.
std::string layers(int count, const char* width = "64") {
  std::string text = fmt::format("dim n = 4096, d = {}\ninput x: [n d]\n", width), last = "x";
  for (int l = 0; l < count; ++l) {
    text += fmt::format("param w{0}: [d e{0}=d] ~ normal(std = 0.1)\nh{0}: [n d] = tanh(einsum({1}, w{0}, \"n d, d e{0} -> n e{0}\"))\n", l,
                        last);
    last = fmt::format("h{}", l);
  }
  return text + fmt::format("loss = mean({}^2)\nminimize loss using sgd(lr = 0.1)\n", last);
}

}  // namespace

TEST_CASE("memory limit: the same bits within it") {
  const Bindings gpt{{"batch", 4}, {"seq", 64}, {"vocab", 96}, {"layers", 3}, {"heads", 2}, {"head", 32}};
  check_bits("gpt2", finished(compile_example("gpt2.ein", gpt), Roots::training), gpt);
  const Bindings batch{{"batch", 64}};
  check_bits("mlp, with dropout", finished(compile_example("mlp.ein", batch), Roots::training), batch);
  check_bits("layers", step_of(layers(5)), {});
  for (const char* name : {"mixture_of_experts", "perceiver", "t5"}) {
    const ZooModel model = load_zoo_model(name, Policy::f32);
    check_bits(name, zoo_graph(model, ZooRun::everything, Policy::f32), {}, model.inputs, model.params, model.states);
  }
}

TEST_CASE("memory limit: a step that fits is left as it is") {
  const Graph graph = step_of(layers(3));
  const PlannedStep step = plan_for_processor(native_processor(), within(bytes_of_step(graph, {})))(graph, {}, RunMode::training);
  CHECK(step.formed->recomputation.values.empty());
}

TEST_CASE("memory limit: whole layers of values are made again, at the cost of their products") {
  const Graph graph = step_of(layers(8));
  const int64_t whole = bytes_of_step(graph, {}), least = least_bytes(graph, {});
  CHECK(whole - least > 3 * 4096 * 64 * 4);  // of the eight values saved, more than three are not
  const PlannedStep step = plan_for_processor(native_processor(), within(whole - 4096 * 64 * 4))(graph, {}, RunMode::training);
  CHECK(step.formed->recomputation.values.size() == 1);  // as few as are enough
  CHECK(step.formed->recomputation.cost < 3 * 4096 * 64 * 64);
}

// A kernel joined to another sums in another order: such a choice is none.
TEST_CASE("memory limit: in the precision of the program") {
  for (const Policy policy : {Policy::bf16, Policy::f16}) {
    const Graph graph = assign_precision(simplify(expand(compile_text(layers(4), {}), Roots::training), Roots::training), policy);
    check_bits("layers", graph, {});
  }
}
