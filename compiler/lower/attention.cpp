// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/kernel_work.h"
#include "runtime/base/check.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

class AttentionVerifier {
 public:
  explicit AttentionVerifier(const Kernel& kernel) : kernel_(kernel), a_(*kernel.attention), axes_(axes_of_values(kernel)) {}

  std::string run() {
    if (!kernel_.stages.empty() || !kernel_.outer.empty() || kernel_.sequence) return "an attention kernel has no stages";
    const uint64_t needs_all = kernel_.reductions.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << kernel_.reductions.size()) - 1;
    needs_ = reductions_of_values(kernel_);
    for (const AttentionStep& step : a_.steps) check(step), check_pair(step);
    const uint64_t points = bits(a_.batch) | bits(a_.turns);
    for (const KeyBound& b : a_.bounds)
      if (b.base != kNoValue && (b.base >= kernel_.values.size() || axes_[b.base] & ~points || needs_[b.base]) && problem_.empty())
        problem_ = "a bound of keys follows from more than points";
    if (a_.softmax)
      for (const auto& buffer : {a_.softmax->log_sums, a_.softmax->deltas})
        if (buffer && *buffer >= kernel_.buffers.size() && problem_.empty()) problem_ = "softmax names no buffer";
    if (ready_ != needs_all && problem_.empty()) return "a reduction belongs to no step";
    return problem_;
  }

 private:
  void require(bool holds, const AttentionStep& step, const char* what) {
    if (!holds && problem_.empty()) problem_ = fmt::format("r{} {}", step.reduction, what);
  }

  void check(const AttentionStep& step) {
    const uint64_t points = bits(a_.batch) | bits(a_.turns), row = bit(a_.row), key = bit(a_.key), free = bits(step.free),
                   over = bits(step.over);
    const auto within = [&](ValueId id, uint64_t scope) { return (axes_[id] & ~scope) == 0 && (needs_[id] & ~ready_) == 0; };
    switch (step.part) {
      case AttentionPart::scores:
        require(within(step.left, points | row | over) && within(step.right, points | key | over), step, "multiplies no rows with keys");
        break;
      case AttentionPart::fold:
        require(over == key && within(kernel_.reductions[step.reduction].value, points | row | key), step, "folds no pairs");
        break;
      case AttentionPart::mix:
        require(over == key && within(step.left, points | row | key) && within(step.right, points | key | free), step, "mixes no pairs");
        break;
      case AttentionPart::gather:
        require(over == (row | bits(a_.turns)) && within(step.left, points | row | key) && within(step.right, points | row | free), step,
                "gathers no pairs");
        break;
    }
    ready_ |= uint64_t{1} << step.reduction;
    for (const Store& s : step.stores) {
      const uint64_t kept = step.part == AttentionPart::gather ? bits(a_.batch) | key | free : points | row | free;
      require(s.buffer < kernel_.buffers.size() && within(s.value, kept), step, "is stored outside its loops");
    }
  }

  // Products of softmax's attention say what of it they make or read, others say nothing.
  void check_pair(const AttentionStep& step) {
    const auto is = [&](PairValue a, PairValue b) { return step.pair == a || step.pair == b; };
    if (!a_.softmax || step.part == AttentionPart::fold)
      return require(step.pair == PairValue::other, step, "is of a softmax that is none");
    require(step.part == AttentionPart::scores ? is(PairValue::scores, PairValue::weight_gradient)
                                               : is(PairValue::weights, PairValue::score_gradient),
            step, "is of no such value of softmax");
  }

  const Kernel& kernel_;
  const Attention& a_;
  const std::vector<uint64_t> axes_;
  std::vector<uint64_t> needs_;
  uint64_t ready_ = 0;
  std::string problem_;
};

}  // namespace

std::string verify_attention(const Kernel& kernel) { return AttentionVerifier(kernel).run(); }

