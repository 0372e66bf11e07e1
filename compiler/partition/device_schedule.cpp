// SPDX-License-Identifier: Apache-2.0
// Place p is before launch p. All that decides is the graph and the plan, which are the same for all devices, so that all start their
// collectives in one order and none waits for ever.
#include "compiler/partition/device_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "compiler/partition/stage_meetings.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// Parts of so many bytes in all hardly lengthen a move: from eight GPUs of one machine they come in 1 us at 450 GB/s, a move takes 24 us.
constexpr int64_t kFewBytes = 64 << 10;

struct Moved {
  uint32_t ready = 0;  // place from which its operand is there
  uint32_t need = 0;   // place at which its result is first read
  uint32_t wait = 0;   // place at which it is waited for
  uint32_t start = 0;
  bool late = false;  // behind all others that start there
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const DeviceProgram& program, const PlannedDevice& planned)
      : graph_(graph), program_(program), planned_(planned), moved_(program.collectives.size()), end_(planned.launches) {
    for (uint32_t c = 0; c < moved_.size(); ++c) {
      number_.emplace(node(c).index, c);
      if (graph_[node(c)].op == Op::all_gather) largest_gather_ = std::max(largest_gather_, planned_.bytes[c]);
    }
  }

  DeviceSchedule run() {
    find_needs();
    find_ready();
    find_starts();
    let_urgent_pass();
    find_waits();
    return emit();
  }

 private:
  // Of a collective that only another one reads: where that one's result is read.
  void find_needs() {
    for (uint32_t c = 0; c < moved_.size(); ++c) moved_[c].need = planned_.reads[c].empty() ? end_ : std::ranges::min(planned_.reads[c]);
    if (!planned_.agreements.empty())
      for (uint32_t c = 0; c < moved_.size(); ++c)
        if (is_declaration(graph_[operand(c)].op)) moved_[c].need = std::min(moved_[c].need, planned_.agreements.front());
    for (uint32_t c = static_cast<uint32_t>(moved_.size()); c-- > 0;)
      if (const auto from = number_.find(operand(c).index); from != number_.end())
        moved_[from->second].need = std::min(moved_[from->second].need, moved_[c].need);
  }

  // The launch behind which what follows the collectives of the level before stands.
  uint32_t begin_of(uint32_t level) const {
    uint32_t begin = end_;
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (program_.collectives[c].level + 1 == level) begin = std::min(begin, planned_.stands[c]);
    return begin == end_ ? 0 : begin;
  }

  // What is given, or made by an earlier collective, is there at once: collectives are carried out in order.
  void find_ready() {
    std::unordered_map<uint32_t, uint32_t> made;
    for (size_t v = 0; v < program_.values.size(); ++v) made[program_.values[v].index] = planned_.made_by(v);
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (const auto at = made.find(operand(c).index); at != made.end()) moved_[c].ready = at->second;
  }

  NodeId node(uint32_t c) const { return program_.collectives[c].node; }
  NodeId operand(uint32_t c) const { return graph_[node(c)].operands[0]; }
  bool gathers(uint32_t c) const { return graph_[node(c)].op == Op::all_gather && moved_[c].need < end_; }

  // A block that goes round leaves a device for the next one when that device begins to read it: two are there at once, not all.
  bool goes_on(uint32_t c, uint32_t from) const { return graph_[node(c)].op == Op::shift && graph_[node(from)].op == Op::shift; }

  bool sums_microbatches(uint32_t c) const { return is_microbatch_sum(graph_[node(c)]); }

  // As norms and biases are beside weights, which have a turn each.
  bool is_small(uint32_t c) const { return planned_.bytes[c] <= std::min(kFewBytes, largest_gather_ / 16); }

  // Whether a few more bytes can go with those of another gather: alone they would take as long as many. Of both the parts lie one behind
  // another in the whole, so that nothing has to be packed.
  bool may_join(uint32_t c, uint32_t other) const {
    const auto lies_in_order = [&](uint32_t k) {
      const Node& n = graph_[node(k)];
      return n.op == Op::all_gather && n.as<CollectiveAttr>().gathered == 0;
    };
    return is_small(c) && lies_in_order(c) && lies_in_order(other) &&
           graph_[node(c)].as<CollectiveAttr>().mesh == graph_[node(other)].as<CollectiveAttr>().mesh;
  }

  // What is put together for one iteration of a loop, or without a loop for one module, is wanted together.
  using Layer = std::pair<uint32_t, uint32_t>;
  Layer layer_of(uint32_t c) const {
    const Origin& origin = graph_[node(c)].origin;
    return origin.loop_context != 0 ? Layer(origin.loop_context, 0) : Layer(0, origin.module.id());
  }

  void find_starts() {
    std::vector<uint32_t> by_need;
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (gathers(c)) by_need.push_back(c);
    std::ranges::stable_sort(by_need, {}, [&](uint32_t c) { return moved_[c].need; });
    // Not all of a layer at once: what the layer before meets in between, such as keys that it has just made, would wait behind them.
    // What is less than the next one is no layer to hide that behind, as the few weights of a last norm before the head's.
    std::vector<uint32_t> before, needs;  // places at which what the layer before gathers is read, and of this one so far
    int64_t bytes = 0;                    // that this one gathers
    for (size_t i = 0; i < by_need.size(); ++i) {
      if (i > 0 && layer_of(by_need[i]) != layer_of(by_need[i - 1])) {
        if (before.empty() || bytes >= planned_.bytes[by_need[i]]) before = needs;
        needs.clear(), bytes = 0;
      }
      bytes += planned_.bytes[by_need[i]];
      const bool follows = i > 0 && layer_of(by_need[i]) == layer_of(by_need[i - 1]);
      if (!before.empty())
        moved_[by_need[i]].start = follows && may_join(by_need[i], by_need[i - 1]) ? moved_[by_need[i - 1]].start
                                                                                   : before[std::min(needs.size(), before.size() - 1)];
      needs.push_back(moved_[by_need[i]].need);
    }
    for (uint32_t c = 0; c < moved_.size(); ++c) {
      Moved& m = moved_[c];
      m.start = std::max(m.start, m.ready);
      if (const auto from = number_.find(operand(c).index); from != number_.end())
        m.start = std::max(m.start, goes_on(c, from->second) ? moved_[from->second].need : moved_[from->second].start);
      // What comes back from other stages has its place from when the value is there that it comes back for.
      if (graph_[node(c)].op == Op::shift && !sums_microbatches(c) && !is_round_trip(graph_[node(c)], graph_.mesh))
        m.start = std::max(m.start, std::min(m.need, begin_of(program_.collectives[c].level)));
      EINC_CHECK(m.start <= m.need, "a collective is read before it can start");
    }
  }

  // A sum that nobody reads soon lets the next one of its level pass that the next level waits for.
  void let_urgent_pass() {
    std::vector<std::pair<uint32_t, uint32_t>> urgent;  // level and place
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (!gathers(c) && program_.collectives[c].urgent) urgent.emplace_back(program_.collectives[c].level, moved_[c].start);
    std::ranges::sort(urgent);
    for (uint32_t c = 0; c < moved_.size(); ++c) {
      const uint32_t level = program_.collectives[c].level;
      if (const auto from = number_.find(operand(c).index); from != number_.end() && moved_[from->second].late)
        moved_[c].start = moved_[from->second].start, moved_[c].late = true;
      if (moved_[c].late || gathers(c) || program_.collectives[c].urgent) continue;
      const auto next = std::ranges::upper_bound(urgent, std::pair(level, moved_[c].start));
      if (next != urgent.end() && next->first == level && next->second <= moved_[c].need)
        moved_[c].start = next->second, moved_[c].late = true;
    }
  }

  std::vector<uint32_t> by_start() const {
    std::vector<uint32_t> starts(moved_.size());
    std::iota(starts.begin(), starts.end(), 0U);
    std::ranges::stable_sort(starts, {}, [&](uint32_t c) { return std::pair(moved_[c].start, moved_[c].late); });
    return starts;
  }

  // Terms of gradients, where the sum has a place of its own: what the next layer waits for is soon let go anyway, and says nothing of how
  // large a layer's gradients are.
  bool sums(uint32_t c) const {
    const Op op = graph_[node(c)].op;
    return (op == Op::reduce_scatter || op == Op::all_reduce) && !planned_.in_place[c] && !program_.collectives[c].urgent;
  }

  // What is over its limit is waited for, the oldest first, where the next one starts: the links have had the work of two layers by then,
  // so that no time is lost unless they are the slower part of the step anyway. By bytes, of the largest layer: a table's gradient, as
  // large as layers are, need not be there before those have begun.
  void find_waits() {
    for (uint32_t c = 0; c < moved_.size(); ++c) moved_[c].wait = sums_microbatches(c) ? moved_[c].start : moved_[c].need;
    std::map<Layer, int64_t> layers;
    int64_t largest = 0;
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (sums(c)) largest = std::max(largest, layers[layer_of(c)] += planned_.bytes[c]);
    std::vector<uint32_t> on_way;
    int64_t bytes = 0;
    const auto leaves = [&](uint32_t c) { return bytes -= planned_.bytes[c], true; };
    for (const uint32_t c : by_start()) {
      if (!sums(c)) continue;
      const uint32_t place = moved_[c].start;
      std::erase_if(on_way, [&](uint32_t other) { return moved_[other].wait <= place && leaves(other); });
      bytes += planned_.bytes[c];
      while (!on_way.empty() && bytes > 2 * largest) {
        moved_[on_way.front()].wait = place;
        leaves(on_way.front());
        on_way.erase(on_way.begin());
      }
      on_way.push_back(c);
    }
    // A term that devices share out is added to the sum when it is there.
    for (uint32_t c = 0; c < moved_.size(); ++c)
      if (const auto from = number_.find(operand(c).index); sums_microbatches(c) && from != number_.end())
        moved_[c].start = moved_[c].wait = moved_[from->second].wait, moved_[c].late = true;
  }

  DeviceSchedule emit() {
    DeviceSchedule out;
    const std::vector<uint32_t> starts = by_start();
    for (const uint32_t c : starts) out.collectives.push_back(node(c));
    std::vector<uint32_t> waits(moved_.size());  // by the numbers that collectives have by now
    std::iota(waits.begin(), waits.end(), 0U);
    std::ranges::stable_sort(waits, {}, [&](uint32_t n) { return moved_[starts[n]].wait; });
    size_t started = 0, waited = 0, agreed = 0;
    int64_t joined = 0;  // bytes
    const auto meet = [&](uint32_t place) {
      for (; agreed < planned_.agreements.size() && planned_.agreements[agreed] <= place; ++agreed)
        out.steps.push_back({DeviceAct::agree, kNoCollective});
      for (; started < starts.size() && moved_[starts[started]].start <= place; ++started) {
        DeviceStep step{DeviceAct::start, static_cast<uint32_t>(started)};
        const bool follows = !out.steps.empty() && out.steps.back().act == DeviceAct::start;
        step.joined = follows && may_join(starts[started], starts[started - 1]) && joined + planned_.bytes[starts[started]] <= kFewBytes;
        joined = step.joined ? joined + planned_.bytes[starts[started]] : 0;
        out.steps.push_back(step);
      }
      for (; waited < waits.size() && moved_[starts[waits[waited]]].wait <= place; ++waited)
        out.steps.push_back({DeviceAct::wait, waits[waited]});
    };
    const auto next = [&](uint32_t limit) {
      if (started < starts.size()) limit = std::min(limit, moved_[starts[started]].start);
      if (waited < waits.size()) limit = std::min(limit, moved_[starts[waits[waited]]].wait);
      if (agreed < planned_.agreements.size()) limit = std::min(limit, planned_.agreements[agreed]);
      return limit;
    };
    for (uint32_t at = 0; at < end_;) {
      meet(at);
      const uint32_t last = next(end_);
      out.steps.push_back({DeviceAct::compute, 0, at, last});
      at = last;
    }
    meet(end_);
    return out;
  }

  const Graph& graph_;
  const DeviceProgram& program_;
  const PlannedDevice& planned_;
  std::vector<Moved> moved_;                       // by DeviceProgram::collectives
  std::unordered_map<uint32_t, uint32_t> number_;  // of those, by node
  const uint32_t end_;                             // the place behind all
  int64_t largest_gather_ = 0;                     // bytes
};

}  // namespace

DeviceSchedule schedule_device(const Graph& graph, const DeviceProgram& program, const PlannedDevice& planned) {
  return Scheduler(graph, program, planned).run();
}

}  // namespace einc
