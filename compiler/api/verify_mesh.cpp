// SPDX-License-Identifier: Apache-2.0
// Knows nothing of lifetimes and places: what was decided by them follows here from reads that find their value.
#include "compiler/api/verify_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/lower/memory_owners.h"
#include "compiler/partition/stage_meetings.h"
#include "runtime/executor/checked_numbers.h"

namespace einc {
namespace {

class MeshVerifier {
 public:
  MeshVerifier(const MeshPlan& plan, int stages)
      : plan_(plan),
        stages_(stages),
        looks_(plan.in_place ? checked_numbers(plan.code.compute.program) : std::vector<CheckedNumber>()),
        in_flight_(plan.values.size(), false),
        there_(plan.values.size(), false),
        replaced_(plan.values.size(), -1),
        makers_(plan.values.size(), 0) {
    for (const BoundValue& bound : plan.code.bound) {
      bound_.emplace(bound.buffer, bound);
      makers_[bound.value] = std::max(makers_[bound.value], bound.launches);
    }
  }

  std::string run() {
    for (const MeshSource& source : plan_.sources) take(source.value);
    for (const uint32_t value : plan_.taken) take(value);
    for (const Coordinate& coordinate : plan_.coordinates) take(coordinate.value);
    for (const ValueCopy& copy : plan_.snapshots) take(copy.to);
    for (const DeviceStep& step : plan_.steps) {
      if (!problem_.empty()) return problem_;
      if (step.act == DeviceAct::compute) compute(step);
      if (step.act == DeviceAct::start) start(step.index);
      if (step.act == DeviceAct::wait) wait(step.index);
      if (step.act == DeviceAct::agree) agree();
    }
    finish();
    return problem_;
  }

 private:
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  // From another stage, between the forward and the backward: all at once, before the first of them is waited for.
  bool comes_back(const MeshCollective& c) const { return c.kind == CollectiveKind::shift && c.mesh_axis == stages_ && c.by == kRoundTrip; }

  std::string name(uint32_t c) const { return fmt::format("{} {}", to_string(plan_.collectives[c].kind), c); }

  void take(uint32_t value) {
    const DeviceTensor& v = plan_.values[value];
    there_[value] = true;
    if (v.offset == kElsewhere) return;
    if (v.offset < 0 || v.offset + v.bytes > plan_.bytes) fail(fmt::format("value {} lies outside of a device's memory", value));
    memory_.take(v.offset, v.offset + v.bytes, value);
  }

  void find_bytes(uint32_t value, const std::string& reader) {
    const DeviceTensor& v = plan_.values[value];
    if (v.offset == kElsewhere) return;
    if (const auto other = memory_.stranger(v.offset, v.offset + v.bytes, value))
      fail(fmt::format("{} wants value {}, in whose place lies {}", reader, value,
                       other->owner ? fmt::format("value {}", *other->owner) : "nothing"));
  }

  void find(uint32_t value, const std::string& reader) {
    if (in_flight_[value]) fail(fmt::format("{} wants value {}, for which nobody has waited yet", reader, value));
    find_bytes(value, reader);
  }

  // What launches behind the collective make where its result lies goes on from that.
  bool is_replaced(const BoundValue& bound) const {
    const int64_t behind = replaced_[bound.value];
    const BufferRole role = plan_.code.compute.program.buffers[bound.buffer].role;
    const bool is_old = role == BufferRole::param || role == BufferRole::state || (bound.launches > 0 && bound.launches <= behind);
    return behind >= 0 && is_old;
  }

