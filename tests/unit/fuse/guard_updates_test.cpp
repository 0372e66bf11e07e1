// What keeps a step from storing what is not finite: which updates have bounds, when kernels run, and what the checks cost.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/pipeline/pipeline.h"

namespace einc {
namespace {

constexpr std::string_view kModel =
    "dim b = 64, d = 256\ninput x: [b d]\nparam w: [d e=256] ~ normal(std = 0.1)\n"
    "y = einsum(x, w, \"b d, d e -> b e\")\nloss = mean(tanh(y)^2)\n";

struct GuardedGraph {
  Compilation compilation;
  FormedGraph graph;
};

GuardedGraph formed(const std::string& text, RunMode mode = RunMode::training) {
  Compilation c = compile_text("m.ein", text, {});
  REQUIRE(c.graph.has_value());
  FormedGraph graph = form_graph(*c.graph, {}, mode);
  return {std::move(c), std::move(graph)};
}

GuardedGraph trained(const std::string& optimizer) { return formed(std::string(kModel) + "minimize loss using " + optimizer + "\n"); }

size_t count(const KernelList& list, LaunchWhen when) {
  return static_cast<size_t>(std::ranges::count(list.kernels, when, &GraphKernel::when));
}

}  // namespace

TEST_CASE("updates of the bundled optimizers have bounds") {
  struct Case {
    const char* optimizer;
    size_t updates;
  };
  for (const Case& c :
       {Case{"sgd(lr = 0.1)", 1}, Case{"momentum(lr = 0.1)", 2}, Case{"momentum(lr = 0.1, nesterov = true)", 2},
        Case{"adagrad(lr = 0.1)", 2}, Case{"rmsprop(lr = 0.1)", 2}, Case{"rmsprop(lr = 0.1, momentum = 0.9)", 3}, Case{"adam(lr = 0.1)", 3},
        Case{"adam(lr = 0.1, amsgrad = true)", 4}, Case{"adamw(lr = cosine(0.1, total = 50), clip_norm = 1)", 3}}) {
    CAPTURE(c.optimizer);
    const GuardedGraph f = trained(c.optimizer);
    CHECK(f.graph.bound.guard.bounded.size() == c.updates);
  }
  // A root of what may be negative: then what it is made of cannot wait for it, either.
  CHECK(trained("rmsprop(lr = 0.1, centered = true)").graph.bound.guard.bounded.empty());
}

TEST_CASE("kernels that store come after all others, and nothing large is stored to look at updates") {
  const int64_t param = 256 * 256 * 4;
  for (const char* optimizer : {"sgd(lr = 0.1)", "adamw(lr = 0.1, clip_norm = 1)"}) {
    CAPTURE(optimizer);
    const GuardedGraph f = trained(optimizer);
    const auto& kernels = f.graph.list.kernels;
    const auto stores = std::ranges::find(kernels, LaunchWhen::checked, &GraphKernel::when);
    REQUIRE(stores != kernels.end());
    for (auto k = stores; k != kernels.end(); ++k) CHECK(k->when == LaunchWhen::checked);
    CHECK(count(f.graph.list, LaunchWhen::unbounded) > 0);
    for (const GraphKernel& k : kernels)
      if (k.when == LaunchWhen::unbounded)
        for (size_t b = 0; b < k.buffers.size(); ++b)
          if (k.kernel->buffers[b].access != BufferAccess::read) CHECK(k.kernel->buffers[b].count * 8 < param);
  }
}

TEST_CASE("a large update is made for each end that it is looked at, and never stored") {
  const GuardedGraph f = formed(
      "dim b = 4, d = 4096\ninput x: [b d]\nparam w: [d e=4096] ~ normal(std = 0.1)\ny = einsum(x, w, \"b d, d e -> b e\")\n"
      "loss = mean(tanh(y)^2)\nminimize loss using adamw(lr = 0.1, clip_norm = 1)\n");
  for (const GraphKernel& k : f.graph.list.kernels)
    if (k.when == LaunchWhen::unbounded)
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.kernel->buffers[b].access != BufferAccess::read) CHECK(k.kernel->buffers[b].count < 4096 * 16);
}

TEST_CASE("where clipping sums squares no gradient is read for its magnitude") {
  const auto reads_of_gradient = [](const GuardedGraph& f) {
    const NodeId gradient = f.graph.bound.graph.gradients.front().value;
    return std::ranges::count_if(f.graph.list.kernels, [&](const GraphKernel& k) {
      return k.when == LaunchWhen::always && std::ranges::find(k.buffers, gradient) != k.buffers.end();
    });
  };
  CHECK(reads_of_gradient(trained("sgd(lr = 0.1, clip_norm = 1)")) == reads_of_gradient(trained("sgd(lr = 0.1)")));
}

TEST_CASE("a run that updates nothing has no checks") {
  const GuardedGraph f = formed("dim n = 3\ninput x: [n]\noutput y = 2 * x\n", RunMode::inference);
  CHECK(f.graph.bound.guard.checks.empty());
}

}  // namespace einc
