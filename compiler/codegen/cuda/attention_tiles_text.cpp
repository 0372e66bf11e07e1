// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/attention_tiles_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/attention_products_text.h"
#include "compiler/gpu_plan/thread_plan.h"

namespace einc {
namespace {

class TilesText : AttentionProductsText {
 public:
  TilesText(const Kernel& kernel, const AttentionTiles& tiles) : AttentionProductsText(kernel, tiles) {
    short_exp_ = true;
    if (t_.online) score_ = scaled_value(kernel, t_.online->x).value_or(ScaledValue{t_.online->x});
    for (const ValueId left : t_.lefts) {
      const bool may_grow = t_.dtype != DType::f16;  // what is left out may have kept it below the largest number
      const auto scaled = t_.online || !may_grow ? std::nullopt : scaled_value(kernel, before_packing(left));
      left_.push_back(scaled.value_or(ScaledValue{before_packing(left)}));
    }
  }

  std::string run() {
    ++depth_;
    find_memory();
    find_block();
    declare_results();
    for (AxisId a : a_.turns) {
      axis_[a] = fmt::format("a{}", a);
      open(fmt::format("for ({0} a{1} = 0; a{1} < {2}; ++a{1})", index_, a, kernel_.extent(a)));
    }
    load_own();
    find_range();
    if (!t_.folds.empty()) {
      declare_folds();
      over_tiles([&] { fold_tile(); }, Pass::folds);
      finish_folds(t_.folds, "");
    }
    if (t_.online) declare_online();
    if (!t_.results.empty()) over_tiles([&] { product_tile(); }, Pass::products);
    for (size_t k = 0; k < a_.turns.size(); ++k) close();
    if (t_.online) finish_folds({t_.online->sum}, "sum");
    store_folds();
    store_results();
    return std::move(text_);
  }

 private:
  // What of the other axis counts for this block, in whole tiles.
  void find_range() {
    line("{0} first = 0, last = {1};", index_, extent(t_.other));
    for (const KeyMask& mask : masks_)
      if (mask.bound.base != kNoValue) bounds_.name_base(mask.bound.base, value(mask.bound.base));
    for (const std::string& limit : bounds_.limits()) line("{}", limit);
  }

  // --- the pairs of a tile ---

  void for_whole_and_edge(const auto& body) {
    const std::string whole = bounds_.is_whole(masks_);
    if (!whole.empty()) open(fmt::format("if ({})", whole));
    whole_ = true;
    body();
    whole_ = false;
    if (whole.empty()) return;
    otherwise();
    body();
    close();
  }

  std::string clamped(AxisId axis, const std::string& at, int tile) const {
    return extent(axis) % tile == 0 ? at : fmt::format("({0} < {1} ? {0} : {2})", at, extent(axis), extent(axis) - 1);
  }

  int rows() const { return 2 * t_.sets; }  // of a lane
  std::string own_row() const { return fmt::format("own0 + warp * {} + group + 8 * h", t_.warp_rows()); }
  std::string of_rows(const std::string& start) const {
    return fmt::format("[{}] = {{{}}}", rows(), fmt::join(std::vector<std::string>(static_cast<size_t>(rows()), start), ", "));
  }
  void open_rows() {
    line("#pragma unroll");
    open(fmt::format("for (int h = 0; h < {}; ++h)", rows()));
    line("const {} own = {};", index_, clamped(t_.own, "(" + own_row() + ")", t_.block()));
    axis_[t_.own] = "own";
  }
  void open_pairs() {
    line("#pragma unroll");
    open(fmt::format("for (int j = 0; j < {}; ++j)", columns()));
  }
  void open_elements() {
    line("#pragma unroll");
    open("for (int e = 0; e < 2; ++e)");
    line("const {} other_at = other0 + j * 8 + quad * 2 + e, other = {};", index_,
         whole_ ? "other_at" : clamped(t_.other, "other_at", t_.step));
    axis_[t_.other] = "other";
    for (size_t k = 0; k < t_.vectors.size(); ++k)
      scopes_.back()[t_.vectors[k]] = fmt::format("vector{}[turn * {} + j * 8 + quad * 2 + e]", k, t_.step);
    if (whole_)
      for (const KeyMask& mask : masks_) scopes_.back()[mask.comparison] = mask.within ? "true" : "false";
    for (const AttentionTiles::Product& p : t_.scores)
      results_[step_of(p).reduction] = fmt::format("s{}[h / 2][j][h % 2 * 2 + e]", step_of(p).reduction);
  }
  std::string inside(const std::string& x, const std::string& otherwise) const {
    return bounds_.other_has_rest() && !whole_ ? fmt::format("other_at < {} ? {} : {}", extent(t_.other), x, otherwise) : x;
  }

