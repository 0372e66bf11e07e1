// SPDX-License-Identifier: Apache-2.0
// The lists of passes are what runs: their order, what leaving one out changes, and a faulty one named.
#include "compiler/fuse/schedule_passes.h"

#include <doctest/doctest.h>

#include <set>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/each_kernel.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "runtime/base/check.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

// A softmax, whose exponentials are kept along a row, and a long sum.
Graph example() {
  const std::string text = R"(
input x: f32[n=64 d=96]
input y: f32[m=200000]
output p = softmax(x, d)
output s = sum(y)
)";
  return assign_precision(expand(compile_text(text, {}), Roots::inference), Policy::inherit);
}

FormedGraph formed_by(const Graph& graph, std::span<const SchedulePass> passes, const Scheduling& options = Scheduling::all) {
  return form_graph(graph, {}, RunMode::inference, options, {passes, {}});
}

std::vector<SchedulePass> processor_passes_but(std::string_view name) {
  std::vector<SchedulePass> passes(processor_passes().begin(), processor_passes().end());
  REQUIRE(std::erase_if(passes, [&](const SchedulePass& p) { return p.name == name; }) == 1);
  return passes;
}

bool has_scratch(const FormedGraph& formed) {
  return std::ranges::any_of(formed.list.kernels, [](const GraphKernel& k) {
    return std::ranges::any_of(k.kernel->buffers, [](const BufferUse& b) { return b.access == BufferAccess::scratch; });
  });
}
bool has_parts(const FormedGraph& formed) {
  return std::ranges::any_of(formed.list.kernels, [](const GraphKernel& k) { return !k.parts.empty(); });
}

}  // namespace

TEST_CASE("schedule passes: names are unique, and optional for both targets or for none") {
  std::vector<std::set<std::string_view>> all, optional;
  for (const auto passes : {processor_passes(), gpu_passes()}) {
    std::set<std::string_view> names;
    all.emplace_back(), optional.emplace_back();
    for (const SchedulePass& p : passes) {
      CAPTURE(p.name);
      CHECK(names.insert(p.name).second);
      CHECK(bool(p.run));
      CHECK(!p.description.empty());
      CHECK(!p.place.empty());
      CHECK((p.optional || !p.instead));
      all.back().insert(p.name);
      if (p.optional) optional.back().insert(p.name);
    }
  }
  for (const size_t target : {size_t{0}, size_t{1}})  // Scheduling::without names them for both
    for (const std::string_view name : optional[target])
      CHECK_MESSAGE(optional[1 - target].contains(name) == all[1 - target].contains(name), name);
}

TEST_CASE("schedule passes: the observer sees each in its turn") {
  const Graph graph = example();
  std::vector<std::string> seen, wanted;
  Scheduling options;
  options.without = {"recompute"};
  options.observe = [&](std::string_view pass, const Forming& forming, double seconds) {
    seen.emplace_back(pass);
    CHECK(seconds >= 0);
    CHECK(!to_string(forming).empty());
    CHECK(forming.list.kernels.empty() == (std::ranges::find(seen, "kernels") == seen.end()));
  };
  formed_by(graph, processor_passes(), options);
  for (const SchedulePass& p : processor_passes()) wanted.emplace_back(p.name);
  CHECK(seen == wanted);
}

TEST_CASE("schedule passes: what is not in the list does not happen") {
  const Graph graph = example();
  const FormedGraph whole = formed_by(graph, processor_passes());
  CHECK(has_scratch(whole));
  CHECK(has_parts(whole));
  CHECK(!has_scratch(formed_by(graph, processor_passes_but("keep_rows"))));
  CHECK(!has_parts(formed_by(graph, processor_passes_but("divide_reductions"))));
}

TEST_CASE("schedule passes: leaving an optional one out runs what stands in for it") {
  const Graph graph = example();
  for (const SchedulePass& p : processor_passes()) {
    if (!p.optional) continue;
    CAPTURE(p.name);
    const FormedGraph formed = formed_by(graph, processor_passes(), Scheduling{}.and_without(std::string(p.name)));
    CHECK(formed.list.in_place == (p.name != "in_place"));
    CHECK(formed.list.kernels.size() >= formed_by(graph, processor_passes()).list.kernels.size());
  }
  const FormedGraph apart = formed_by(graph, processor_passes(), Scheduling::unfused);
  for (const GraphKernel& k : apart.list.kernels) CHECK(k.group.members.size() == 1);
}

TEST_CASE("schedule passes: one that breaks a kernel is named") {
  const Graph graph = example();
  std::vector<SchedulePass> passes(processor_passes().begin(), processor_passes().end());
  const auto at = std::ranges::find(passes, "contractions", &SchedulePass::name);
  REQUIRE(at != passes.end());
  passes.insert(at, {"breaks_kernels", "", "", [](Forming& f) {
                       for_each_kernel(f.list, [](Kernel& kernel) {
                         for (Scalar& v : kernel.values)
                           if (v.kind == ScalarKind::load) v.slot = 99;
                       });
                     }});
  CHECK_THROWS_WITH_AS(formed_by(graph, passes), doctest::Contains("after breaks_kernels: "), InternalError);  // tests run at debug level 1
}
