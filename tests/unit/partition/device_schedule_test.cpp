// SPDX-License-Identifier: Apache-2.0
// In which order one device starts collectives: of params that are spread, gathered for each layer, and of keys that a layer makes.
#include "compiler/partition/device_schedule.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/ir/build.h"

using namespace einc;

namespace {

// Layers of three launches: the first reads gathered weights A and makes keys, the second reads all keys, the third gathered weights B.
class Layers {
 public:
  explicit Layers(uint32_t count) : build_(graph_) {
    graph_.mesh.axes.push_back({Name("data"), Poly(2)});
    graph_.loop_contexts.resize(count + 1);
    planned_.launches = 3 * count;
    for (uint32_t layer = 0; layer < count; ++layer) {
      build_.origin.loop_context = layer + 1;
      const uint32_t first = 3 * layer;
      gather(fmt::format("A{}", layer), param(fmt::format("a{}", layer)), first);
      const NodeId keys = build_.map(MapFn::exp, {program_.collectives.back().node});
      program_.values.push_back(keys);
      planned_.makes.push_back({first});
      gather(fmt::format("keys{}", layer), keys, first + 1);
      gather(fmt::format("B{}", layer), param(fmt::format("b{}", layer)), first + 2);
    }
  }

  // "A0 compute keys0 .."
  std::string starts() const {
    const DeviceSchedule schedule = schedule_device(graph_, program_, planned_);
    std::string text;
    for (const DeviceStep& step : schedule.steps) {
      if (step.act == DeviceAct::wait) continue;
      if (!text.empty()) text += ' ';
      text +=
          step.act == DeviceAct::compute ? fmt::format("{}-{}", step.first, step.last) : names_.at(schedule.collectives[step.index].index);
    }
    return text;
  }

 private:
  NodeId param(const std::string& name) { return build_.input(Name(name), {DType::f32, {{Name("n"), Poly(4)}}}); }
  void gather(const std::string& name, NodeId x, uint32_t reader) {
    const NodeId id = build_.collective(Op::all_gather, x, {0, ReduceFn::sum, 0, 0});
    names_[id.index] = name;
    program_.collectives.push_back({id, id, 0, false});
    planned_.reads.push_back({reader});
    planned_.stands.push_back(reader);
  }

  Graph graph_;
  Builder build_;
  DeviceProgram program_;
  PlannedDevice planned_;
  std::map<uint32_t, std::string> names_;
};

}  // namespace

TEST_CASE("device schedule: weights of the next layer do not stand before keys of this one") {
  // B1 starts where B0 is read, and not with A1: then keys0 would wait for it.
  CHECK(Layers(3).starts() == "A0 B0 A1 0-1 keys0 1-2 B1 2-3 A2 3-4 keys1 4-5 B2 5-6 6-7 keys2 7-8 8-9");
}
