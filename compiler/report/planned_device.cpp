// SPDX-License-Identifier: Apache-2.0
// Values by the moment they are first needed, each at the best fit of what has been freed by then: the same arena as a buffer plan's.
#include "compiler/report/planned_device.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "compiler/lower/arena.h"
#include "compiler/lower/value_launches.h"
#include "compiler/partition/stage_meetings.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

int64_t count_bytes(const Type& type, const Bindings& dims) {
  int64_t bytes = bytes_of(type.dtype == DType::real ? DType::f32 : type.dtype);
  for (const Axis& axis : type.axes) bytes *= axis.size.evaluate_integer(dims).value();
  return bytes;
}

// Before what stores behind looks, where looks have been made that devices have not agreed on; behind all for looks that are left.
// `others_look`: before the first that stores where nothing is looked at here, too.
std::vector<uint32_t> agreements_of(const FormedView& formed, const ValueLaunches& launches, std::span<const LaunchPlaces> places,
                                    bool others_look) {
  const auto end = static_cast<uint32_t>(formed.list.kernels.size());
  const auto place_of = [&](uint32_t l) { return places.empty() ? LaunchPlaces{l, l} : places[l]; };
  std::vector<uint32_t> looks, stores, agreements;
  for (const UpdateGuard::Check& check : formed.bound.guard.checks) {
    uint32_t made = 0;
    for (const uint32_t l : launches.that_make(check.number)) made = std::max(made, place_of(l).last + 1);
    looks.push_back(made);
  }
  for (uint32_t l = 0; l < end; ++l)
    if (formed.list.kernels[l].when == LaunchWhen::checked) stores.push_back(place_of(l).first);
  if (others_look) looks.push_back(0);
  std::ranges::sort(looks);
  std::ranges::sort(stores);
  size_t agreed = 0;
  for (const uint32_t place : stores) {
    if (agreed == looks.size() || looks[agreed] > place) continue;
    agreements.push_back(place);
    while (agreed < looks.size() && looks[agreed] <= place) ++agreed;
  }
  if (agreed < looks.size()) agreements.push_back(end);
  return agreements;
}

// At what collectives make themselves devices look where they agree: they start before that.
void let_look(const DeviceProgram& program, const FormedView& formed, PlannedDevice& planned) {
  for (size_t c = 0; c < program.collectives.size(); ++c)
    if (std::ranges::count(formed.bound.guard.checks, formed.place_of(program.collectives[c].place), &UpdateGuard::Check::number) > 0)
      planned.reads[c].push_back(*std::ranges::upper_bound(planned.agreements, planned.stands[c]) - 1);
}

// A block of a sum in place is written by the device that adds it up, the only one that reads it, and sent over blocks that have been read
// (runtime/mesh/transfers.h). So nobody else may want the terms.
std::vector<bool> sums_in_place(const Localized& local, const DeviceProgram& program, const FormedView& formed,
                                const ValueLaunches& launches) {
  std::unordered_map<uint32_t, size_t> wanted;  // by holder: by so many, of collectives and results
  std::unordered_map<uint32_t, uint32_t> holders;
  for (size_t i = 0; i < program.values.size(); ++i)
    holders.emplace(program.values[i].index, formed.plan.holder(formed.bound.graph.outputs[i].node).index);
  const auto want = [&](NodeId id) {
    if (const auto at = holders.find(id.index); at != holders.end()) ++wanted[at->second];
  };
  for (const DeviceProgram::Meeting& c : program.collectives) std::ranges::for_each(local.graph[c.node].operands, want);
  std::ranges::for_each(results_of(local), want);
  std::ranges::for_each(local.lasting, want);
  const auto may = [&](const DeviceProgram::Meeting& c) {
    const Node& node = local.graph[c.node];
    const auto holder = holders.find(node.operands[0].index);
    if (node.op != Op::all_reduce || holder == holders.end() || wanted.at(holder->second) > 1) return false;
    const NodeId terms{holder->second};
    // None but those that make them: whether another reader is over by then, only the schedule says, which asks for the answer.
    return launches.that_touch(terms) == launches.that_make(terms);
  };
  std::vector<bool> in_place;
  for (const DeviceProgram::Meeting& c : program.collectives) in_place.push_back(may(c));
  return in_place;
}

