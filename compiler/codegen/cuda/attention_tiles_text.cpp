// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/attention_tiles_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/attention_bounds_text.h"
#include "compiler/codegen/cuda/value_text.h"
#include "compiler/gpu_plan/thread_plan.h"

namespace einc {
namespace {

// Lane 4 * group + quad of a warp holds, of each 16 x 8 tile of sums, rows group and group + 8 at columns 2 * quad and 2 * quad + 1. A warp
// of several sets of 16 rows multiplies each operand of the other axis by all of them when it has it; row 8 * h + group is in set h / 2.
class TilesText : ValueText {
 public:
  TilesText(const Kernel& kernel, const AttentionTiles& tiles)
      : ValueText(kernel),
        t_(tiles),
        a_(*kernel.attention),
        element_(storage_type(t_.dtype)),
        short_(bytes_of(t_.dtype) == 2),
        mma_(short_ ? "mma_m16n8k16_" + element_ : "mma_m16n8k8_tf32") {
    if (wide_) index_ = "i64";
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
  enum class Pass : uint8_t { folds, products };

  const AttentionStep& step_of(const AttentionTiles::Product& p) const { return a_.steps[p.step]; }
  int64_t extent(AxisId axis) const { return kernel_.extent(axis); }
  int columns() const { return t_.step / 8; }

  void find_memory() {
    line("EINC_SHARED(shared);");
    line("{}* memory = reinterpret_cast<{}*>(shared);", element_, element_);
    int64_t at = 0;
    for (size_t k = 0; k < t_.tiles.size(); ++k) {
      line("{}* tile{} = memory + {};", element_, k, at);
      at += t_.pitch(t_.tiles[k]) * (t_.tiles[k].own ? t_.block() : 2 * t_.step);
      if (t_.wgmma) line("const u64 operand{0} = wgmma_operand(tile{0});", k);
    }
    for (size_t k = 0; k < t_.vectors.size(); ++k)
      line("f32* vector{} = reinterpret_cast<f32*>(memory + {}) + {};", k, at, k * 2 * static_cast<size_t>(t_.step));
    line("const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;");
  }

  void find_block() {
    std::string rest = fmt::format("{}(blockIdx.x)", index_);
    line("const {} own0 = {} % {} * {};", index_, rest, t_.own_blocks, t_.block());
    rest = fmt::format("({} / {})", rest, t_.own_blocks);
    for (size_t k = a_.batch.size(); k-- > 0;) {
      const AxisId a = a_.batch[k];
      axis_[a] = fmt::format("a{}", a);
      line("const {} a{} = {} % {};", index_, a, rest, extent(a));
      rest = fmt::format("({} / {})", rest, extent(a));
    }
  }

  // --- tiles in shared memory ---

  void copy(size_t k, const std::string& first, int rows, const std::string& to) {
    const AttentionTiles::Tile& tile = t_.tiles[k];
    const AxisId along = tile.own ? t_.own : t_.other;
    const int64_t vectors = tile.width / t_.vector();
    // A thread keeps its column where whole rows of threads fit: then one address serves all of its vectors.
    const int64_t together = AttentionTiles::kThreads / vectors;
    const bool keeps_column = AttentionTiles::kThreads % vectors == 0 && rows % together == 0;
    open("");
    if (keeps_column) {
      line("const int row = threadIdx.x / {}, column = threadIdx.x % {} * {};", vectors, vectors, t_.vector());
      line("#pragma unroll");
      open(fmt::format("for (int i = 0; i < {}; i += {})", rows, together));
      line("const {} at = {} + row + i;", index_, first);
    } else {
      open(fmt::format("for (int e = threadIdx.x; e < {}; e += {})", rows * vectors, AttentionTiles::kThreads));
      line("const int i = 0, row = e / {}, column = e % {} * {};", vectors, vectors, t_.vector());
      line("const {} at = {} + row;", index_, first);
    }
    const bool whole = extent(along) % rows == 0;
    axis_[along] = whole ? "at" : fmt::format("(at < {0} ? at : {1})", extent(along), extent(along) - 1);
    axis_[tile.inner] = "column";
    const Scalar& v = kernel_.values[tile.load];
    const std::string place = t_.wgmma ? swizzled_place(tile, rows) : fmt::format("(row + i) * {} + column", t_.pitch(tile));
    line("cp_async16({} + {}, b{} + ({}){});", to, place, v.slot, index(v.index),
         whole ? "" : fmt::format(", at < {} ? 16 : 0", extent(along)));
    close(), close();
    axis_[along].clear(), axis_[tile.inner].clear();
  }

  // As wgmma's operands lie: 64 columns of all rows, then the next 64.
  static std::string swizzled_place(const AttentionTiles::Tile& tile, int rows) {
    constexpr int64_t row = AttentionTiles::kSwizzledRow;
    const std::string part = tile.width > row ? fmt::format("column / {} * {} + ", row, row * rows) : "";
    return fmt::format("{}(row + i) * {} + ((column / 8 ^ (row + i)) & 7) * 8", part, row);
  }
  // In units of an operand's address, 16 bytes.
  static int64_t rows_of_operand(int64_t rows) { return rows * AttentionTiles::kSwizzledRow * 2 / 16; }

  void load_own() {
    if (!a_.turns.empty()) line("__syncthreads();");
    for (size_t k = 0; k < t_.tiles.size(); ++k)
      if (t_.tiles[k].own) copy(k, "own0", t_.block(), fmt::format("tile{}", k));
    line("cp_async_commit();");
  }

  void copy_vectors(const std::string& first, const std::string& turn) {
    open(fmt::format("if (threadIdx.x < {})", t_.step / 4));
    line("const {} i = threadIdx.x * 4, at = {} + i;", index_, first);
    const bool whole = extent(t_.other) % t_.step == 0;
    axis_[t_.other] = whole ? "at" : fmt::format("(at < {0} ? at : {1})", extent(t_.other), extent(t_.other) - 4);
    for (size_t k = 0; k < t_.vectors.size(); ++k) {
      const Scalar& v = kernel_.values[t_.vectors[k]];
      line("cp_async16(vector{} + ({}) * {} + i, b{} + ({}){});", k, turn, t_.step, v.slot, index(v.index),
           whole ? "" : fmt::format(", at < {} ? 16 : 0", extent(t_.other)));
    }
    axis_[t_.other].clear();
    close();
  }

  bool is_read(size_t k, Pass pass) const {
    if (t_.tiles[k].own) return false;
    const auto reads = [&](const AttentionTiles::Product& p) { return p.other == static_cast<int>(k); };
    if (pass == Pass::products && std::any_of(t_.results.begin(), t_.results.end(), reads)) return true;
    return std::any_of(t_.scores.begin(), t_.scores.end(), reads);
  }

  void load_other(const std::string& first, Pass pass, const std::string& turn) {
    for (size_t k = 0; k < t_.tiles.size(); ++k)
      if (is_read(k, pass)) copy(k, first, t_.step, fmt::format("tile{} + ({}) * {}", k, turn, t_.step * t_.pitch(t_.tiles[k])));
    if (!t_.vectors.empty()) copy_vectors(first, turn);
    line("cp_async_commit();");
  }

  // The next tile is on its way while this one is used. Behind the barrier all warps have used what it takes the place of.
  void over_tiles(const auto& body, Pass pass) {
    open("");
    if (pass == Pass::products && !t_.folds.empty()) line("__syncthreads();");
    open("if (first < last)");
    load_other("first", pass, "0");
    // Bounds may leave nothing to multiply: the block's own tiles are still on their way then.
    if (!a_.bounds.empty()) otherwise(), line("cp_async_wait<0>();");
    close();
    open(fmt::format("for ({0} other0 = first; other0 < last; other0 += {1})", index_, t_.step));
    line("const int turn = int((other0 - first) / {}) & 1;", t_.step);
    line("cp_async_wait<0>();");
    if (t_.wgmma) line("wgmma_stored();");
    line("__syncthreads();");
    open(fmt::format("if (other0 + {} < last)", t_.step));
    load_other(fmt::format("(other0 + {})", t_.step), pass, "1 - turn");
    close();
    const std::string beyond = t_.block() > t_.step ? bounds_.is_beyond() : "";
    if (!beyond.empty()) open(fmt::format("if (!({}))", beyond));
    body();
    if (!beyond.empty()) close();
    close();
    close();
  }

  void otherwise() {
    --depth_;
    scopes_.pop_back();
    line("}} else {{");
    ++depth_;
    scopes_.emplace_back();
  }

  // What of the other axis counts for this block, in whole tiles.
  void find_range() {
    line("{0} first = 0, last = {1};", index_, extent(t_.other));
    for (const KeyMask& mask : masks_)
      if (mask.bound.base != kNoValue) bounds_.name_base(mask.bound.base, value(mask.bound.base));
    for (const std::string& limit : bounds_.limits()) line("{}", limit);
  }

  // --- scores ---

  void scores(Pass pass) {
    if (t_.wgmma) return group_scores(pass);
    for (const AttentionTiles::Product& p : t_.scores) {
      const uint16_t r = step_of(p).reduction;
      if (!is_needed(r, pass)) continue;
      line("f32 s{}[{}][{}][4] = {{}};", r, t_.sets, columns());
      line("#pragma unroll");
      open(fmt::format("for (int k = 0; k < {}; ++k)", extent(p.inner) / t_.depth()));
      const auto &own = t_.tiles[static_cast<size_t>(p.own)], &other = t_.tiles[static_cast<size_t>(p.other)];
      line("u32 x[{}][4];", t_.sets);
      open_sets();
      line("ldmatrix_x4(x[m], tile{} + (warp * {} + m * 16 + (lane & 15)) * {} + k * {} + (lane >> 4) * {});", p.own, t_.warp_rows(),
           t_.pitch(own), t_.depth(), t_.vector());
      round_to_tf32("x[m]");
      close();
      line("#pragma unroll");
      open(fmt::format("for (int j = 0; j < {}; ++j)", t_.step / 16));
      line("u32 y[4];");
      line("ldmatrix_x4(y, tile{0} + (turn * {1} + j * 16 + (lane & 7) + (lane >> 4) * 8) * {2} + k * {3} + (lane >> 3 & 1) * {4});",
           p.other, t_.step, t_.pitch(other), t_.depth(), t_.vector());
      round_to_tf32("y");
      open_sets();
      line("{}(s{}[m][2 * j], x[m], y);", mma_, r);
      line("{}(s{}[m][2 * j + 1], x[m], y + 2);", mma_, r);
      close();
      close();
      close();
    }
  }

  // All scores of a tile at once, each of the rows that four warps have.
  void group_scores(Pass pass) {
    std::vector<uint16_t> made;
    for (const AttentionTiles::Product& p : t_.scores)
      if (const uint16_t r = step_of(p).reduction; is_needed(r, pass)) made.push_back(r), line("f32 s{}[1][{}][4];", r, columns());
    line("wgmma_begin();");
    for (const AttentionTiles::Product& p : t_.scores) {
      const uint16_t r = step_of(p).reduction;
      if (!is_needed(r, pass)) continue;
      const int64_t parts = extent(p.inner) / AttentionTiles::kSwizzledRow, steps = AttentionTiles::kSwizzledRow / t_.depth();
      for (int64_t k = 0; k < parts * steps; ++k)
        line("wgmma_{}(s{}[0], operand{} + {}, {} + {}, {});", element_, r, p.own, k / steps * rows_of_operand(t_.block()) + k % steps * 2,
             other_operand(p), k / steps * rows_of_operand(t_.step) + k % steps * 2, k > 0 ? 1 : 0);
    }
    line("wgmma_end();");
    for (uint16_t r : made) line("wgmma_use(s{}[0]);", r);
  }

  std::string other_operand(const AttentionTiles::Product& p) const {
    const int64_t parts = t_.tiles[static_cast<size_t>(p.other)].width / AttentionTiles::kSwizzledRow;
    return fmt::format("operand{} + turn * {}", p.other, parts * rows_of_operand(t_.step));
  }

  void group_results() {
    line("wgmma_begin();");
    for (size_t k = 0; k < t_.results.size(); ++k) {
      const AttentionTiles::Product& p = t_.results[k];
      const ValueId left = t_.online ? t_.online->exponential : t_.lefts[k];
      line("#pragma unroll");
      open(fmt::format("for (int k = 0; k < {}; ++k)", t_.step / 16));
      line("const u32 x[4] = {{left{0}[0][2 * k][0], left{0}[0][2 * k][1], left{0}[0][2 * k + 1][0], left{0}[0][2 * k + 1][1]}};", left);
      for (int64_t part = 0; part < extent(p.inner) / AttentionTiles::kSwizzledRow; ++part)
        line("wgmma_{}(o{}[0] + {}, x, {} + {} + k * {});", element_, step_of(p).reduction, part * 8, other_operand(p),
             part * rows_of_operand(t_.step), rows_of_operand(16));
      close();
    }
    line("wgmma_end();");
    for (const AttentionTiles::Product& p : t_.results) line("wgmma_use(o{}[0]);", step_of(p).reduction);
  }

  bool is_needed(uint16_t r, Pass pass) const {
    const std::vector<uint64_t> needs = reductions_of_values(kernel_);
    if (pass == Pass::folds)
      return std::any_of(t_.folds.begin(), t_.folds.end(), [&](uint16_t f) { return needs[kernel_.reductions[f].value] >> r & 1; });
    return std::any_of(t_.lefts.begin(), t_.lefts.end(), [&](ValueId left) { return needs[left] >> r & 1; });
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

  void open_sets() {
    line("#pragma unroll");
    open(fmt::format("for (int m = 0; m < {}; ++m)", t_.sets));
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

  void declare_online() { line("f32 most{}, sum{};", of_rows("-infinity()"), of_rows("0.0f")); }

  void product_tile() {
    scores(Pass::products);
    std::vector<ValueId> made;
    for (size_t k = 0; k < t_.results.size(); ++k) {
      const ValueId left = t_.online ? t_.online->exponential : t_.lefts[k];
      if (std::find(made.begin(), made.end(), left) != made.end()) continue;
      made.push_back(left);
      line("u32 left{}[{}][{}][2]{};", left, t_.sets, columns(), short_ ? "" : "[2]");
    }
    for_whole_and_edge([&] { make_pairs(made); });
    if (t_.wgmma) return group_results();
    for (size_t k = 0; k < t_.results.size(); ++k) multiply(t_.results[k], t_.online ? t_.online->exponential : t_.lefts[k]);
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

  void multiply(const AttentionTiles::Product& p, ValueId left) {
    if (!short_) return multiply_tf32(p, left);
    const uint16_t r = step_of(p).reduction;
    line("#pragma unroll");
    open(fmt::format("for (int k = 0; k < {}; ++k)", t_.step / 16));
    line("#pragma unroll");
    open(fmt::format("for (int f = 0; f < {}; ++f)", extent(p.inner) / 16));
    line("u32 y[4];");
    line("ldmatrix_x4_trans(y, tile{0} + (turn * {1} + k * 16 + (lane & 15)) * {2} + f * 16 + (lane >> 4) * 8);", p.other, t_.step,
         t_.pitch(t_.tiles[static_cast<size_t>(p.other)]));
    open_sets();
    line("const u32 x[4] = {{left{0}[m][2 * k][0], left{0}[m][2 * k][1], left{0}[m][2 * k + 1][0], left{0}[m][2 * k + 1][1]}};", left);
    line("{}(o{}[m][2 * f], x, y);", mma_, r);
    line("{}(o{}[m][2 * f + 1], x, y + 2);", mma_, r);
    close();
    close();
    close();
  }

  // Eight of the other axis at a time, in the order 0 2 4 6 1 3 5 7: so a lane has of the left side what it made.
  void multiply_tf32(const AttentionTiles::Product& p, ValueId left) {
    const uint16_t r = step_of(p).reduction;
    const int64_t pitch = t_.pitch(t_.tiles[static_cast<size_t>(p.other)]);
    line("#pragma unroll");
    open(fmt::format("for (int k = 0; k < {}; ++k)", columns()));
    line("const f32* rows = tile{} + (turn * {} + k * 8 + quad * 2) * {} + group;", p.other, t_.step, pitch);
    line("#pragma unroll");
    open(fmt::format("for (int f = 0; f < {}; ++f)", extent(p.inner) / 8));
    line("const u32 y[2] = {{to_tf32(__float_as_uint(rows[f * 8])), to_tf32(__float_as_uint(rows[f * 8 + {}]))}};", pitch);
    open_sets();
    line("const u32 x[4] = {{left{0}[m][k][0][0], left{0}[m][k][1][0], left{0}[m][k][0][1], left{0}[m][k][1][1]}};", left);
    line("{}(o{}[m][f], x, y);", mma_, r);
    close();
    close();
    close();
  }

  void round_to_tf32(const char* registers) {
    if (short_) return;
    line("#pragma unroll");
    line("for (int i = 0; i < 4; ++i) {0}[i] = to_tf32({0}[i]);", registers);
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

  const AttentionTiles& t_;
  const Attention& a_;
  const std::string element_;
  const bool short_;  // of 16 bits
  AttentionBoundsText bounds_{kernel_, t_};
  ScaledValue score_;              // with `online`: what it is a maximum of; the factor is applied to that
  std::vector<ScaledValue> left_;  // else, of each result: what it multiplies; the factor is applied to the result
  const std::vector<KeyMask> masks_ = find_key_masks(kernel_);
  bool whole_ = false;  // what is written now is for whole tiles
  const std::string mma_;
  std::string index_ = "i32";
};

}  // namespace

std::string attention_tiles_text(const Kernel& kernel, const AttentionTiles& tiles) { return TilesText(kernel, tiles).run(); }

}  // namespace einc
