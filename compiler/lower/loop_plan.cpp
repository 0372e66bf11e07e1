// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/loop_plan.h"

#include <algorithm>
#include <cmath>

#include "compiler/lower/kernel_target.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

// Of a piece of each row that is folded into an element, so that memory is read by long pieces: rows of 64 f32 take 5 ms in one piece and
// 10.5 ms in two (100 MB, sorted, on one Zen 4 core that copies 34 GB/s).
constexpr int kRegistersOfRow = 4;
constexpr int64_t kEnoughPoints = 64;  // domain points that divide evenly enough among threads
constexpr int64_t kChunk = 4096;       // elements
constexpr int64_t kTurnedLanes = 256;  // elements of the vector axis and
constexpr int64_t kTurnedRows = 64;    // of the turned axis: a tile that the second cache holds twice

class LoopPlanner {
 public:
  LoopPlanner(const Kernel& kernel, const Processor& processor)
      : kernel_(kernel), processor_(processor), axes_(axes_of_values(kernel)), width_(processor.vector_bits / 32) {}

  LoopPlan run(const std::vector<bool>& unshared) {
    LoopPlan best = stage_plan();
    if (keeps_rows()) return finished(std::move(best), unshared);
    double cost = cost_of(best);
    for (AxisId a : kernel_.outer) {
      LoopPlan plan;
      plan.outer_vector = a;
      plan.stage_vector.assign(kernel_.stages.size(), std::nullopt);
      const bool keeps = std::ranges::any_of(kernel_.stages, [&](const Stage& stage) { return keeps_element(stage, a); });
      plan.lanes = lanes_of(keeps ? kRegistersOfRow : registers(), kernel_.extent(a));
      if (const double c = cost_of(plan); c < cost) best = plan, cost = c;
    }
    if (may_turn())
      for (AxisId lanes : kernel_.outer)
        for (AxisId turned : kernel_.outer) {
          if (lanes == turned || kernel_.extent(lanes) < width_ || kernel_.extent(turned) < width_) continue;
          LoopPlan plan;
          plan.outer_vector = lanes;
          plan.stage_vector.assign(1, std::nullopt);
          plan.lanes = width_;
          plan.turned = turned;
          if (const double c = cost_of(plan); c < cost) best = plan, cost = c;
        }
    return finished(std::move(best), unshared);
  }

 private:
  LoopPlan finished(LoopPlan plan, const std::vector<bool>& unshared) const {
    divide(plan);
    own_rows(plan);
    find_fetched(plan);
    find_streamed(plan, unshared);
    for (const Stage& stage : kernel_.stages) plan.kept.push_back(!plan.whole_rows && keeps_element(stage, plan.outer_vector));
    return plan;
  }

  // One element, or a vector of neighbours, is folded into at a time, and the stage sees it nowhere else.
  bool keeps_element(const Stage& stage, std::optional<AxisId> lanes) const {
    if (!stage.ordered || kernel_.sequence || !stage.reductions.empty() || stage.stores.size() != 1) return false;
    const Store& store = stage.stores.front();
    const auto varies = [&](const Subscript::Dynamic& d) { return lanes && axes_[d.value] >> *lanes & 1; };
    if (!folds_in_place(store.mode) || store.index.dynamic.empty() || std::ranges::any_of(store.index.dynamic, varies)) return false;
    if (lanes && store.index.affine.coefficient(*lanes) != 1) return false;
    return std::ranges::none_of(kernel_.values, [&](const Scalar& v) { return v.kind == ScalarKind::load && v.slot == store.buffer; });
  }

