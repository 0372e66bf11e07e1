// SPDX-License-Identifier: Apache-2.0
// What keeps a step from storing what is not finite: which updates have bounds, when kernels run, and what the checks cost.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

GuardedGraph formed(const std::string& text, RunMode mode = RunMode::training, const Scheduling& options = Scheduling::all) {
  Compilation c = compile_text("m.ein", text, {});
  REQUIRE(c.graph.has_value());
  FormedGraph graph = form_graph(*c.graph, {}, mode, options);
  return {std::move(c), std::move(graph)};
}

bool lies_in_gradient(const GuardedGraph& f, NodeId id) {
  return std::ranges::any_of(f.graph.bound.guard.dry_products,
                             [&](const auto& pair) { return pair.first == id && f.graph.plan.holder(id) == pair.second; });
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

TEST_CASE("checks of equal layers are equal kernels, one for each gradient") {
  const auto kernels = [](int layers) {
    const GuardedGraph f = formed(fmt::format(R"(
dim b = 4, d = 32, e = 48, layers = {}
input x: [b d]
fn layer(x: [b d]) {{
  param up: [d e] ~ normal(std = 0.1)
  param bias: [e] ~ zeros
  param down: [e d] ~ normal(std = 0.1)
  return einsum(tanh(einsum(x, up, "b d, d e -> b e") + bias), down, "b e, e d -> b d")
}}
for i in layers {{ x = layer(x) as h }}
loss = mean(x^2)
minimize loss using adamw(lr = 0.1)
)",
                                              layers));
    std::set<const Kernel*> different;
    size_t all = 0;
    for (const GraphKernel& k : f.graph.list.kernels)
      if (k.when == LaunchWhen::unbounded && k.group.members.size() > 2) different.insert(k.kernel.get()), ++all;
    return std::pair(different.size(), all);
  };
  const auto [different, all] = kernels(8);
  CHECK(different <= 5);  // of both weights, the bias, and verdicts
  CHECK(all >= 24);
}

TEST_CASE("kernels that store come after all others, and nothing large but a gradient's own is stored to look at updates") {
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
          if (k.kernel->buffers[b].access != BufferAccess::read && !lies_in_gradient(f, k.buffers[b]))
            CHECK(k.kernel->buffers[b].count * 8 < param);
  }
}

TEST_CASE("the update of a small batch joins the product that makes its gradient, and takes no memory for it") {
  struct Case {
    int batch;
    bool joins;
  };
  for (const Case& c : {Case{16, true}, Case{64, true}, Case{65, false}, Case{512, false}}) {
    CAPTURE(c.batch);
    std::string text(kModel);
    text.replace(text.find("64"), 2, std::to_string(c.batch));
    text += "minimize loss using adamw(lr = 0.1)\n";
    const GuardedGraph f = formed(text);
    const NodeId gradient = f.graph.bound.graph.gradients.front().value;
    const auto makes = [&](const GraphKernel& k) { return std::ranges::find(k.group.stored, gradient) != k.group.stored.end(); };
    const auto maker = std::ranges::find_if(f.graph.list.kernels, makes);
    REQUIRE(maker != f.graph.list.kernels.end());
    CHECK((maker->when == LaunchWhen::checked) == c.joins);
    CHECK((maker->group.stored.size() == 4) == c.joins);  // and the new w, m and v
    CHECK(f.graph.bound.guard.dry_products.size() == (c.joins ? 1 : 0));
    const GuardedGraph bare = formed(text, RunMode::training, Scheduling::all.and_without("finite_state"));
    CHECK(f.graph.plan.total_bytes < bare.graph.plan.total_bytes + 16384);
  }
}

TEST_CASE("a gradient that others read, or an update without a bound, is looked at itself") {
  const auto products = [](const std::string& more) { return formed(std::string(kModel) + more).graph.bound.guard.dry_products.size(); };
  CHECK(products("minimize loss using sgd(lr = 0.1)\n") == 1);
  CHECK(products("minimize loss using sgd(lr = 0.1)\noutput g = grad(loss, w)\n") == 0);
  CHECK(products("minimize loss using sgd(lr = 0.1, clip_norm = 1)\n") == 0);
  CHECK(products("minimize loss using rmsprop(lr = 0.1, centered = true)\n") == 0);
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
  const auto large = [](const std::string& optimizer) {
    std::string text(kModel);
    return formed(text.replace(text.find("64"), 2, "512") + "minimize loss using " + optimizer + "\n");
  };
  CHECK(reads_of_gradient(large("sgd(lr = 0.1, clip_norm = 1)")) == reads_of_gradient(large("sgd(lr = 0.1)")));
}

TEST_CASE("a run that updates nothing has no checks") {
  const GuardedGraph f = formed("dim n = 3\ninput x: [n]\noutput y = 2 * x\n", RunMode::inference);
  CHECK(f.graph.bound.guard.checks.empty());
}

}  // namespace einc