  void declare_folds() {
    for (uint16_t r : t_.folds) {
      const std::string start = identity(kernel_.reductions[r].fold, DType::f32);
      line("f32 r{}{};", r, of_rows(start));
    }
  }

  void fold_tile() {
    scores(Pass::folds);
    for_whole_and_edge([&] { fold_pairs(); });
  }

  void fold_pairs() {
    open_rows();
    open_pairs();
    open_elements();
    for (uint16_t r : t_.folds) {
      const Fold fold = kernel_.reductions[r].fold;
      const std::string x = as(kernel_.reductions[r].value, DType::f32);
      line("r{}[h] = {};", r, combine(fold, DType::f32, fmt::format("r{}[h]", r), "(" + inside(x, identity(fold, DType::f32)) + ")"));
    }
    close(), close(), close();
  }

  // Across the four lanes that share a row.
  void finish_folds(const std::vector<uint16_t>& folds, const std::string& name) {
    for (uint16_t r : folds) {
      const std::string own = name.empty() ? fmt::format("r{}[h]", r) : name + "[h]";
      line("for (int h = 0; h < {}; ++h)", rows());
      line("  for (int lanes = 1; lanes < 4; lanes *= 2) {} = {};", own,
           combine(kernel_.reductions[r].fold, DType::f32, own, fmt::format("__shfl_xor_sync(0xffffffffu, {}, lanes)", own)));
      results_[r] = own;
    }
  }

  // A row's maximum is that of its scores without their factor. What it begins with may be as low as numbers are; exponents of base 2 are
  // log2(e) and the factor times as low, which would be infinite, and their difference from a score that is left out NaN.
  void declare_online() {
    line("f32 most{}, sum{};", of_rows("-infinity()"), of_rows("0.0f"));
    if (t_.online->least == kNoValue) return;
    open_rows();
    line("most[h] = larger({} / {}, {});", as(t_.online->least, DType::f32), literal_of(score_.factor, DType::f32),
         literal_of(-1e37 / std::max(1.0, score_.factor), DType::f32));
    close();
  }

  void product_tile() {
    scores(Pass::products);
    std::vector<ValueId> made;
    for (size_t k = 0; k < t_.results.size(); ++k) {
      const ValueId left = left_of(k);
      if (std::find(made.begin(), made.end(), left) != made.end()) continue;
      made.push_back(left);
      line("u32 left{}[{}][{}][2]{};", left, t_.sets, columns(), short_ ? "" : "[2]");
    }
    for_whole_and_edge([&] { make_pairs(made); });
    multiply();
  }

  // Packing rounds: a value is not rounded before.
  ValueId before_packing(ValueId left) const {
    const Scalar& v = kernel_.values[left];
    const bool rounds = v.kind == ScalarKind::cast && v.dtype == t_.dtype && kernel_.values[v.operands[0]].dtype == DType::f32;
    return short_ && rounds ? v.operands[0] : left;
  }

  void make_pairs(const std::vector<ValueId>& made) {
    open_rows();
    if (t_.online) grow();
    open_pairs();
    for (ValueId left : made) line("f32 pair{}[2];", left);
    open_elements();
    if (t_.online) {
      line("const f32 weight = exp2_short(add_product(x[j][e], {0}, -(reached * {0})));", log2_e(score_.factor));
      scopes_.back()[t_.online->exponential] = "weight";
    }
    for (ValueId left : made) line("pair{}[e] = {};", left, inside(t_.online ? "weight" : unscaled(factored(left)), "0.0f"));
    if (t_.online) line("sum[h] += pair{}[e];", t_.online->exponential);
    close();
    for (ValueId left : made)
      if (short_)
        line("left{0}[h / 2][j][h % 2] = pack_{1}x2(pair{0}[0], pair{0}[1]);", left, element_);
      else
        for (int e = 0; e < 2; ++e) line("left{0}[h / 2][j][h % 2][{1}] = to_tf32(__float_as_uint(pair{0}[{1}]));", left, e);
    close();
    close();
  }

