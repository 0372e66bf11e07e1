// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/lower/attention.h"

namespace einc {
namespace {

constexpr int kStart = -1;  // scores are made before all loops

class Scheduler {
 public:
  explicit Scheduler(const Kernel& kernel) : kernel_(kernel), a_(*kernel.attention), axes_(axes_of_values(kernel)) {}

  AttentionSchedule run() {
    find_levels();
    make_loops();
    for (AttentionLoop& loop : s_.loops) find_made(loop);
    keep_what_costs();
    for (AttentionLoop& loop : s_.loops) find_made(loop);
    assign_tiles();
    return std::move(s_);
  }

 private:
  const AttentionStep& step_of(uint16_t reduction) const {
    return *std::find_if(a_.steps.begin(), a_.steps.end(), [&](const AttentionStep& s) { return s.reduction == reduction; });
  }
  bool is_fold(const Scalar& v) const { return v.kind == ScalarKind::reduction && step_of(v.slot).part == AttentionPart::fold; }
  bool is_scores(const Scalar& v) const { return v.kind == ScalarKind::reduction && step_of(v.slot).part == AttentionPart::scores; }

  // How many loops over the keys come before a value can be made.
  void find_levels() {
    for (const Scalar& v : kernel_.values) {
      int level = 0;
      if (is_fold(v)) level = levels_[kernel_.reductions[v.slot].value] + 1;
      for (ValueId x : v.operands) level = std::max(level, levels_[x]);
      for (const Subscript::Dynamic& d : v.index.dynamic) level = std::max(level, levels_[d.value]);
      for (const Range& g : v.guards)
        for (const Subscript::Dynamic& d : g.index.dynamic) level = std::max(level, levels_[d.value]);
      levels_.push_back(level);
    }
  }

  AttentionLoop& loop_at(int level) {
    if (s_.loops.size() <= static_cast<size_t>(level)) s_.loops.resize(static_cast<size_t>(level) + 1);
    return s_.loops[static_cast<size_t>(level)];
  }

  // A tile that holds the value as it comes from its product needs no other.
  bool is_tile_already(ValueId id) const {
    const Scalar& v = kernel_.values[id];
    return is_scores(v) && v.dtype == DType::f32;
  }

  void make_loops() {
    for (const AttentionStep& step : a_.steps) {
      if (step.part == AttentionPart::scores) continue;
      if (step.part == AttentionPart::fold) {
        loop_at(levels_[kernel_.reductions[step.reduction].value]).folds.push_back(step.reduction);
        continue;
      }
      if (!is_tile_already(step.left)) keep(step.left, levels_[step.left]);
      read_at_the_end_.push_back(step.left);
    }
  }

  void keep(ValueId id, int level) {
    if (kept_at_.emplace(id, level).second) loop_at(level).kept.push_back(id);
  }

  int index_of(const AttentionLoop& loop) const { return static_cast<int>(&loop - s_.loops.data()); }

  void find_made(AttentionLoop& loop) const {
    std::vector<bool> needed(kernel_.values.size(), false);
    loop.made = needed;
    loop.read.clear();
    for (uint16_t r : loop.folds) needed[kernel_.reductions[r].value] = true;
    for (ValueId id : loop.kept) needed[id] = true;
    for (size_t i = kernel_.values.size(); i-- > 0;) {
      if (!needed[i]) continue;
      const auto kept = kept_at_.find(static_cast<ValueId>(i));
      if (kept != kept_at_.end() && kept->second < index_of(loop)) {
        loop.read.push_back(static_cast<ValueId>(i));
        continue;
      }
      loop.made[i] = true;
      const Scalar& v = kernel_.values[i];
      for (ValueId x : v.operands) needed[x] = true;
      for (const Subscript::Dynamic& d : v.index.dynamic) needed[d.value] = true;
      for (const Range& g : v.guards)
        for (const Subscript::Dynamic& d : g.index.dynamic) needed[d.value] = true;
    }
  }

  // What several loops need and takes long is kept by the first of them.
  void keep_what_costs() {
    const uint64_t pair = bit(a_.row) | bit(a_.key);
    for (size_t i = 0; i < kernel_.values.size(); ++i) {
      const Scalar& v = kernel_.values[i];
      const bool costs = v.kind == ScalarKind::random || (v.kind == ScalarKind::map && is_transcendental(v.fn));
      if (!costs || (axes_[i] & pair) != pair || kept_at_.count(static_cast<ValueId>(i)) > 0) continue;
      int first = -1, loops = 0;
      for (size_t l = s_.loops.size(); l-- > 0;)
        if (s_.loops[l].made[i]) first = static_cast<int>(l), ++loops;
      if (loops > 1) keep(static_cast<ValueId>(i), first);
    }
  }

  // --- tiles ---

  static bool needs(const AttentionLoop& loop, ValueId id) {
    return loop.made[id] || std::find(loop.read.begin(), loop.read.end(), id) != loop.read.end();
  }

  // The last loop that reads a value of a pair, the number of loops when the products do.
  int last_read(ValueId id, int made) const {
    if (std::find(read_at_the_end_.begin(), read_at_the_end_.end(), id) != read_at_the_end_.end()) return static_cast<int>(s_.loops.size());
    int last = made;
    for (size_t l = 0; l < s_.loops.size(); ++l)
      if (needs(s_.loops[l], id)) last = std::max(last, static_cast<int>(l));
    return last;
  }

  // A tile whose value nobody reads after `loop`, which reads each pair before it writes it.
  int tile_for(int loop, int until) {
    for (size_t t = 0; t < free_after_.size(); ++t)
      if (loop != kStart && free_after_[t] <= loop && written_in_[t] < loop) {
        free_after_[t] = until, written_in_[t] = loop;
        return static_cast<int>(t);
      }
    free_after_.push_back(until), written_in_.push_back(loop);
    return s_.tiles++;
  }

  void assign_tiles() {
    for (const AttentionStep& step : a_.steps) {
      if (step.part != AttentionPart::scores) continue;
      int until = kStart;
      for (ValueId id = 0; id < kernel_.values.size(); ++id)
        if (kernel_.values[id].kind == ScalarKind::reduction && kernel_.values[id].slot == step.reduction)
          until = std::max(until, last_read(id, kStart));
      s_.scores_tile[step.reduction] = tile_for(kStart, until);
    }
    for (const AttentionLoop& loop : s_.loops)
      for (ValueId id : loop.kept) s_.kept_tile[id] = tile_for(index_of(loop), last_read(id, index_of(loop)));
  }

  const Kernel& kernel_;
  const Attention& a_;
  const std::vector<uint64_t> axes_;
  std::vector<int> levels_;
  std::map<ValueId, int> kept_at_;
  std::vector<ValueId> read_at_the_end_;
  std::vector<int> free_after_, written_in_;  // per tile
  AttentionSchedule s_;
};

}  // namespace

AttentionSchedule schedule_attention(const Kernel& kernel) { return Scheduler(kernel).run(); }

}  // namespace einc