// Launches that run together with others start or end elsewhere than in their own place.
PlannedDevice planned_device(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                             std::span<const LaunchPlaces> places) {
  PlannedDevice planned;
  planned.launches = static_cast<uint32_t>(formed.list.kernels.size());
  const ValueLaunches launches(formed.list, formed.plan);
  std::unordered_map<uint32_t, uint32_t> stands;
  for (uint32_t l = 0; l < planned.launches; ++l)
    if (formed.list.kernels[l].kernel->collective) stands[formed.list.kernels[l].group.members.front().index] = l;
  for (const DeviceProgram::Meeting& c : program.collectives) planned.stands.push_back(stands.at(formed.place_of(c.place).index));
  for (const DeviceProgram::Meeting& c : program.collectives)
    planned.bytes.push_back(count_bytes(local.graph.type(local.graph[c.node].operands[0]), dims));
  for (const DeviceProgram::Meeting& c : program.collectives) planned.reads.push_back(launches.that_touch(formed.place_of(c.place)));
  const std::vector<Output>& outputs = formed.bound.graph.outputs;
  EINC_CHECK(outputs.size() == program.values.size(), "a device of {} values is planned with {}", program.values.size(), outputs.size());
  for (const Output& output : outputs) planned.makes.push_back(launches.that_make(output.node));
  planned.in_place = sums_in_place(local, program, formed, launches);
  for (std::vector<uint32_t>& readers : planned.reads)
    for (uint32_t& l : readers) l = places.empty() ? l : places[l].first;
  for (std::vector<uint32_t>& makers : planned.makes)
    for (uint32_t& l : makers) l = places.empty() ? l : places[l].last;
  if (program.targets.empty()) return planned;
  planned.agreements = agreements_of(formed, launches, places, local.graph.mesh.stages.any());
  let_look(program, formed, planned);
  return planned;
}

// The first wait for what comes back from another stage; the end: there is none.
int64_t backward_step(const Localized& local, const DeviceSchedule& schedule) {
  const auto waits = [&](const DeviceStep& step) {
    return step.act == DeviceAct::wait && is_round_trip(local.graph[schedule.collectives[step.index]], local.graph.mesh);
  };
  return std::ranges::find_if(schedule.steps, waits) - schedule.steps.begin();
}

// By steps, both included: a value is needed from the first that writes it, or starts the collective that does, to the last that reads it,
// or waits for the collective that does.
constexpr int64_t kBefore = -1;  // declarations, coordinates and copies are there before the first step
struct Lifetime {
  int64_t first = INT64_MAX, last = kBefore;
};

// Of the launch with this number, by the phase of its first node.
size_t phase_of(const FormedView& formed, uint32_t launch) {
  const auto last = static_cast<uint32_t>(formed.list.kernels.size()) - 1;
  return static_cast<size_t>(formed.bound[formed.list.kernels[std::min(launch, last)].group.members.front()].origin.phase);
}

class ValuePlacer {
 public:
  ValuePlacer(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
              const PlannedDevice& planned, const DeviceSchedule& schedule, std::span<const LaunchPlaces> places)
      : local_(local),
        program_(program),
        dims_(dims),
        formed_(formed),
        planned_(planned),
        schedule_(schedule),
        places_(places),
        launches_(formed.list, formed.plan) {}

  DeviceValues run() {
    find_steps();
    declare();
    name_values();
    live_while_read();
    live_while_moved();
    keep_results();
    place();
    return std::move(out_);
  }

 private:
  size_t add(NodeId node, bool is_copy) {
    bytes_.push_back(count_bytes(local_.graph.type(node), dims_));
    lives_.emplace_back();
    const Op op = local_.graph[node].op;
    lasts_.push_back(!is_copy && (op == Op::param || op == Op::state || std::ranges::find(local_.lasting, node) != local_.lasting.end()));
    lies_elsewhere_.push_back(std::ranges::find(local_.elsewhere, node) != local_.elsewhere.end());
    out_.value_of.emplace_back(node, is_copy);
    return bytes_.size() - 1;
  }
  void need(size_t value, int64_t step) {
    lives_[value].first = std::min(lives_[value].first, step);
    lives_[value].last = std::max(lives_[value].last, step);
  }
  int64_t end() const { return static_cast<int64_t>(schedule_.steps.size()); }
  LaunchPlaces places_of(uint32_t launch) const { return places_.empty() ? LaunchPlaces{launch, launch} : places_[launch]; }
  void always(size_t value) { need(value, kBefore), need(value, end()); }

  void declare() {
    const auto declared = [&](NodeId node) { always(out_.of_node[node.index] = add(node, false)); };
    for (const DeviceValue& d : local_.declared) declared(d.node);
    for (const NodeId id : local_.coordinates)
      if (id.valid()) declared(id);
  }