  const ScaledValue& factored(ValueId left) const {
    return left_[static_cast<size_t>(std::ranges::find(t_.lefts, left) - t_.lefts.begin())];
  }

  void name_online() {
    const std::string factor = score_.factor == 1 ? "" : " * " + literal_of(score_.factor, DType::f32);
    results_[t_.online->max] = factor.empty() ? "most[h]" : fmt::format("(most[h]{})", factor), results_[t_.online->sum] = "sum[h]";
  }

  // A row's maximum with this tile, and what was summed before in terms of it.
  void grow() {
    line("f32 x[{}][2];", columns());
    line("f32 reached = most[h];");
    open_pairs();
    open_elements();
    line("x[j][e] = {};", inside(unscaled(score_), "-infinity()"));
    line("reached = larger(reached, x[j][e]);");
    close(), close();
    line("for (int lanes = 1; lanes < 4; lanes *= 2) reached = larger(reached, __shfl_xor_sync(0xffffffffu, reached, lanes));");
    line("const f32 before = most[h];");
    line("most[h] = reached;");
    line("if (reached == -infinity()) reached = 0.0f;");
    line("const f32 shrink = exp2_short((before - reached) * {});", log2_e(score_.factor));
    line("sum[h] *= shrink;");
    for (const AttentionTiles::Product& p : t_.results) {
      line("#pragma unroll");
      line("for (int f = 0; f < {0}; ++f) o{1}[h / 2][f][h % 2 * 2] *= shrink, o{1}[h / 2][f][h % 2 * 2 + 1] *= shrink;",
           extent(p.inner) / 8, step_of(p).reduction);
    }
  }

  // --- results ---

  void declare_results() {
    for (const AttentionTiles::Product& p : t_.results)
      line("f32 o{}[{}][{}][4] = {{}};", step_of(p).reduction, t_.sets, extent(p.inner) / 8);
  }

  void open_stores() {
    line("#pragma unroll");
    open(fmt::format("for (int h = 0; h < {}; ++h)", rows()));
    line("const {} own = {};", index_, own_row());
    axis_[t_.own] = "own";
    if (extent(t_.own) % t_.block() != 0) line("if (own >= {}) continue;", extent(t_.own));
    if (t_.online) name_online();
  }

  void store_folds() {
    const bool any = std::any_of(a_.steps.begin(), a_.steps.end(),
                                 [](const AttentionStep& s) { return s.part == AttentionPart::fold && !s.stores.empty(); });
    if (!any) return;
    open("if (quad == 0)");
    open_stores();
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::fold)
        for (const Store& s : step.stores) store(s);
    close(), close();
  }

  // Elements that lie side by side, as a store of whole results writes them: eight of four lanes, two of a lane, or one.
  int width_of(const Store& s, AxisId inner) const {
    const DType dtype = kernel_.buffers[s.buffer].dtype;
    const auto fits = [&](int width) { return s.mode == StoreMode::set && packs(kernel_, s.buffer, s.index, inner, width); };
    return short_ && dtype == t_.dtype && extent(inner) % 32 == 0 && fits(8) ? 8 : bytes_of(dtype) <= 4 && fits(2) ? 2 : 1;
  }

  // All lanes take part in exchanges, so that rows beyond the end are made of the last one's numbers, and not stored.
  void store_results() {
    if (t_.results.empty()) return;
    line("#pragma unroll");
    open(fmt::format("for (int h = 0; h < {}; ++h)", rows()));
    const bool rest = extent(t_.own) % t_.block() != 0;
    line("const {} own_at = {}, own = {};", index_, own_row(), clamped(t_.own, "own_at", t_.block()));
    axis_[t_.own] = "own";
    if (t_.online) name_online();
    for (size_t k = 0; k < t_.results.size(); ++k) store_result(k, rest ? "own_at == own" : "");
    close();
  }

