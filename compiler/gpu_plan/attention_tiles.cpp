// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/attention_tiles.h"

#include <algorithm>
#include <set>

#include "compiler/gpu_plan/thread_plan.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr int64_t kWidest = 256;
constexpr int64_t kWords = 144, kMostWords = 176;  // of scores and sums that a thread is to hold, and may
constexpr int64_t kResidentBlocks = 2;             // on a processor
constexpr int kShortStep = 32;
// With wgmma operands take no registers, so that more are left for sums; three blocks on a processor, one of which makes scores while
// another multiplies, where little else than sums is moved out of registers for that: the backward of keys with heads of 64 takes 152 us
// rather than 173 on an H200 (batch 16 x 12 heads x 1024), with heads of 128 it would take 1.8 times as long.
constexpr int64_t kGroupWords = 160, kMostGroupWords = 184, kOtherWords = 8;
constexpr int64_t kProcessorWords = 65536;
constexpr int kGroupBlocks = 3;

class AttentionPlanner {
 public:
  AttentionPlanner(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products)
      : kernel_(kernel), gpu_(gpu), f32_products_(f32_products), a_(*kernel.attention), axes_(axes_of_values(kernel)) {}

  std::optional<AttentionTiles> run() {
    const auto has = [&](AttentionPart part) {
      return std::any_of(a_.steps.begin(), a_.steps.end(), [&](const AttentionStep& s) { return s.part == part; });
    };
    const bool gathers = has(AttentionPart::gather);
    if (gathers && (has(AttentionPart::mix) || has(AttentionPart::fold))) return std::nullopt;
    t_.results_over_keys = !gathers;
    t_.own = gathers ? a_.key : a_.row;
    t_.other = gathers ? a_.row : a_.key;
    if (!find_dtype()) return std::nullopt;
    for (size_t i = 0; i < a_.steps.size(); ++i)
      if (!add(i)) return std::nullopt;
    if (t_.results.empty() && t_.folds.empty()) return std::nullopt;
    if (!find_online() && !folds_need_no_other()) return std::nullopt;
    for (AxisId b : a_.batch) t_.batches *= kernel_.extent(b);
    find_vectors();
    t_.wgmma = takes_wgmma();
    if (!choose_step()) return std::nullopt;
    if (!t_.wgmma)
      choose_sets();
    else if (words() + kOtherWords <= kProcessorWords / (kGroupBlocks * AttentionTiles::kThreads))
      t_.blocks_together = kGroupBlocks;
    return std::move(t_);
  }