  // A value that several launches make, part by part, is there from the first on.
  void compute(const DeviceStep& step) {
    if (step.first != computed_) fail(fmt::format("launches go on with {}", step.first));
    computed_ = step.last;
    const std::vector<Launch>& launches = plan_.code.compute.program.launches;
    for (uint32_t l = 0; l < launches.size(); ++l)
      if (launches[l].when == LaunchWhen::checked && may_run(plan_.code, step, l)) store(l);
    for (uint32_t l = 0; l < launches.size(); ++l)
      for (size_t b = 0; may_run(plan_.code, step, l) && b < launches[l].buffers.size(); ++b) {
        const auto at = bound_.find(launches[l].buffers[b]);
        if (at == bound_.end()) continue;
        const uint32_t value = at->second.value;
        if (is_replaced(at->second)) fail(fmt::format("launch {} wants the old value {}, which a collective has replaced", l, value));
        if (there_[value])
          find(value, fmt::format("launch {}", l));
        else
          take(value);
      }
  }

  int64_t last_place(int64_t launch) const {
    return launch < 0 || plan_.code.places.empty() ? launch : plan_.code.places[static_cast<size_t>(launch)].last;
  }

  // All that was started is over.
  void agree() {
    agreed_ = computed_;
    in_flight_.assign(in_flight_.size(), false);
  }

  // What looks have been made of before it stores is agreed on.
  void store(uint32_t launch) {
    for (const CheckedNumber& look : looks_)
      if (look.launch < launch && last_place(look.launch) >= agreed_)
        fail(fmt::format("launch {} stores before devices agree on launch {}", launch, look.launch));
  }

  // What an earlier collective makes is there when this one is carried out.
  void start(uint32_t c) {
    if (c != started_++) fail(fmt::format("{} starts as number {}", name(c), started_ - 1));
    const MeshCollective& collective = plan_.collectives[c];
    if (makers_[collective.from] > computed_) fail(fmt::format("{} starts before value {} is made", name(c), collective.from));
    find_bytes(collective.from, name(c));
    if (!comes_back(collective)) take(collective.to);
    in_flight_[collective.to] = true;
    replaced_[collective.to] = computed_;
  }

  void wait(uint32_t c) {
    if (c >= started_) fail(fmt::format("{} is waited for before it starts", name(c)));
    const MeshCollective& collective = plan_.collectives[c];
    find_bytes(collective.from, name(c));
    if (comes_back(collective) && !std::exchange(all_came_back_, true))
      for (const MeshCollective& other : plan_.collectives)
        if (comes_back(other)) take(other.to);
    find_bytes(collective.to, name(c));
    in_flight_[collective.to] = false;
  }

  void finish() {
    if (started_ != plan_.collectives.size()) fail(fmt::format("{} of {} collectives start", started_, plan_.collectives.size()));
    if (computed_ != plan_.code.compute.program.launches.size()) fail("not all launches run");
    for (const MeshSource& source : plan_.sources) find(source.value, "the next run");
    for (const MeshResult& output : plan_.outputs) find(output.value, "an output");
    for (const auto& [path, gradient] : plan_.gradients) find(gradient.value, "a gradient");
    for (const MeshUpdate& update : plan_.updates) find(update.value, "an update");
    if (plan_.loss >= 0) find(static_cast<uint32_t>(plan_.loss), "the loss");
  }

  const MeshPlan& plan_;
  const int stages_;
  bool all_came_back_ = false;
  const std::vector<CheckedNumber> looks_;
  MemoryOwners memory_;
  std::unordered_map<uint32_t, BoundValue> bound_;  // by buffer
  std::vector<bool> in_flight_;                     // by value: the result of a collective that nobody has waited for
  std::vector<bool> there_;                         // by value: something has made it
  std::vector<int64_t> replaced_;                   // by value: behind so many launches a collective makes it; -1: none yet
  std::vector<uint32_t> makers_;                    // by value: so many launches make it
  uint32_t computed_ = 0;                           // launches
  uint32_t started_ = 0;
  uint32_t agreed_ = 0;  // launches before the last agreement
  std::string problem_;
};

}  // namespace

std::string verify_mesh_plan(const MeshPlan& plan, int stages) { return MeshVerifier(plan, stages).run(); }

}  // namespace einc
