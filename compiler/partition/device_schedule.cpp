// SPDX-License-Identifier: Apache-2.0
// Places are counted through all stages: place p is before launch p, and each stage has one more behind its last launch. All that decides
// is the graph and the plan, which are the same for all devices, so that all start their collectives in one order and none waits for ever.
#include "compiler/partition/device_schedule.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "runtime/base/check.h"

namespace einc {
namespace {

struct Moved {
  uint32_t ready = 0;  // place from which its operand is there
  uint32_t need = 0;   // place at which its result is first read
  uint32_t start = 0;
  bool late = false;                   // behind all others that start there
  uint32_t stage_before = UINT32_MAX;  // the place where the stage before the first reader's begins
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const DeviceStages& cut, std::span<const PlannedStage> planned)
      : graph_(graph), cut_(cut), planned_(planned), moved_(cut.collectives.size()) {
    for (uint32_t c = 0; c < moved_.size(); ++c) number_.emplace(cut.collectives[c].index, c);
    for (const PlannedStage& stage : planned) base_.push_back(end_), end_ += stage.launches + 1;
  }

  DeviceSchedule run() {
    find_needs();
    find_ready();
    find_starts();
    let_urgent_pass();
    return emit();
  }

 private:
  // Of a collective that only another one reads: where that one's result is read.
  void find_needs() {
    for (Moved& m : moved_) m.need = end_;
    for (size_t s = 0; s < planned_.size(); ++s)
      for (size_t r = 0; r < planned_[s].reads.size(); ++r)
        if (const auto c = number_.find(cut_.stages[s].reads[r].index); c != number_.end())
          needed_in(moved_[c->second], s, base_[s] + planned_[s].reads[r].first);
    for (uint32_t c = static_cast<uint32_t>(moved_.size()); c-- > 0;)
      if (const auto from = number_.find(operand(c).index); from != number_.end())
        moved_[from->second].need = std::min(moved_[from->second].need, moved_[c].need);
  }

  void needed_in(Moved& m, size_t stage, uint32_t place) {
    m.need = std::min(m.need, place);
    if (m.stage_before == UINT32_MAX) m.stage_before = stage == 0 ? 0 : base_[stage - 1];
  }

  // What is given, or made by an earlier collective, is there at once: collectives are carried out in order.
  void find_ready() {
    std::unordered_map<uint32_t, uint32_t> made;
    for (size_t s = 0; s < planned_.size(); ++s)
      for (size_t m = 0; m < planned_[s].makes.size(); ++m) made[cut_.stages[s].makes[m].index] = base_[s] + planned_[s].makes[m];
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (const auto at = made.find(operand(c).index); at != made.end()) moved_[c].ready = at->second;
  }

  NodeId operand(uint32_t c) const { return graph_[cut_.collectives[c]].operands[0]; }
  bool gathers(uint32_t c) const { return graph_[cut_.collectives[c]].op == Op::all_gather && moved_[c].need < end_; }

  // A block that goes round leaves a device for the next one when that device begins to read it: two are there at once, not all.
  bool goes_on(uint32_t c, uint32_t from) const {
    return graph_[cut_.collectives[c]].op == Op::shift && graph_[cut_.collectives[from]].op == Op::shift;
  }

  // What is put together for one iteration of a loop, or without a loop for one module, is wanted together.
  using Layer = std::pair<uint32_t, Name>;
  Layer layer_of(uint32_t c) const {
    const Origin& origin = graph_[cut_.collectives[c]].origin;
    return origin.loop_context != 0 ? Layer(origin.loop_context, {}) : Layer(0, origin.module);
  }

  void find_starts() {
    std::vector<uint32_t> by_need;
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (gathers(c)) by_need.push_back(c);
    std::ranges::stable_sort(by_need, {}, [&](uint32_t c) { return moved_[c].need; });
    uint32_t before = 0, begin = 0;  // where the layer before begins, and this one
    for (size_t i = 0; i < by_need.size(); ++i) {
      if (i > 0 && layer_of(by_need[i]) != layer_of(by_need[i - 1])) before = begin;
      if (i == 0 || layer_of(by_need[i]) != layer_of(by_need[i - 1])) begin = moved_[by_need[i]].need;
      moved_[by_need[i]].start = before;
    }
    for (uint32_t c = 0; c < moved_.size(); ++c) {
      Moved& m = moved_[c];
      m.start = std::max(m.start, m.ready);
      if (const auto from = number_.find(operand(c).index); from != number_.end())
        m.start = std::max(m.start, goes_on(c, from->second) ? moved_[from->second].need : moved_[from->second].start);
      if (graph_[cut_.collectives[c]].op == Op::shift && m.stage_before != UINT32_MAX) m.start = std::max(m.start, m.stage_before);
      EINC_CHECK(m.start <= m.need, "a collective is read before it can start");
    }
  }