 private:
  bool find_dtype() {
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::scores) t_.dtype = kernel_.values[step.left].dtype;
    return t_.dtype == DType::bf16 || t_.dtype == DType::f16 || (t_.dtype == DType::f32 && f32_products_ == ProductSums::tf32);
  }

  bool add(size_t index) {
    const AttentionStep& step = a_.steps[index];
    const DType sums = kernel_.reductions[step.reduction].dtype;
    if (sums != DType::f32) return false;
    AttentionTiles::Product p;
    p.step = index;
    switch (step.part) {
      case AttentionPart::fold:
        if (!t_.results_over_keys) return false;
        t_.folds.push_back(step.reduction);
        return true;
      case AttentionPart::scores:
        if (step.over.size() != 1) return false;
        p.inner = step.over[0];
        p.own = tile(t_.results_over_keys ? step.left : step.right, p.inner, true);
        p.other = tile(t_.results_over_keys ? step.right : step.left, p.inner, false);
        if (p.own < 0 || p.other < 0) return false;
        t_.scores.push_back(p);
        return true;
      case AttentionPart::mix:
      case AttentionPart::gather:
        if (step.free.size() != 1 || kernel_.values[step.left].dtype != t_.dtype) return false;
        p.inner = step.free[0];
        p.other = tile(step.right, p.inner, false);
        if (p.other < 0) return false;
        t_.results.push_back(p);
        t_.lefts.push_back(step.left);
        t_.row_factors.push_back(kNoValue);
        return true;
    }
    return false;
  }

  // The tile of a load whose rows can be copied 16 bytes at a time; -1: there is none.
  int tile(ValueId id, AxisId inner, bool own) {
    const Scalar& v = kernel_.values[id];
    const int64_t width = kernel_.extent(inner);
    if (v.kind != ScalarKind::load || v.dtype != t_.dtype || kernel_.buffers[v.slot].dtype != t_.dtype) return -1;
    if (!v.guards.empty() || !v.index.dynamic.empty() || width % 16 != 0 || width > kWidest) return -1;
    if (v.index.affine.coefficient(inner) != 1 || v.index.affine.constant % t_.vector() != 0) return -1;
    for (const Affine::Term& term : v.index.affine.terms)
      if (term.axis != inner && term.coefficient % t_.vector() != 0) return -1;
    for (size_t k = 0; k < t_.tiles.size(); ++k)
      if (t_.tiles[k].own == own && same(t_.tiles[k], v, inner)) return static_cast<int>(k);
    t_.tiles.push_back({id, inner, width, own});
    return static_cast<int>(t_.tiles.size()) - 1;
  }

  // The same elements, the inner axis by another name.
  bool same(const AttentionTiles::Tile& tile, const Scalar& v, AxisId inner) const {
    const Scalar& known = kernel_.values[tile.load];
    const auto without = [](const Affine& index, AxisId axis) { return index + Affine::of_axis(axis, -index.coefficient(axis)); };
    return known.slot == v.slot && tile.width == kernel_.extent(inner) &&
           without(known.index.affine, tile.inner) == without(v.index.affine, inner);
  }

  bool is_map(ValueId id, MapFn fn) const { return kernel_.values[id].kind == ScalarKind::map && kernel_.values[id].fn == fn; }
  bool is_fold(ValueId id, uint16_t r) const {
    return kernel_.values[id].kind == ScalarKind::reduction && kernel_.values[id].slot == r && kernel_.values[id].dtype == DType::f32;
  }

  bool find_online() {
    if (t_.folds.size() != 2) return false;
    AttentionTiles::Online o{t_.folds[0], t_.folds[1], kernel_.reductions[t_.folds[0]].value, kernel_.reductions[t_.folds[1]].value};
    if (kernel_.reductions[o.max].fold != Fold::max || kernel_.reductions[o.sum].fold != Fold::sum) return false;
    const std::vector<uint64_t> needs = reductions_of_values(kernel_);
    const uint64_t folds = uint64_t{1} << o.max | uint64_t{1} << o.sum;
    if (needs[o.x] & folds || !is_map(o.exponential, MapFn::exp) || kernel_.values[o.exponential].dtype != DType::f32) return false;
    const ValueId difference = kernel_.values[o.exponential].operands[0];
    if (!is_map(difference, MapFn::sub) || kernel_.values[difference].dtype != DType::f32) return false;
    if (kernel_.values[difference].operands[0] != o.x || !find_most(o, kernel_.values[difference].operands[1])) return false;
    for (size_t k = 0; k < t_.lefts.size(); ++k)
      if (!find_factor(o, k)) return false;
    t_.online = o;
    t_.folds.clear();
    return true;
  }

  // What x is lowered by: the maximum, or the larger one of it and what a row has without its pairs.
  bool find_most(AttentionTiles::Online& o, ValueId most) const {
    if (is_fold(most, o.max)) return true;
    if (!is_map(most, MapFn::maximum) || kernel_.values[most].dtype != DType::f32) return false;
    const auto& x = kernel_.values[most].operands;
    const size_t fold = is_fold(x[0], o.max) ? 0 : 1;
    o.most = most, o.least = x[1 - fold];
    const bool of_row = !(axes_[o.least] >> a_.key & 1) && reductions_of_values(kernel_)[o.least] == 0;
    return is_fold(x[fold], o.max) && of_row && kernel_.values[o.least].dtype == DType::f32;
  }

  // A product's left side as the exponential times something that a row has one of.
  bool find_factor(const AttentionTiles::Online& o, size_t k) {
    ValueId left = t_.lefts[k];
    if (kernel_.values[left].kind == ScalarKind::cast) left = kernel_.values[left].operands[0];
    if (left == o.exponential) return true;
    if (!is_map(left, MapFn::mul)) return false;
    const auto& x = kernel_.values[left].operands;
    const ValueId factor = x[0] == o.exponential ? x[1] : x[1] == o.exponential ? x[0] : kNoValue;
    if (factor == kNoValue || axes_[factor] >> a_.key & 1) return false;
    t_.row_factors[k] = factor;
    return true;
  }

  bool folds_need_no_other() const {
    const std::vector<uint64_t> needs = reductions_of_values(kernel_);
    uint64_t folds = 0;
    for (uint16_t r : t_.folds) folds |= uint64_t{1} << r;
    return std::none_of(t_.folds.begin(), t_.folds.end(), [&](uint16_t r) { return needs[kernel_.reductions[r].value] & folds; });
  }

  // Of f32, as a softmax's statistics are. Each tile would wait for them otherwise.
  void find_vectors() {
    uint64_t known = bit(t_.other);
    for (const std::vector<AxisId>* axes : {&a_.batch, &a_.turns}) known |= bits(*axes);
    constexpr int together = 16 / sizeof(float);  // that a copy moves at once
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      const Scalar& v = kernel_.values[id];
      const bool loads = v.kind == ScalarKind::load && kernel_.buffers[v.slot].dtype == DType::f32 && v.dtype == DType::f32;
      if (!loads || !v.guards.empty() || !v.index.dynamic.empty() || (axes_[id] & ~known) != 0) continue;
      if (kernel_.extent(t_.other) % together == 0 && packs(kernel_, v.slot, v.index, t_.other, together)) t_.vectors.push_back(id);
    }
  }

  bool takes_wgmma() const {
    return gpu_.has_wgmma() && bytes_of(t_.dtype) == 2 &&
           std::ranges::all_of(t_.tiles, [](const AttentionTiles::Tile& tile) { return tile.width % AttentionTiles::kSwizzledRow == 0; });
  }

  // Scores and sums stay in registers.
  bool choose_step() {
    const AttentionTiles longest = t_;
    const int least = t_.wgmma ? kShortStep : 16;
    const int64_t wanted = t_.wgmma ? kGroupWords : kWords, most = t_.wgmma ? kMostGroupWords : kMostWords;
    while (t_.step > least && (words() > wanted || t_.shared_bytes() > gpu_.block_shared_bytes)) t_.step /= 2;
    divide();
    if (words() <= most && t_.shared_bytes() <= gpu_.block_shared_bytes) return true;
    if (!t_.wgmma) return false;
    t_ = longest, t_.wgmma = false;
    return choose_step();
  }

  // Two sets of rows a warp halve what it reads of the other axis from shared memory, and a block's copies, for each row. Shorter steps
  // cost little where no maximum is kept, but what remains of a turn of 16 is no gain (codegen/cuda/README.md has the counts). As many rows
  // reside on a processor as before where two such blocks do; a grid that would leave processors without them stays as it is.
  void choose_sets() {
    const AttentionTiles one = t_;
    t_.sets = 2;
    if (!t_.online && words() > kMostWords) t_.step = std::min(t_.step, kShortStep);
    divide();
    const bool resident = t_.shared_bytes() <= gpu_.shared_bytes_of(kResidentBlocks);
    if (words() > kMostWords || !resident || t_.blocks() < kResidentBlocks * gpu_.processors) t_ = one;
  }

  void divide() { t_.own_blocks = (kernel_.extent(t_.own) + t_.block() - 1) / t_.block(); }

  // Of scores, sums, and what a product multiplies, rounded, that a thread holds; with wgmma of what all products do.
  int64_t words() const {
    int64_t sums = 0;
    for (const AttentionTiles::Product& p : t_.results) sums += kernel_.extent(p.inner) / 2;
    const int64_t lefts = 8 / bytes_of(t_.dtype);  // of a word
    const int64_t together =
        t_.wgmma && !t_.online ? std::max<int64_t>(1, static_cast<int64_t>(std::set(t_.lefts.begin(), t_.lefts.end()).size())) : 1;
    return t_.sets * (sums + static_cast<int64_t>(t_.scores.size()) * t_.step / 2 + together * t_.step / lefts);
  }

  const Kernel& kernel_;
  const GpuShape& gpu_;
  const ProductSums f32_products_;
  const Attention& a_;
  const std::vector<uint64_t> axes_;
  AttentionTiles t_;
};

}  // namespace

int64_t AttentionTiles::shared_bytes() const {
  int64_t elements = 0;
  for (const Tile& tile : tiles) elements += pitch(tile) * (tile.own ? block() : 2 * step);
  return elements * bytes_of(dtype) + static_cast<int64_t>(vectors.size()) * 2 * step * bytes_of(DType::f32);
}

std::optional<AttentionTiles> tile_attention_for_tensor_cores(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products) {
  return AttentionPlanner(kernel, gpu, f32_products).run();
}

}  // namespace einc
