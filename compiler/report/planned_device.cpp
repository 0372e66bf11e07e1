// SPDX-License-Identifier: Apache-2.0
// Values by the moment they are first needed, each at the best fit of what has been freed by then: the same arena as a buffer plan's.
#include "compiler/report/planned_device.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "compiler/lower/arena.h"
#include "compiler/lower/value_launches.h"
#include "compiler/partition/place_stages.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

int64_t count_bytes(const Type& type, const Bindings& dims) {
  int64_t bytes = bytes_of(type.dtype == DType::real ? DType::f32 : type.dtype);
  for (const Axis& axis : type.axes) bytes *= axis.size.evaluate_integer(dims).value();
  return bytes;
}

// Launches that run together with others start or end elsewhere than in their own place.
PlannedDevice planned_device(const Graph& graph, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                             std::span<const LaunchPlaces> places) {
  PlannedDevice planned;
  planned.launches = static_cast<uint32_t>(formed.list.kernels.size());
  std::unordered_map<uint32_t, uint32_t> stands;
  for (uint32_t l = 0; l < planned.launches; ++l)
    if (formed.list.kernels[l].kernel->collective) stands[formed.list.kernels[l].group.members.front().index] = l;
  for (const DeviceProgram::Meeting& c : program.collectives) planned.stands.push_back(stands.at(formed.place_of(c.place).index));
  for (const DeviceProgram::Meeting& c : program.collectives)
    planned.bytes.push_back(count_bytes(graph.type(graph[c.node].operands[0]), dims));
  for (const DeviceProgram::Meeting& c : program.collectives)
    planned.reads.push_back(launches_that_touch(formed.list, formed.plan, formed.place_of(c.place)));
  const std::vector<Output>& outputs = formed.bound.graph.outputs;
  EINC_CHECK(outputs.size() == program.values.size(), "a device of {} values is planned with {}", program.values.size(), outputs.size());
  for (const Output& output : outputs) planned.makes.push_back(launches_that_make(formed.list, formed.plan, output.node));
  for (std::vector<uint32_t>& readers : planned.reads)
    for (uint32_t& l : readers) l = places.empty() ? l : places[l].first;
  for (std::vector<uint32_t>& makers : planned.makes)
    for (uint32_t& l : makers) l = places.empty() ? l : places[l].last;
  return planned;
}

// By steps, both included: a value is needed from the first that writes it, or starts the collective that does, to the last that reads it,
// or waits for the collective that does.
constexpr int64_t kBefore = -1;  // declarations, coordinates and copies are there before the first step
struct Lifetime {
  int64_t first = INT64_MAX, last = kBefore;
};

class ValuePlacer {
 public:
  ValuePlacer(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
              const DeviceSchedule& schedule, std::span<const LaunchPlaces> places)
      : local_(local), program_(program), dims_(dims), formed_(formed), schedule_(schedule), places_(places) {}

  DeviceValues run() {
    declare();
    name_values();
    live_while_read();
    live_while_moved();
    count_kept();
    keep_results();
    place();
    return std::move(out_);
  }

 private:
  size_t add(NodeId node, bool is_copy) {
    bytes_.push_back(count_bytes(local_.graph.type(node), dims_));
    lives_.emplace_back();
    out_.value_of.emplace_back(node, is_copy);
    return bytes_.size() - 1;
  }
  void need(size_t value, int64_t step) {
    lives_[value].first = std::min(lives_[value].first, step);
    lives_[value].last = std::max(lives_[value].last, step);
  }
  int64_t end() const { return static_cast<int64_t>(schedule_.steps.size()); }
  void always(size_t value) { need(value, kBefore), need(value, end()); }

  void declare() {
    const auto declared = [&](NodeId node) { always(out_.of_node[node.index] = add(node, false)); };
    for (const DeviceValue& d : local_.declared) declared(d.node);
    for (const NodeId id : local_.coordinates)
      if (id.valid()) declared(id);
  }

