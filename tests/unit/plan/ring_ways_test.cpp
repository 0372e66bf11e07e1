// SPDX-License-Identifier: Apache-2.0
// Ways whose keys go round: told as the report of their lines has them, where they are the better ones, and only where they may be asked
// for.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "compiler/plan/ring_ways.h"
#include "compiler/report/mesh_step.h"
#include "tests/unit/plan/planned.h"

using namespace einc;

namespace {

constexpr int64_t kDevices = 4;
constexpr const char* kLongLlama = "batch=1 seq=32768 vocab=64 layers=2 embed=512 heads=8 kv_heads=8 ffn=64";

MeshWay split_sequence(bool keys) { return {{{"context", kDevices, {Name("seq")}, true, keys}}, Spread::params, 1}; }

std::optional<ScheduledWay> scheduled_in_a_ring(PlannedWays& ways, const Device& device, const MeshWay& way, bool asked) {
  const WayPlans plans = ways.plans(device);
  WaySchedulers schedulers(ways.programs, ways.placed, plans, device);
  return RingWays(ways.programs, asked).schedule(schedulers, {way}).at(0);
}

Device with_memory(Device device, double bytes) {
  device.memory_bytes = bytes + device.reserve_bytes;
  return device;
}

}  // namespace

TEST_CASE("plans: keys go round where a step is faster, and the lines are those of its report") {
  const Planned p({"llama.ein", kLongLlama, kDevices, 80e9});
  const Device& h100 = *find_device("h100-sxm");
  PlannedWays ways(p, kDevices, h100);
  const auto gathered = scheduled_in_a_ring(ways, h100, split_sequence(false), false);
  const auto ring = scheduled_in_a_ring(ways, h100, split_sequence(false), true);
  REQUIRE(gathered.has_value());
  REQUIRE(ring.has_value());
  CHECK(gathered->way == split_sequence(false));
  REQUIRE(ring->way == split_sequence(true));
  CHECK(ring->way.shard() == "seq=context; keys=context; params=context");
  CHECK(ring->seconds.total() < gathered->seconds.total());
  REQUIRE(ring->gathered.has_value());
  CHECK(ring->gathered->seconds == gathered->seconds.total());
  CHECK(ring->gathered->bytes == gathered->held.total());

  PipelineOptions options = p.options;
  options.without_mesh = false;
  options.mesh = ring->way.mesh(), options.shard = ring->way.shard();
  const Compilation c = compile_again(p.whole, options, p.options.dims);
  REQUIRE(c.graph.has_value());
  CHECK(c.graph->mesh.keys == AxisList{0});
  const auto made = partition_for_mesh(*c.graph, p.options.dims);
  const MeshStep step = mesh_step(localize(std::get<Partitioned>(made)), p.options.dims, plan_for_device({}, h100), {}, nullptr, {});
  CHECK(ring->held.total() == doctest::Approx(static_cast<double>(step.peak())).epsilon(0.02));
}

TEST_CASE("plans: keys go round where they do not fit otherwise") {
  const Planned p({"llama.ein", kLongLlama, kDevices, 80e9});
  const Device& h100 = *find_device("h100-sxm");
  PlannedWays ways(p, kDevices, h100);
  // With links so slow that gathered keys are faster.
  Device slow = h100;
  for (DeviceLink& link : slow.links) link.bandwidth /= 200;
  const auto roomy = scheduled_in_a_ring(ways, slow, split_sequence(false), true);
  REQUIRE(roomy.has_value());
  CHECK(roomy->way == split_sequence(false));
  const auto least = scheduled_in_a_ring(ways, with_memory(slow, 0), split_sequence(false), false),
             least_of_ring = scheduled_in_a_ring(ways, with_memory(slow, 0), split_sequence(false), true);
  REQUIRE(!least->fits);
  REQUIRE(least_of_ring->held.total() < 0.95 * least->held.total());
  const Device tight = with_memory(slow, 0.97 * least->held.total());
  const auto ring = scheduled_in_a_ring(ways, tight, split_sequence(false), true);
  REQUIRE(ring.has_value());
  CHECK(ring->fits);
  CHECK(ring->way.axes[0].keys);
  CHECK(!ring->gathered.has_value());
}

TEST_CASE(
    "plans: keys go round in stages; nothing does without attention, of the batch, along many devices of stages, or where an axis is "
    "called `keys`") {
  const Device& h100 = *find_device("h100-sxm");
  const Planned llama({"llama.ein", kLongLlama, kDevices, 80e9}),
      lstm({"../tests/zoo/models/lstm.ein", "batch=8 seq=8 hidden=8 vocab=8", kDevices, 80e9});
  PlannedWays with_attention(llama, kDevices, h100), without(lstm, kDevices, h100);
  const MeshWay of_batch{{{"data", 1, {Name("batch")}, true}}, Spread::nothing, 1};
  std::string deep = kLongLlama;
  deep.replace(deep.find("layers=2"), 8, "layers=8");
  const Planned pipeline({"llama.ein", deep.c_str(), 2 * kDevices, 80e9});
  PlannedWays in_stages(pipeline, 2 * kDevices, h100);
  MeshWay staged = split_sequence(false);
  staged.stages = WayStages{"stage", 2, Name("layers")}, staged.spread = Spread::nothing;
  CHECK(scheduled_in_a_ring(with_attention, h100, of_batch, true)->way == of_batch);
  CHECK(scheduled_in_a_ring(in_stages, h100, staged, true)->way.axes[0].keys);
  staged.axes[0].size = 32;
  CHECK(scheduled_in_a_ring(in_stages, h100, staged, true)->way == staged);
  CHECK(scheduled_in_a_ring(without, h100, split_sequence(false), true)->way == split_sequence(false));

  PipelineOptions options;
  DeclaredAxes declared;
  options.declared = [&](Op op, Name path, const std::vector<DeclaredAxis>& axes) { declared[{op, path.str()}] = axes; };
  const Compilation c = compile_text(
      "own.ein", "dim n = 4\ninput x: [n keys=8]\nparam w: [keys=8] ~ zeros\nloss = mean((x * w)^2)\nminimize loss using sgd(lr = 0.1)\n",
      options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  CHECK(is_word_of(*c.graph, declared, Name("keys")));
  CHECK(!is_word_of(*llama.whole.graph, llama.declared, Name("keys")));
}
