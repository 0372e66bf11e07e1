// SPDX-License-Identifier: Apache-2.0
// Steps under a limit of memory: they keep within it, give the same bits, and take about the least time that any choice would.
#include <doctest/doctest.h>

#include <array>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/fuse/remade_step.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/attention_programs.h"
#include "tests/support/least_memory.h"
#include "tests/support/run_cpu.h"
#include "tests/support/run_graph.h"
#include "tests/support/sample.h"
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
  return plan_for_processor(native_processor(), options)(graph, dims, RunMode::training, {}).memory.total();
}

int64_t least_bytes(const Graph& graph, const Bindings& dims) {
  return least_memory([&] { bytes_of_step(graph, dims, within(1)); });
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

// Of widths and functions that differ, so that each value costs something else to make again.
std::string uneven() {
  return "dim n = 16384, a = 64\ninput x: [n a]\n"
         "param w0: [a b=256] ~ normal(std = 0.1)\nparam w1: [b c=64] ~ normal(std = 0.1)\n"
         "param w2: [c d=512] ~ normal(std = 0.1)\nparam w3: [d a] ~ normal(std = 0.1)\n"
         "h0 = gelu(einsum(x, w0, \"n a, a b -> n b\"))\nh1 = tanh(einsum(h0, w1, \"n b, b c -> n c\"))\n"
         "h2 = silu(einsum(h1, w2, \"n c, c d -> n d\"))\nh3 = einsum(h2, w3, \"n d, d a -> n a\") + x\n"
         "loss = mean(tanh(h3)^2)\nminimize loss using sgd(lr = 0.1)\n";
}

// Two paths from one value, and a residual around both; then the same once more.
const std::string kBranches =
    "dim n = 16384, d = 64\ninput x: [n d]\n"
    "fn block(x: [n d]) {\n"
    "  param u: [d f=192] ~ normal(std = 0.1)\n  param v: [d g=64] ~ normal(std = 0.1)\n"
    "  param p: [f d] ~ normal(std = 0.1)\n  param q: [g d] ~ normal(std = 0.1)\n"
    "  left = gelu(einsum(x, u, \"n d, d f -> n f\"))\n  right = sigmoid(einsum(x, v, \"n d, d g -> n g\"))\n"
    "  return x + einsum(left, p, \"n f, f d -> n d\") + einsum(right, q, \"n g, g d -> n d\")\n}\n"
    "y = x\nfor layer in 2 { y = block(y) as h }\n"
    "loss = mean(tanh(y)^2)\nminimize loss using sgd(lr = 0.1)\n";

struct Choice {
  int64_t bytes;
  double cost;
};

template <class Take>
void for_each_subset(const std::vector<NodeId>& of, const Take& take) {
  for (uint32_t bits = 0; bits < 1U << of.size(); ++bits) {
    std::vector<NodeId> taken;
    for (size_t i = 0; i < of.size(); ++i)
      if ((bits >> i & 1) != 0) taken.push_back(of[i]);
    take(taken);
  }
}

// Every choice there is: of what to make again, and of what to save for that which nothing else saves.
std::vector<Choice> all_choices(const Graph& graph) {
  const Bindings dims;
  const Scheduling options;
  const ScheduleTarget target = processor_target();
  const Forming forming{graph, dims, RunMode::training, options, target.sizes};
  RemadeStep step(forming, target.passes.subspan(1));  // behind memory_limit
  REQUIRE(step.candidates().size() <= 8);
  REQUIRE(step.stored().size() <= 4);
  std::vector<Choice> all;
  for_each_subset(step.stored(), [&](const std::vector<NodeId>& saved) {
    step.save(saved);
    for_each_subset(step.candidates(), [&](const std::vector<NodeId>& chosen) {
      all.push_back({step.bytes_with(chosen), step.cost(chosen)});
    });
  });
  return all;
}

}  // namespace

