// SPDX-License-Identifier: Apache-2.0
// A value costs what its instructions take, times the points of the loops around it: those up to the innermost that it depends on.
#include "compiler/lower/loop_cycles.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/lower/gelu_slope.h"
#include "compiler/lower/loop_plan.h"

namespace einc {
namespace {

// Cycles. Of a register of a vector, where not told otherwise.
constexpr double kOp = 0.5, kLoad = 0.5, kStore = 1;
constexpr double kScalar = 0.25;     // of a number that is the same in all lanes: cores start four such and more beside the vectors' two
constexpr double kWideDivision = 2;  // of indices by a constant: a product's upper half and shifts
constexpr double kTurnedLoad = 2.5;  // with its share of the square's shuffles
constexpr double kGeluSlope = 14;    // known as a whole (lower/gelu_slope): one exponential and a rational function
// Of an element by itself: loads and stores of elements that lie apart, and folds into memory, whose next one may wait for them.
constexpr double kGathered = 0.8, kScattered = 1, kFolded = 5;
constexpr double kFoldedVector = 2.5;  // loaded, folded and stored; rows seldom follow on themselves (graph.ein)
constexpr double kSumLatency = 4;      // until a sum can be added to again
constexpr int kAhead = 8;              // additions of one sum that those of other points hide
constexpr double kIteration = 0.5;     // of the innermost loop: its counter and branch
constexpr double kEntry = 3;           // into the innermost loop
constexpr double kHorizontal = 8;      // to add up the lanes of a sum

// A vector of 16 f32 by `einc bench` of one function of 8192 numbers on one thread of a Zen 5 (AVX-512), its load and store among it.
constexpr std::pair<MapFn, double> kFunctions[] = {{MapFn::sqrt, 4},       {MapFn::div, 4},      {MapFn::rsqrt, 7}, {MapFn::exp, 8},
                                                   {MapFn::expm1, 8},      {MapFn::sigmoid, 10}, {MapFn::tanh, 12}, {MapFn::silu, 12},
                                                   {MapFn::log, 13},       {MapFn::log1p, 13},   {MapFn::erf, 18},  {MapFn::gelu, 18},
                                                   {MapFn::gelu_tanh, 18}, {MapFn::softplus, 27}};
constexpr double kSine = 30;  // sines, powers and the rest of the dear ones

// Ten rounds of Philox and what is made of them, measured like the functions above (gumbel: a uniform number and two logarithms).
double cycles_of(RandomKind kind) {
  switch (kind) {
    case RandomKind::bits:
      return 25;
    case RandomKind::uniform:
    case RandomKind::keep_mask:
      return 28;
    case RandomKind::gumbel:
      return 54;
    case RandomKind::normal:
      return 86;
  }
  return 0;
}

double cycles_of(MapFn fn) {
  for (const auto& [known, cycles] : kFunctions)
    if (known == fn) return cycles;
  return is_transcendental(fn) ? kSine : kOp;
}

}  // namespace

// Loops from the outermost to the innermost.
struct LoopCycles::Nest {
  const Kernel& kernel;
  std::vector<AxisId> loops;
  Lanes lanes;