  // A row of one outer point: lanes go along it.
  bool keeps_rows() const {
    return std::any_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                       [](const BufferUse& b) { return b.access == BufferAccess::scratch; });
  }

  // Four registers of f32 keep the sums of a reduction independent, two suffice elsewhere.
  int registers() const { return kernel_.reductions.empty() ? 2 : 4; }
  int lanes_of(int vectors, int64_t extent) const {
    int lanes = width_ * vectors;
    while (lanes > 4 && lanes / 2 >= extent) lanes /= 2;
    return lanes;
  }

  // Elementwise, one result at each point.
  bool may_turn() const {
    return kernel_.stages.size() == 1 && kernel_.stages[0].axes.empty() && kernel_.reductions.empty() && !kernel_.sequence &&
           !kernel_.contraction;
  }

  LoopPlan stage_plan() const {
    LoopPlan plan;
    int64_t longest = 1;
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const Stage& stage = kernel_.stages[s];
      std::optional<AxisId> best;
      double cost = 0;
      if (!stage.ordered)
        for (AxisId a : stage.axes) {
          const double c = stage_cost(s, a, width_);
          if (!best || c < cost) best = a, cost = c;
        }
      if (best && stage_cost(s, std::nullopt, 1) <= cost) best.reset();
      if (best) longest = std::max(longest, kernel_.extent(*best));
      plan.stage_vector.push_back(best);
    }
    plan.lanes = lanes_of(registers(), longest);
    return plan;
  }

  double cost_of(const LoopPlan& plan) const {
    double cost = 0;
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      if (plan.outer_vector)
        cost += stage_cost(s, plan.outer_vector, plan.lanes, plan.turned);
      else
        cost += stage_cost(s, plan.stage_vector[s], plan.stage_vector[s] ? plan.lanes : 1);
    }
    return cost;
  }

  // Instructions, roughly, of a stage over all outer points with lanes along `axis`.
  double stage_cost(size_t s, std::optional<AxisId> axis, int lanes, std::optional<AxisId> turned = std::nullopt) const {
    const Stage& stage = kernel_.stages[s];
    std::vector<bool> used(kernel_.values.size(), false);
    for (const Store& store : stage.stores) {
      used[store.value] = true;
      for (const Subscript::Dynamic& d : store.index.dynamic) used[d.value] = true;
    }
    for (uint16_t r : stage.reductions) {
      used[kernel_.reductions[r].value] = true;
      if (kernel_.reductions[r].position != kNoValue) used[kernel_.reductions[r].position] = true;
    }
    double total = 0;
    for (size_t i = kernel_.values.size(); i-- > 0;) {
      if (!used[i]) continue;
      const Scalar& v = kernel_.values[i];
      for (ValueId x : v.operands) used[x] = true;
      for (const Subscript::Dynamic& d : v.index.dynamic) used[d.value] = true;
      const uint64_t loops = loops_around(axes_[i], stage, axis);
      const double work = v.kind == ScalarKind::map && is_transcendental(v.fn) ? 20 : 1;
      if (v.kind == ScalarKind::load && turned && is_turned(v, *axis, *turned))
        total += 5 * trips(loops, axis, lanes);  // a load and four shuffles
      else if (v.kind == ScalarKind::load)
        total += access(v.index, loops, axis, lanes);
      else
        total += work * trips(loops, axis, lanes);
    }
    const uint64_t all = bits(stage.axes) | bits(kernel_.outer);
    for (const Store& store : stage.stores) total += access(store.index, all, axis, lanes);
    if (axis && std::find(stage.axes.begin(), stage.axes.end(), *axis) != stage.axes.end())
      total += static_cast<double>(stage.reductions.size()) * 20 * trips(bits(kernel_.outer), std::nullopt, 1);
    return total;
  }

  // The loops up to the innermost that a value depends on: it is computed in all of them. Lanes along an outer axis are the innermost of
  // those.
  uint64_t loops_around(uint64_t axes, const Stage& stage, std::optional<AxisId> lanes) const {
    uint64_t passed = 0, around = 0;
    const auto pass = [&](AxisId a) {
      passed |= bit(a);
      if (axes >> a & 1) around = passed;
    };
    for (AxisId a : kernel_.outer)
      if (a != lanes) pass(a);
    for (AxisId a : kernel_.outer)
      if (a == lanes) pass(a);
    for (AxisId a : stage.axes) pass(a);
    return around;
  }

  double trips(uint64_t loops, std::optional<AxisId> axis, int lanes) const {
    double n = 1;
    for (AxisId a = 0; a < kernel_.axes.size(); ++a) {
      if (!(loops >> a & 1)) continue;
      const auto extent = static_cast<double>(kernel_.extent(a));
      n *= axis == a ? std::ceil(extent / lanes) : extent;
    }
    return n;
  }

  // Neighbouring lanes on neighbouring elements are one access, others one per lane.
  double access(const Subscript& index, uint64_t loops, std::optional<AxisId> axis, int lanes) const {
    const double n = trips(loops, axis, lanes);
    if (!axis || !(loops >> *axis & 1)) return n;
    const int64_t step = index.affine.coefficient(*axis);
    const auto varies = [&](const Subscript::Dynamic& d) { return (axes_[d.value] >> *axis & 1) != 0; };
    if (step != 0 && step != 1) return n * lanes;
    if (std::ranges::none_of(index.dynamic, varies)) return n;
    // One for several lanes (a group's number for its channels): few elements side by side, which a gather finds in a line or two.
    const auto repeats = [&](const Subscript::Dynamic& d) { return !varies(d) || kernel_.values[d.value].kind == ScalarKind::quotient; };
    return step == 0 && std::ranges::all_of(index.dynamic, repeats) ? n * lanes / 2 : n * lanes;
  }

  void divide(LoopPlan& plan) const {
    int64_t points = 1;
    for (AxisId a : kernel_.outer) {
      if (plan.outer_vector == a || plan.turned == a) continue;
      if (points < kEnoughPoints)
        plan.divided.push_back(a), points *= kernel_.extent(a);
      else
        plan.inner.push_back(a);
    }
    plan.domain = points;
    if (!plan.outer_vector) return;
    const int64_t extent = kernel_.extent(*plan.outer_vector);
    if (plan.turned) {
      plan.chunk = std::min(extent, kTurnedLanes);
      plan.turned_chunk = std::min(kernel_.extent(*plan.turned), kTurnedRows);
      plan.domain *= chunks_of(extent, plan.chunk) * chunks_of(kernel_.extent(*plan.turned), plan.turned_chunk);
      return;
    }
    plan.chunk = points >= kEnoughPoints ? extent : std::min(extent, inner_work() > 64 ? int64_t{plan.lanes} : kChunk);
    plan.domain *= chunks_of(extent, plan.chunk);
  }

  // One outer axis, along which rows lie; a stage that clears them may come before the one that folds.
  void own_rows(LoopPlan& plan) const {
    if (kernel_.outer.size() != 1 || plan.outer_vector != kernel_.outer[0] || plan.turned || kernel_.stages.size() > 2) return;
    const Stage& fold = kernel_.stages.back();
    if (!keeps_element(fold, plan.outer_vector) || fold.stores.front().index.dynamic.size() != 1) return;
    const Store& store = fold.stores.front();
    const Scalar& position = kernel_.values[store.index.dynamic.front().value];
    const int64_t columns = kernel_.extent(*plan.outer_vector);
    if (position.kind != ScalarKind::checked || columns * bytes_of(kernel_.buffers[store.buffer].dtype) < kCacheLine) return;
    if (kernel_.stages.size() == 2) {
      const Stage& clear = kernel_.stages.front();
      const bool clears = clear.axes.size() == 1 && kernel_.extent(clear.axes[0]) == position.integer && clear.stores.size() == 1 &&
                          clear.reductions.empty() && !clear.ordered && clear.stores.front().buffer == store.buffer &&
                          clear.stores.front().index.dynamic.empty();
      if (!clears) return;
    }
    plan.owns_rows = true;
    plan.whole_rows = columns > plan.lanes;
    plan.chunk = columns;
    plan.domain = position.integer;
  }

  int64_t bytes(uint16_t buffer) const { return kernel_.buffers[buffer].count * bytes_of(kernel_.buffers[buffer].dtype); }

  void find_fetched(LoopPlan& plan) const {
    plan.fetched.assign(kernel_.buffers.size(), false);
    for (const Scalar& v : kernel_.values)
      if (v.kind == ScalarKind::load && bytes(v.slot) >= processor_.level2_bytes / 2) plan.fetched[v.slot] = true;
  }

  void find_streamed(LoopPlan& plan, const std::vector<bool>& unshared) const {
    plan.streamed.assign(kernel_.buffers.size(), false);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const std::optional<AxisId> lanes = plan.outer_vector ? plan.outer_vector : plan.stage_vector[s];
      if (!lanes || kernel_.sequence) continue;
      for (const Store& store : kernel_.stages[s].stores)
        if (unshared[store.buffer] && bytes(store.buffer) >= processor_.streamed_bytes && fills_lines(store, *lanes, plan.lanes))
          plan.streamed[store.buffer] = true;
    }
    for (const Scalar& v : kernel_.values)
      if (v.kind == ScalarKind::load) plan.streamed[v.slot] = false;
    // What a later stage adds to or scatters into is wanted in the caches: a sum by index that was cleared past them took 25 times as long,
    // each element going to memory and back.
    for (const Stage& stage : kernel_.stages)
      for (const Store& store : stage.stores)
        if (folds_in_place(store.mode) || !store.index.dynamic.empty()) plan.streamed[store.buffer] = false;
  }

  // Every vector of lanes covers whole lines, wherever the loops stand.
  bool fills_lines(const Store& store, AxisId lanes, int count) const {
    const int64_t size = bytes_of(kernel_.buffers[store.buffer].dtype);
    const Affine& index = store.index.affine;
    if (store.mode != StoreMode::set || !store.index.dynamic.empty() || index.coefficient(lanes) != 1) return false;
    if (count * size % kCacheLine != 0 || index.constant * size % kCacheLine != 0 || bytes(store.buffer) % kCacheLine != 0) return false;
    return std::all_of(index.terms.begin(), index.terms.end(),
                       [&](const Affine::Term& t) { return t.axis == lanes || t.coefficient * size % kCacheLine == 0; });
  }

  // Elements visited at each outer point.
  int64_t inner_work() const {
    int64_t most = 1;
    for (const Stage& stage : kernel_.stages) {
      int64_t n = 1;
      for (AxisId a : stage.axes) n *= kernel_.extent(a);
      most = std::max(most, n);
    }
    return most;
  }

  const Kernel& kernel_;
  const Processor& processor_;
  std::vector<uint64_t> axes_;
  int width_;
};

}  // namespace

bool is_turned(const Scalar& load, AxisId lanes, AxisId turned) {
  if (load.kind != ScalarKind::load || !load.index.dynamic.empty() || !load.guards.empty()) return false;
  const int64_t step = load.index.affine.coefficient(lanes);
  return load.index.affine.coefficient(turned) == 1 && step != 0 && step != 1;
}

LoopPlan plan_loops(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared) {
  return LoopPlanner(kernel, processor).run(unshared);
}

}  // namespace einc
