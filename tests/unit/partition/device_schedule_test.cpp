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
    planned_.bytes.push_back(16);
    planned_.in_place.push_back(false);
  }

  Graph graph_;
  Builder build_;
  DeviceProgram program_;
  PlannedDevice planned_;
  std::map<uint32_t, std::string> names_;
};

// Layers whose gradients devices share out once all of them are there: of the bytes given, in the order in which they are made.
std::string waits_of(const std::vector<std::vector<int64_t>>& layers, bool in_place = false) {
  Graph graph;
  graph.mesh.axes.push_back({Name("data"), Poly(2)});
  graph.loop_contexts.resize(layers.size() + 1);
  Builder build(graph);
  DeviceProgram program;
  PlannedDevice planned;
  std::map<uint32_t, std::string> names;
  for (uint32_t layer = 0; layer < layers.size(); ++layer)
    for (const int64_t bytes : layers[layer]) {
      build.origin.loop_context = layer + 1;
      const NodeId x = build.input(Name(fmt::format("x{}", planned.launches)), {DType::f32, {{Name("n"), Poly(4)}}});
      const NodeId gradient = build.map(MapFn::exp, {x});
      const NodeId sum = build.collective(Op::reduce_scatter, gradient, {0, ReduceFn::sum, 0, 0});
      names[sum.index] = fmt::format("{}{}", static_cast<char>('a' + layer), planned.bytes.size());
      program.values.push_back(gradient);
      program.collectives.push_back({sum, sum, 0, false});
      planned.makes.push_back({planned.launches++});
      planned.bytes.push_back(bytes);
    }
  for (size_t c = 0; c < planned.bytes.size(); ++c) {
    planned.reads.push_back({planned.launches});
    planned.stands.push_back(planned.launches);
    planned.in_place.push_back(in_place);
  }
  ++planned.launches;  // the optimizer's
  const DeviceSchedule schedule = schedule_device(graph, program, planned);
  std::string text;
  for (const DeviceStep& step : schedule.steps) {
    if (step.act == DeviceAct::compute) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", step.act == DeviceAct::wait ? "-" : "",
                        names.at(schedule.collectives[step.index].index));
  }
  return text;
}

}  // namespace

TEST_CASE("device schedule: weights of the next layer do not stand before keys of this one") {
  // B1 starts where B0 is read, and not with A1: then keys0 would wait for it.
  CHECK(Layers(3).starts() == "A0 B0 A1 0-1 keys0 1-2 B1 2-3 A2 3-4 keys1 4-5 B2 5-6 6-7 keys2 7-8 8-9");
}

TEST_CASE("device schedule: gradients of two layers are on their way") {
  CHECK(waits_of({{1}, {1}}) == "a0 b1 -a0 -b1");
  CHECK(waits_of({{1}, {1}, {1}, {1}}) == "a0 b1 c2 -a0 d3 -b1 -c2 -d3");
  CHECK(waits_of({{1}, {1}, {1}, {1}}, true) == "a0 b1 c2 d3 -a0 -b1 -c2 -d3");  // terms that the sums replace take no more memory
  CHECK(waits_of({{1, 2}, {1, 2}, {1, 2}}) == "a0 a1 b2 b3 c4 -a0 c5 -a1 -b2 -b3 -c4 -c5");
  // A table's gradient, as large as three layers: it goes on beside those.
  CHECK(waits_of({{3}, {1}, {1}, {1}, {1}}) == "a0 b1 c2 d3 e4 -a0 -b1 -c2 -d3 -e4");
}