  double trips_of(AxisId axis) const {
    const auto extent = static_cast<double>(kernel.extent(axis));
    return axis == lanes.axis ? std::ceil(extent / lanes.count) : extent;
  }
  // Of the loops up to the innermost of these axes.
  double trips_around(uint64_t axes) const {
    double passed = 1, around = 1;
    for (const AxisId a : loops) {
      passed *= trips_of(a);
      if (axes >> a & 1) around = passed;
    }
    return around;
  }
  double trips() const { return trips_around(~uint64_t{0}); }
  // Times that the innermost loop with more than one iteration is entered.
  double entries() const {
    double points = trips();
    for (size_t i = loops.size(); i-- > 0;)
      if (trips_of(loops[i]) > 1) return points / trips_of(loops[i]);
    return points;
  }
};

LoopCycles::LoopCycles(const Kernel& kernel, const Processor& processor)
    : kernel_(kernel), processor_(processor), axes_(axes_of_values(kernel)) {}

void LoopCycles::need(std::vector<bool>& used, const Subscript& index) const {
  for (const Subscript::Dynamic& d : index.dynamic) used[d.value] = true;
}

// From lane to lane, as the emitter of values finds it; none where that differs.
std::optional<int64_t> LoopCycles::step(const Subscript& index, const Lanes& lanes) const {
  int64_t sum = lanes.axis ? index.affine.coefficient(*lanes.axis) : 0;
  for (const Subscript::Dynamic& d : index.dynamic) {
    const std::optional<int64_t> each = step(d.value, lanes);
    if (!each) return std::nullopt;
    sum += *each * d.coefficient;
  }
  return sum;
}

std::optional<int64_t> LoopCycles::step(ValueId value, const Lanes& lanes) const {
  if (!lanes.axis || !(axes_[value] >> *lanes.axis & 1)) return 0;
  const Scalar& v = kernel_.values[value];
  if (v.kind == ScalarKind::index) return step(v.index, lanes);
  if (v.kind != ScalarKind::quotient && v.kind != ScalarKind::remainder) return std::nullopt;
  const std::optional<int64_t> whole = step(v.operands[0], lanes);
  if (!whole || (*whole != 0 && (!lanes.aligned || v.integer % lanes.count != 0))) return std::nullopt;
  return v.kind == ScalarKind::quotient ? 0 : whole;
}

// That the lanes fill, as the units count them: at least f32 or i32 is held. Costs of a register are those of a whole unit.
double LoopCycles::registers(DType dtype, const Nest& nest) const {
  const double bytes = static_cast<double>(std::max<int64_t>(4, bytes_of(dtype))) * nest.lanes.count;
  return std::max(1.0, bytes * 8 / processor_.vector_bits * processor_.vector_cycles());
}

// Neighbouring lanes on neighbouring elements are one access, equal ones a broadcast, others one for each lane.
double LoopCycles::access(const Subscript& index, double registers, double apart, const Nest& nest) const {
  const std::optional<int64_t> apart_by = step(index, nest.lanes);
  return apart_by == 0 ? kLoad : apart_by == 1 ? registers : apart * nest.lanes.count;
}

double LoopCycles::guards(const Scalar& v, const Nest& nest) const {
  double cycles = 0;
  for (const Range& g : v.guards) cycles += step(g.index, nest.lanes) == 0 ? kScalar : 2 * kOp * registers(DType::i64, nest);
  return cycles;
}

double LoopCycles::value(const Scalar& v, const Nest& nest, bool along_lanes) const {
  const double wide = along_lanes ? registers(v.dtype, nest) : 1;
  switch (v.kind) {
    case ScalarKind::constant:
    case ScalarKind::reduction:
    case ScalarKind::running:
    case ScalarKind::in_range:
      return 0;
    case ScalarKind::index:
      return along_lanes ? kOp * wide : kScalar;
    case ScalarKind::cast:
      return kOp * wide;
    case ScalarKind::quotient:
    case ScalarKind::remainder:
      if (std::has_single_bit(static_cast<uint64_t>(v.integer))) return along_lanes ? kOp * wide : kScalar;
      return along_lanes ? kWideDivision * wide : kScalar * 4;
    case ScalarKind::load:
      if (nest.lanes.turned && is_turned(v, *nest.lanes.axis, *nest.lanes.turned)) return kTurnedLoad * wide;
      return access(v.index, kLoad * wide, kGathered, nest);
    case ScalarKind::checked:
      return 2 * kOp * wide;
    case ScalarKind::map:
      return cycles_of(v.fn) * wide;
    case ScalarKind::random:
      return cycles_of(v.random) * wide;
  }
  return 0;
}

double LoopCycles::values(std::vector<bool> used, const Nest& nest) const {
  double cycles = 0;
  std::vector<const Scalar*> compared;  // what several values are guarded by is compared once
  for (size_t i = kernel_.values.size(); i-- > 0;) {
    if (!used[i]) continue;
    const Scalar& v = kernel_.values[i];
    if (std::ranges::none_of(compared, [&](const Scalar* c) { return c->guards == v.guards; })) {
      compared.push_back(&v);
      cycles += nest.trips_around(axes_[i]) * guards(v, nest);
    }
    const std::optional<ValueId> slope = argument_of_gelu_slope(kernel_, v);
    if (slope) {
      used[*slope] = true;
      cycles += nest.trips_around(axes_[i]) * kGeluSlope * registers(v.dtype, nest);
      continue;
    }
    for (const ValueId x : v.operands) used[x] = true;
    need(used, v.index);
    for (const Range& g : v.guards) need(used, g.index);
    const bool part = v.kind == ScalarKind::quotient || v.kind == ScalarKind::remainder || v.kind == ScalarKind::index;
    const bool along_lanes = part ? !step(static_cast<ValueId>(i), nest.lanes) : nest.lanes.axis && axes_[i] >> *nest.lanes.axis & 1;
    cycles += nest.trips_around(axes_[i]) * value(v, nest, along_lanes);
  }
  return cycles;
}

double LoopCycles::stage(const Stage& stage, const std::vector<AxisId>& outer, const Lanes& lanes) const {
  Nest nest{kernel_, {}, lanes};
  for (const AxisId a : outer)
    if (a != lanes.axis) nest.loops.push_back(a);
  if (kernel_.sequence) nest.loops.push_back(*kernel_.sequence);
  const bool inside = lanes.axis && std::ranges::find(stage.axes, *lanes.axis) != stage.axes.end();
  if (lanes.axis && !inside) nest.loops.push_back(*lanes.axis);
  const double points = nest.trips();
  for (const AxisId a : stage.axes) nest.loops.push_back(a);
  const double trips = nest.trips();

  std::vector<bool> used(kernel_.values.size(), false);
  double each = kIteration;
  for (const uint16_t r : stage.reductions) {
    const Accumulation& a = kernel_.reductions[r];
    used[a.value] = true;
    if (a.position != kNoValue) used[a.position] = true;
    each += (a.fold == Fold::logsumexp ? cycles_of(MapFn::exp) + cycles_of(MapFn::log)
             : a.position != kNoValue  ? 3 * kOp
                                       : kOp) *
            registers(a.dtype, nest);
  }
  for (const Store& s : stage.stores) {
    used[s.value] = true;
    need(used, s.index);
    const double wide = registers(kernel_.buffers[s.buffer].dtype, nest);
    const bool folds = folds_in_place(s.mode) && !s.index.dynamic.empty();
    each += access(s.index, (folds ? kFoldedVector : kStore) * wide, folds ? kFolded : kScattered, nest);
  }
  double cycles = values(used, nest) + trips * each + nest.entries() * kEntry;
  if (!stage.reductions.empty() && !stage.axes.empty()) {
    cycles = std::max(cycles, (trips - kAhead * points) * kSumLatency);
    if (inside) cycles += points * kHorizontal * static_cast<double>(stage.reductions.size());
  }
  return cycles;
}

double LoopCycles::panel(ValueId root, const std::vector<AxisId>& loops, const Lanes& lanes) const {
  const Nest nest{kernel_, loops, lanes};
  std::vector<bool> used(kernel_.values.size(), false);
  used[root] = true;
  return values(used, nest) + nest.trips() * (kStore + kIteration) + nest.entries() * kEntry;
}

}  // namespace einc
