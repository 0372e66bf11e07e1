// SPDX-License-Identifier: Apache-2.0
// What of a mesh's communication is hidden behind work, on a link of a chosen speed that costs no processor (tests/support/fake_link.h):
// process 0 of eight trains GPT-2, the others being imagined. `scripts/bench mesh` runs it; a measurement, not a test.
//   path      the two queues of the plan with this step's own launches and collectives: the least it can take
//   hideable  communication without what is exposed on that path
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/partition/device_timeline.h"
#include "runtime/base/host_array.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/fake_link.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

constexpr int kProcesses = 8, kThreads = 1, kSteps = 7;

struct Step {
  double all_s = 0, compute_s = 0, collective_s = 0, path_s = 0, exposed_s = 0;
};

// The median of some steps, by their time.
Step measured(Runner& runner, const MeshPlan& plan) {
  std::vector<Step> steps;
  for (int i = 0; i < kSteps; ++i) {
    REQUIRE(runner.run_while_finite(Part::training, 1, static_cast<uint64_t>(i)) == NonFinite::nothing);
    const MeshTimes& times = mesh_times(runner, Part::training);
    const auto of_step = [&](const DeviceStep& step) { return times.compute_s[static_cast<size_t>(&step - plan.steps.data())]; };
    std::vector<CollectiveTime> collectives;  // each as it was
    for (const double seconds : times.collective_s) collectives.push_back({0, seconds});
    const DeviceTimeline line = device_timeline(plan.steps, of_step, collectives);
    Step step{times.all_s, line.compute_s, 0, line.end_s, line.end_s - line.compute_s};
    for (const double seconds : times.collective_s) step.collective_s += seconds;
    steps.push_back(step);
  }
  std::ranges::sort(steps, {}, &Step::all_s);
  return steps[steps.size() / 2];
}

void bench(const MeshExample& example) {
  const Graph graph = *compiled(example).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_mesh(graph, dims, RunMode::training);
  FakeLink link(kProcesses);
  const MeshProgram first(program->info, program->mesh(), program->parts(), &link.table());
  const BoundRun run = start_on_mesh(first, data_for(graph, dims), kThreads);
  const MeshPlan& plan = *first.parts()[Part::training];
  measured(*run.runner, plan);
  const Step free = measured(*run.runner, plan);
  int64_t bytes = 0;  // that one of the processes sends
  for (const SentBytes& sent : bytes_sent(*run.runner, Part::training)) bytes += sent.bytes / kProcesses;
  fmt::print("{}, {}: {} collectives, {:.1f} MB sent; without a link's time {:.1f} ms, {:.1f} of them launches\n", example.mesh,
             example.shard, plan.collectives.size(), static_cast<double>(bytes) / 1e6, free.all_s * 1e3, free.compute_s * 1e3);
  fmt::print("  ratio  launches  collectives    step  longest path  step/path  of hideable hidden\n");
  for (const double ratio : {0.25, 1.0, 4.0}) {
    link.set_bytes_per_second(static_cast<double>(bytes) / (ratio * free.compute_s));
    const Step step = measured(*run.runner, plan);
    const double hideable = step.collective_s - step.exposed_s, hidden = step.collective_s - (step.all_s - step.compute_s);
    fmt::print("  {:5.2f}  {:6.1f}ms  {:9.1f}ms  {:4.0f}ms  {:10.1f}ms  {:9.3f}  {:17.1f}%\n", ratio, step.compute_s * 1e3,
               step.collective_s * 1e3, step.all_s * 1e3, step.path_s * 1e3, step.all_s / step.path_s, 100 * hidden / hideable);
  }
}

}  // namespace

TEST_CASE("mesh: communication hidden behind work") {
  constexpr const char* kGpt = "batch=16 seq=128 vocab=512 layers=6 heads=8 head=32";
  bench({"gpt2.ein", kGpt, "data=8", "batch=data"});
  bench({"gpt2.ein", kGpt, "data=8", "batch=data; states=data"});
  bench({"gpt2.ein", kGpt, "data=8", "batch=data; params=data"});
  bench({"gpt2.ein", kGpt, "data=4,model=2", "batch=data; heads,hidden,vocab=model"});
  constexpr const char* kLong = "batch=1 seq=4096 vocab=512 layers=2 heads=8 head=32";
  bench({"gpt2.ein", kLong, "context=8", "seq=context"});
  bench({"gpt2.ein", kLong, "context=8", "seq=context; keys=context"});
}