  void find_steps() {
    step_of_.resize(formed_.list.kernels.size());
    for (int64_t t = 0; t < end(); ++t)
      if (const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)]; step.act == DeviceAct::compute)
        for (uint32_t l = step.first; l < step.last; ++l) step_of_[l] = t;
  }

  // Whether the new value, that a collective makes, can take the place of the old one: all that reads that is over by then. `target`: in
  // the program's graph.
  bool takes_place(const Update& update, NodeId target) const {
    if (!is_collective(local_.graph[update.value].op) ||
        count_bytes(local_.graph.type(update.value), dims_) != count_bytes(local_.graph.type(update.target), dims_))
      return false;
    const auto starts = [&](const DeviceStep& step) {
      return step.act == DeviceAct::start && schedule_.collectives[step.index] == update.value;
    };
    const int64_t start = std::ranges::find_if(schedule_.steps, starts) - schedule_.steps.begin();
    for (int64_t t = start; t < end(); ++t)
      if (const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)];
          is_collectives(step) && local_.graph[schedule_.collectives[step.index]].operands[0] == update.target)
        return false;
    return std::ranges::all_of(launches_.that_touch(formed_.place_of(target)), [&](uint32_t l) {
      return formed_.list.kernels[l].kernel->collective || step_of_[places_of(l).last] < start;
    });
  }

  // Values that the plan has found to be one, there is one of; so it is with what takes the place of an old value, or of a sum's terms.
  void name_values() {
    std::unordered_map<uint32_t, uint32_t> terms;  // by sum in place
    for (size_t c = 0; c < program_.collectives.size(); ++c)
      if (const NodeId id = program_.collectives[c].node; planned_.in_place[c]) terms.emplace(id.index, local_.graph[id].operands[0].index);
    for (size_t u = 0; u < program_.targets.size(); ++u) {
      const Update& update = local_.graph.updates[u];
      const NodeId target = program_.targets[u];
      if (target.valid() && takes_place(update, target)) out_.of_node.emplace(update.value.index, out_.of_node.at(update.target.index));
    }
    const std::vector<Output>& outputs = formed_.bound.graph.outputs;
    for (size_t i = 0; i < program_.values.size(); ++i) {
      auto in_place = out_.of_node.find(program_.values[i].index);
      if (const auto sum = terms.find(program_.values[i].index); in_place == out_.of_node.end() && sum != terms.end())
        in_place = out_.of_node.find(sum->second);
      const size_t value = in_place == out_.of_node.end() ? bytes_.size() : in_place->second;
      const auto [at, is_new] = of_holder_.try_emplace(formed_.plan.holder(outputs[i].node).index, value);
      if (is_new && value == bytes_.size()) add(program_.values[i], false);
      out_.of_node.emplace(program_.values[i].index, at->second);
    }
    for (const Update& update : local_.graph.updates)
      if (holds_sum(local_.graph[update.target])) out_.of_node.emplace(update.value.index, out_.of_node.at(update.target.index));
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
    for (size_t v = 0; v < launches.size(); ++v)
      for (const uint32_t l : launches[v]) {
        const LaunchPlaces at = places_of(l);
        need(v, step_of_[at.first]), need(v, step_of_[at.last]);
      }
  }

  void live_while_moved() {
    const int64_t backward = backward_step(local_, schedule_);
    for (int64_t t = 0; t < end(); ++t) {
      const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)];
      if (!is_collectives(step)) continue;
      const NodeId id = schedule_.collectives[step.index];
      need(out_.of_node.at(local_.graph[id].operands[0].index), t);
      // What comes back to a stage comes between a forward and its backward, when nothing else works there.
      need(out_.of_node.at(id.index), is_round_trip(local_.graph[id], local_.graph.mesh) ? std::max(t, backward) : t);
    }
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
    const int64_t backward = backward_step(local_, schedule_);
    enum class Stays : uint8_t { longer, from_forward, while_needed };
    std::vector<Stays> stays;
    for (size_t v = 0; v < bytes_.size(); ++v) {
      const bool crosses = lives_[v].first < backward && lives_[v].last >= backward;
      stays.push_back(lasts_[v] ? Stays::longer : crosses && local_.graph.mesh.stages.any() ? Stays::from_forward : Stays::while_needed);
      if (stays[v] != Stays::while_needed) always(v);
    }
    find_alive();
    const auto start = [&](size_t v) { return std::pair(stays[v], lives_[v].first); };
    std::ranges::stable_sort(by_start, {}, start);
    std::ranges::stable_sort(by_end, {}, [&](size_t v) { return lives_[v].last; });
    out_.offsets.resize(bytes_.size());
    Arena arena;
    const auto room = [&](size_t v) { return lies_elsewhere_[v] ? 0 : std::max<int64_t>(kLine, (bytes_[v] + kLine - 1) / kLine * kLine); };
    size_t ended = 0;
    for (const size_t v : by_start) {
      for (; lives_[by_end[ended]].last < lives_[v].first; ++ended)
        if (const size_t over = by_end[ended]; !lies_elsewhere_[over]) arena.release(out_.offsets[over], room(over));
      out_.offsets[v] = lies_elsewhere_[v] ? kNoPlace : arena.allocate(room(v));
      if (stays[v] == Stays::longer) out_.lasting = arena.size();
      if (stays[v] == Stays::from_forward) out_.kept = arena.size() - out_.lasting;
    }
    out_.bytes = arena.size();
  }

  // The most that is needed at once in each phase, without holes.
  void find_alive() {
    std::vector<int64_t> change(static_cast<size_t>(end()) + 3, 0);  // by step, from kBefore on
    for (size_t v = 0; v < bytes_.size(); ++v) {
      if (lies_elsewhere_[v] || lives_[v].first > lives_[v].last) continue;
      change[static_cast<size_t>(lives_[v].first - kBefore)] += bytes_[v];
      change[static_cast<size_t>(lives_[v].last - kBefore) + 1] -= bytes_[v];
    }
    int64_t alive = change[0];
    uint32_t launches = 0;
    for (int64_t t = 0; t < end(); ++t) {
      alive += change[static_cast<size_t>(t - kBefore)];
      int64_t& most = out_.alive[phase_of(formed_, launches)];
      most = std::max(most, alive);
      if (const DeviceStep& step = schedule_.steps[static_cast<size_t>(t)]; step.act == DeviceAct::compute) launches = step.last;
    }
  }

  const Localized& local_;
  const DeviceProgram& program_;
  const Bindings& dims_;
  const FormedView formed_;
  const PlannedDevice& planned_;
  const DeviceSchedule& schedule_;
  const std::span<const LaunchPlaces> places_;
  const ValueLaunches launches_;
  std::vector<int64_t> step_of_;  // that a launch is in, by its number
  std::vector<int64_t> bytes_;
  std::vector<Lifetime> lives_;
  std::vector<bool> lasts_, lies_elsewhere_;
  std::unordered_map<uint32_t, size_t> of_holder_;
  DeviceValues out_;
};