  // Values that the plan has found to be one, there is one of.
  void name_values() {
    const std::vector<Output>& outputs = formed_.bound.graph.outputs;
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const auto [at, is_new] = of_holder_.try_emplace(formed_.plan.holder(outputs[i].node).index, bytes_.size());
      if (is_new) add(program_.values[i], false);
      out_.of_node.emplace(program_.values[i].index, at->second);
    }
  }

  void live_while_read() {
    std::vector<std::vector<uint32_t>> launches(bytes_.size());  // of each value, those that touch it
    for (uint32_t l = 0; l < formed_.list.kernels.size(); ++l) {
      const GraphKernel& k = formed_.list.kernels[l];
      for (const NodeId buffer : k.buffers)
        if (const auto at = buffer.valid() ? of_holder_.find(formed_.plan.holder(buffer).index) : of_holder_.end();
            at != of_holder_.end() && !k.kernel->collective)
          launches[at->second].push_back(l);
    }
    std::vector<int64_t> step_of(formed_.list.kernels.size());  // that a launch is in, by its number
    for (int64_t t = 0; t < end(); ++t)
      if (const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)]; step.act == DeviceAct::compute)
        for (uint32_t l = step.first; l < step.last; ++l) step_of[l] = t;
    for (size_t v = 0; v < launches.size(); ++v)
      for (const uint32_t l : launches[v]) {
        const LaunchPlaces at = places_.empty() ? LaunchPlaces{l, l} : places_[l];
        need(v, step_of[at.first]), need(v, step_of[at.last]);
      }
  }

  void live_while_moved() {
    for (int64_t t = 0; t < end(); ++t) {
      const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)];
      if (step.act == DeviceAct::compute) continue;
      const NodeId id = schedule_.collectives[step.index];
      need(out_.of_node.at(local_.graph[id].operands[0].index), t);
      need(out_.of_node.at(id.index), t);
    }
  }

  // The first step that computes something of the backward; the end: none does.
  int64_t backward_begins() const {
    for (int64_t t = 0; t < end(); ++t) {
      const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)];
      for (uint32_t l = step.first; step.act == DeviceAct::compute && l < step.last; ++l) {
        const GraphKernel& k = formed_.list.kernels[l];
        if (!k.kernel->collective && formed_.bound.graph[k.group.members.front()].origin.phase == Phase::backward) return t;
      }
    }
    return end();
  }

  // What follows from weights alone is no microbatch's.
  void count_kept() {
    const int64_t backward = backward_begins();
    const std::vector<bool> of_weights = of_weights_alone(local_.graph);
    for (size_t v = 0; v < bytes_.size(); ++v)
      if (lives_[v].first != kBefore && lives_[v].first < backward && lives_[v].last >= backward && backward < end() &&
          !of_weights[out_.value_of[v].first.index])
        out_.kept += bytes_[v];
  }

  // A declaration that is itself a result has a copy, since an update changes it before the result is asked for.
  void keep_results() {
    for (const NodeId id : results_of(local_)) {
      const Op op = local_.graph[id].op;
      if (op != Op::input && op != Op::param && op != Op::state) {
        need(out_.of_node.at(id.index), end());
      } else if (const auto [at, is_new] = out_.of_copy.try_emplace(id.index, bytes_.size()); is_new) {
        always(add(id, true));
      }
    }
  }

  void place() {
    constexpr int64_t kLine = 64;
    std::vector<size_t> by_start(bytes_.size());
    std::iota(by_start.begin(), by_start.end(), size_t{0});
    std::vector<size_t> by_end = by_start;
    std::ranges::stable_sort(by_start, {}, [&](size_t v) { return lives_[v].first; });
    std::ranges::stable_sort(by_end, {}, [&](size_t v) { return lives_[v].last; });
    out_.offsets.resize(bytes_.size());
    Arena arena;
    const auto room = [&](size_t v) { return std::max<int64_t>(kLine, (bytes_[v] + kLine - 1) / kLine * kLine); };
    size_t ended = 0;
    for (const size_t v : by_start) {
      for (; lives_[by_end[ended]].last < lives_[v].first; ++ended) arena.release(out_.offsets[by_end[ended]], room(by_end[ended]));
      out_.offsets[v] = arena.allocate(room(v));
    }
    out_.bytes = arena.size();
  }

  const Localized& local_;
  const DeviceProgram& program_;
  const Bindings& dims_;
  const FormedView formed_;
  const DeviceSchedule& schedule_;
  const std::span<const LaunchPlaces> places_;
  std::vector<int64_t> bytes_;
  std::vector<Lifetime> lives_;
  std::unordered_map<uint32_t, size_t> of_holder_;
  DeviceValues out_;
};

}  // namespace

DevicePlan plan_device(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                       std::span<const LaunchPlaces> places) {
  DevicePlan plan;
  plan.planned = planned_device(local.graph, program, dims, formed, places);
  plan.schedule = schedule_device(local.graph, program, plan.planned);
  plan.values = ValuePlacer(local, program, dims, formed, plan.schedule, places).run();
  return plan;
}

}  // namespace einc