  void store_result(size_t result, const std::string& inside) {
    const AttentionTiles::Product& p = t_.results[result];
    const uint16_t r = step_of(p).reduction;
    const std::vector<Store>& stores = step_of(p).stores;
    std::vector<int> widths;
    for (const Store& s : stores) widths.push_back(width_of(s, p.inner));
    for (size_t k = 0; k < stores.size(); ++k)
      if (widths[k] == 8) line("u32 packed{}[{}];", stores[k].buffer, extent(p.inner) / 8);
    std::string factor = t_.row_factors[result] == kNoValue ? "" : " * " + as(t_.row_factors[result], DType::f32);
    if (left_[result].factor != 1) factor += " * " + literal_of(left_[result].factor, DType::f32);
    line("#pragma unroll");
    open(fmt::format("for (int f = 0; f < {}; ++f)", extent(p.inner) / 8));
    for (size_t k = 0; k < stores.size(); ++k) {
      if (widths[k] == 8) line("f32 pair{}[2];", stores[k].buffer);
      if (widths[k] == 2) line("Vec<{}, 2> pair{};", storage_type(kernel_.buffers[stores[k].buffer].dtype), stores[k].buffer);
    }
    line("#pragma unroll");
    open("for (int e = 0; e < 2; ++e)");
    line("const {} inner{} = f * 8 + quad * 2 + e;", index_, r);
    axis_[p.inner] = fmt::format("inner{}", r);
    line("const f32 total{} = o{}[h / 2][f][h % 2 * 2 + e]{};", r, r, factor);
    results_[r] = fmt::format("total{}", r);
    for (size_t k = 0; k < stores.size(); ++k) {
      const Store& s = stores[k];
      const DType dtype = kernel_.buffers[s.buffer].dtype;
      if (widths[k] == 8)
        line("pair{}[e] = {};", s.buffer, as(before_packing(s.value), DType::f32));
      else if (widths[k] == 2)
        line("pair{}.at[e] = {};", s.buffer, stored(as(s.value, register_dtype(dtype)), register_dtype(dtype), dtype));
      else
        only_inside(inside, [&] { store(s); });
    }
    close();
    axis_[p.inner] = "(f * 8 + quad * 2)";
    for (size_t k = 0; k < stores.size(); ++k) {
      const uint16_t buffer = stores[k].buffer;
      if (widths[k] == 8) line("packed{0}[f] = pack_{1}x2(pair{0}[0], pair{0}[1]);", buffer, element_);
      if (widths[k] == 2)
        only_inside(inside, [&] {
          line("*reinterpret_cast<Vec<{}, 2>*>(b{} + ({})) = pair{};", storage_type(kernel_.buffers[stores[k].buffer].dtype), buffer,
               index(stores[k].index), buffer);
        });
    }
    close();
    for (size_t k = 0; k < stores.size(); ++k)
      if (widths[k] == 8) store_eights(stores[k], p.inner, inside);
  }

  void store_eights(const Store& s, AxisId inner, const std::string& inside) {
    line("#pragma unroll");
    open(fmt::format("for (int f = 0; f < {}; f += 4)", extent(inner) / 8));
    line("transpose_quad(packed{} + f);", s.buffer);
    line("Vec<u32, 4> pack;");
    line("#pragma unroll");
    line("for (int i = 0; i < 4; ++i) pack.at[i] = packed{}[f + i];", s.buffer);
    axis_[inner] = "((f + quad) * 8)";
    only_inside(inside, [&] { line("*reinterpret_cast<Vec<u32, 4>*>(b{} + ({})) = pack;", s.buffer, index(s.index)); });
    close();
  }

  void only_inside(const std::string& inside, const auto& body) {
    if (!inside.empty()) open(fmt::format("if ({})", inside));
    body();
    if (!inside.empty()) close();
  }

  ScaledValue score_;              // with `online`: what it is a maximum of; the factor is applied to that
  std::vector<ScaledValue> left_;  // else, of each result: what it multiplies; the factor is applied to the result
  const std::vector<KeyMask> masks_ = find_key_masks(kernel_);
  bool whole_ = false;  // what is written now is for whole tiles
};

}  // namespace

std::string attention_tiles_text(const Kernel& kernel, const AttentionTiles& tiles) { return TilesText(kernel, tiles).run(); }

}  // namespace einc