// The time a choice adds is its FLOPs; 5 % of a step's are the room for a search that tries classes of values, not values.
TEST_CASE("memory limit: no choice there is adds much less time") {
  for (const std::string& text : {layers(4), uneven(), kBranches}) {
    CAPTURE(text);
    const Graph graph = step_of(text);
    const std::vector<Choice> all = all_choices(graph);
    const Choice least = std::ranges::min(all, {}, &Choice::bytes);
    const int64_t whole = form_graph(graph, {}, RunMode::training).plan.total_bytes;
    CHECK(least.bytes < whole * 95 / 100);
    for (int part = 0; part < 8; ++part) {
      const int64_t limit = least.bytes + (whole - least.bytes) * part / 8;
      CAPTURE(limit);
      double best = std::numeric_limits<double>::infinity();
      for (const Choice& c : all)
        if (c.bytes <= limit) best = std::min(best, c.cost);
      const FormedGraph step = form_graph(graph, {}, RunMode::training, within(limit));
      CHECK(step.plan.total_bytes <= limit);
      CHECK(step.recomputation.cost <= best * 1.05);
    }
  }
}

TEST_CASE("memory limit: the same bits within it") {
  const Bindings gpt{{"batch", 4}, {"seq", 64}, {"vocab", 96}, {"layers", 3}, {"heads", 2}, {"head", 32}};
  check_bits("gpt2", finished(compile_example("gpt2.ein", gpt), Roots::training), gpt);
  const Bindings batch{{"batch", 64}};
  check_bits("mlp, with dropout", finished(compile_example("mlp.ein", batch), Roots::training), batch);
  check_bits("layers", step_of(layers(5)), {});
  for (const char* name : sampled(std::array{"mixture_of_experts", "perceiver", "t5"}, 3)) {
    const ZooModel model = load_zoo_model(name, Policy::f32);
    check_bits(name, zoo_graph(model, ZooRun::everything, Policy::f32), {}, model.inputs, model.params, model.states);
  }
}

// Queries, keys and values are made again: the backward's kernel of attention reads those, and the forward's
// are held no longer.
TEST_CASE("memory limit: what attention reads is made again") {
  const Bindings gpt{{"batch", 4}, {"seq", 64}, {"vocab", 96}, {"layers", 2}, {"heads", 2}, {"head", 32}};
  const Graph graph = finished(compile_example("gpt2.ein", gpt), Roots::training);
  const int64_t least = least_bytes(graph, gpt);
  const PlannedStep step = plan_for_processor(native_processor(), within(least))(graph, gpt, RunMode::training, {});
  const auto is_read = [&](NodeId id) { return graph[id].origin.label.str() == "qkv"; };
  CHECK(std::ranges::count_if(step.formed->recomputation.values, is_read) >= 1);
}

// No class of inputs alone frees as much as all that iterations hand on: with those saved, a backward makes the whole iterations again.
TEST_CASE("memory limit: whole iterations are made again where nothing else fits") {
  const Bindings dims{{"batch", 4}};
  const Graph graph = finished(compile_example("shakespeare_char.ein", dims), Roots::training);
  CHECK(static_cast<double>(least_bytes(graph, dims)) < 0.805 * static_cast<double>(bytes_of_step(graph, dims)));
  check_bits("shakespeare_char", graph, dims);
}

TEST_CASE("memory limit: a step that fits is left as it is") {
  const Graph graph = step_of(layers(3));
  const PlannedStep step = plan_for_processor(native_processor(), within(bytes_of_step(graph, {})))(graph, {}, RunMode::training, {});
  CHECK(step.formed->recomputation.values.empty());
}

TEST_CASE("memory limit: whole layers of values are made again, at the cost of their products") {
  const Graph graph = step_of(layers(8));
  const int64_t whole = bytes_of_step(graph, {}), least = least_bytes(graph, {});
  CHECK(whole - least > 3 * 4096 * 64 * 4);  // of the eight values saved, more than three are not
  const PlannedStep step = plan_for_processor(native_processor(), within(whole - 4096 * 64 * 4))(graph, {}, RunMode::training, {});
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