void divide_by_multiplying(Kernel& kernel) {
  const std::vector<uint64_t> axes = axes_of_values(kernel);
  const uint64_t key = bit(kernel.attention->key);
  std::vector<Scalar> made;
  std::vector<ValueId> now(kernel.values.size());
  std::map<ValueId, ValueId> reciprocal;  // of old values
  const auto rename = [&](Subscript& index) {
    for (Subscript::Dynamic& d : index.dynamic) d.value = now[d.value];
  };
  for (ValueId id = 0; id < kernel.values.size(); ++id) {
    Scalar v = std::move(kernel.values[id]);
    const bool divides = v.kind == ScalarKind::map && v.fn == MapFn::div && v.dtype == DType::f32 && axes[id] & key &&
                         !(axes[v.operands[1]] & key) && made[now[v.operands[1]]].dtype == DType::f32;
    if (divides && reciprocal.count(v.operands[1]) == 0) {
      Scalar one, inverse;
      one.real = 1;
      made.push_back(one);
      inverse.kind = ScalarKind::map;
      inverse.fn = MapFn::div;
      inverse.operands = {static_cast<ValueId>(made.size() - 1), now[v.operands[1]]};
      made.push_back(std::move(inverse));
      reciprocal.emplace(v.operands[1], static_cast<ValueId>(made.size() - 1));
    }
    const ValueId by = divides ? reciprocal.at(v.operands[1]) : kNoValue;
    for (ValueId& x : v.operands) x = now[x];
    if (divides) v.fn = MapFn::mul, v.operands[1] = by;
    rename(v.index);
    for (Range& g : v.guards) rename(g.index);
    now[id] = static_cast<ValueId>(made.size());
    made.push_back(std::move(v));
  }
  kernel.values = std::move(made);
  const auto move = [&](ValueId& id) {
    if (id != kNoValue) id = now[id];
  };
  for (Accumulation& r : kernel.reductions) move(r.value), move(r.position);
  for (KeyBound& b : kernel.attention->bounds) move(b.base);
  for (AttentionStep& step : kernel.attention->steps) {
    move(step.left), move(step.right);
    for (Store& s : step.stores) move(s.value), rename(s.index);
  }
}

std::optional<PointValues> bases_of(const Kernel& kernel, std::span<const KeyBound> bounds) {
  std::vector<ValueId> values;
  for (const KeyBound& b : bounds) values.push_back(b.base);
  return point_values(kernel, std::move(values));
}

KeyRange keys_of(const Kernel& kernel, int64_t first_row, int64_t last_row, std::span<const int64_t> bases) {
  const Attention& a = *kernel.attention;
  const int64_t keys = kernel.extent(a.key);
  KeyRange range{0, keys};
  for (size_t i = 0; i < a.bounds.size(); ++i) {
    const KeyBound& b = a.bounds[i];
    const int64_t limit = b.limit + bases[i], at_first = b.factor * first_row + limit, at_last = b.factor * last_row + limit;
    if (b.side == BoundSide::least)
      range.first = std::max(range.first, std::min(at_first, at_last) / a.block_keys * a.block_keys);
    else
      range.last = std::min(range.last, round_up(std::max(std::max(at_first, at_last) + 1, int64_t{0}), a.block_keys));
  }
  range.last = std::max(range.first, range.last);  // no keys, where bounds cross
  return range;
}

int64_t pairs_made(const Kernel& kernel) {
  const Attention& a = *kernel.attention;
  const auto bases = bases_of(kernel, a.bounds);
  EINC_CHECK(bases.has_value(), "a bound of keys that nobody can count");
  const int64_t rows = kernel.extent(a.row), times = trips(kernel, (bits(a.batch) | bits(a.turns)) & ~bases->axes);
  int64_t most = 0;
  for (int64_t device = 0; device < bases->devices; ++device) {
    int64_t pairs = 0;
    for (int64_t point = 0; point < bases->points; ++point)
      for (int64_t first = 0; first < rows; first += a.block_rows) {
        const int64_t last = std::min(first + a.block_rows, rows) - 1;
        pairs += (last - first + 1) * keys_of(kernel, first, last, bases->at(device, point)).count();
      }
    most = std::max(most, pairs * times);
  }
  return most;
}

}  // namespace einc