  // A sum that nobody reads soon lets the next one pass that the next stage waits for, if that starts in the same stage.
  void let_urgent_pass() {
    std::vector<size_t> stage_of(end_ + 1, planned_.size());
    for (size_t s = 0; s < planned_.size(); ++s)
      for (uint32_t place = base_[s]; place <= base_[s] + planned_[s].launches; ++place) stage_of[place] = s;
    std::vector<uint32_t> urgent;  // places
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (!gathers(c) && stage_of[moved_[c].need] == stage_of[moved_[c].start] + 1) urgent.push_back(moved_[c].start);
    std::ranges::sort(urgent);
    for (uint32_t c = 0; c < moved_.size(); ++c) {
      const size_t stage = stage_of[moved_[c].start];
      if (const auto from = number_.find(operand(c).index); from != number_.end() && moved_[from->second].late)
        moved_[c].start = moved_[from->second].start, moved_[c].late = true;
      if (moved_[c].late || gathers(c) || stage_of[moved_[c].need] <= stage + 1) continue;
      const auto next = std::ranges::upper_bound(urgent, moved_[c].start);
      if (next != urgent.end() && stage_of[*next] == stage) moved_[c].start = *next, moved_[c].late = true;
    }
  }

  DeviceSchedule emit() {
    DeviceSchedule out;
    std::vector<uint32_t> starts(moved_.size());
    std::iota(starts.begin(), starts.end(), 0U);
    std::ranges::stable_sort(starts, {}, [&](uint32_t c) { return std::pair(moved_[c].start, moved_[c].late); });
    for (const uint32_t c : starts) out.collectives.push_back(cut_.collectives[c]);
    std::vector<uint32_t> waits(moved_.size());  // by the numbers that collectives have by now
    std::iota(waits.begin(), waits.end(), 0U);
    std::ranges::stable_sort(waits, {}, [&](uint32_t n) { return moved_[starts[n]].need; });
    size_t started = 0, waited = 0;
    const auto meet = [&](uint32_t place) {
      for (; started < starts.size() && moved_[starts[started]].start <= place; ++started)
        out.steps.push_back({DeviceAct::start, static_cast<uint32_t>(started)});
      for (; waited < waits.size() && moved_[starts[waits[waited]]].need <= place; ++waited)
        out.steps.push_back({DeviceAct::wait, waits[waited]});
    };
    const auto next = [&](uint32_t limit) {
      if (started < starts.size()) limit = std::min(limit, moved_[starts[started]].start);
      if (waited < waits.size()) limit = std::min(limit, moved_[starts[waits[waited]]].need);
      return limit;
    };
    for (uint32_t s = 0; s < planned_.size(); ++s) {
      uint32_t at = 0;
      do {
        meet(base_[s] + at);
        const uint32_t last = next(base_[s] + planned_[s].launches) - base_[s];
        out.steps.push_back({DeviceAct::compute, s, at, last});
        at = last;
      } while (at < planned_[s].launches);
      meet(base_[s] + at);
    }
    meet(end_);
    return out;
  }

  const Graph& graph_;
  const DeviceStages& cut_;
  std::span<const PlannedStage> planned_;
  std::vector<Moved> moved_;                       // by DeviceStages::collectives
  std::unordered_map<uint32_t, uint32_t> number_;  // of those, by node
  std::vector<uint32_t> base_;                     // by stage: the place before its first launch
  uint32_t end_ = 0;                               // the place behind all
};

}  // namespace

DeviceSchedule schedule_device(const Graph& graph, const DeviceStages& cut, std::span<const PlannedStage> planned) {
  return Scheduler(graph, cut, planned).run();
}

}  // namespace einc