uint32_t backward_begins(const Localized& local, const PlannedDevice& planned, const DeviceSchedule& schedule) {
  const auto backward = static_cast<size_t>(backward_step(local, schedule));
  uint32_t launches = 0;
  for (size_t t = 0; t < backward; ++t)
    if (schedule.steps[t].act == DeviceAct::compute) launches = schedule.steps[t].last;
  return backward == schedule.steps.size() ? planned.launches : launches;
}

// What of the arena launches on both sides touch. Kept values lie below the others (lower/buffer_plan.h).
int64_t kept_bytes(const FormedView& formed, uint32_t backward) {
  const auto launches = static_cast<uint32_t>(formed.list.kernels.size());
  std::vector<bool> before(formed.plan.buffers.size(), false);
  int64_t kept = 0;
  const auto keep = [&](const BufferPlan::Buffer& b) {
    if (b.place == BufferPlace::arena || b.place == BufferPlace::shared)
      kept = std::max(kept, b.offset + (b.bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment);
  };
  for (uint32_t l = 0; l < launches; ++l)
    for (const NodeId id : formed.list.kernels[l].buffers) {
      if (!id.valid()) continue;
      const BufferPlan::Buffer& b = formed.plan.buffers[id.index];
      if (l < backward)
        before[id.index] = true;
      else if (before[id.index])
        keep(b);
    }
  // What an alternative to launches behind reads is held for it.
  for (const HeldValue& held : formed.list.library.held)
    if (const BufferPlan::Buffer& b = formed.plan.buffers[held.value.index]; before[held.value.index] && held.until >= backward) keep(b);
  return kept;
}

}  // namespace

DevicePlan plan_device(const Localized& local, const DeviceProgram& program, const Bindings& dims, const FormedView& formed,
                       std::span<const LaunchPlaces> places) {
  DevicePlan plan;
  plan.planned = planned_device(local, program, dims, formed, places);
  plan.schedule = schedule_device(local.graph, program, plan.planned);
  plan.values = ValuePlacer(local, program, dims, formed, plan.planned, plan.schedule, places).run();
  plan.backward = backward_begins(local, plan.planned, plan.schedule);
  plan.kept = kept_bytes(formed, plan.backward);
  for (uint32_t l = 0; l < plan.planned.launches; ++l) {
    int64_t& most = plan.in_use[phase_of(formed, l)];
    most = std::max(most, formed.plan.in_use[l]);
  }
  return plan;
}

}  // namespace einc
