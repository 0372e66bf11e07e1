// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/attention_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/value_text.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

class AttentionText : ValueText {
 public:
  AttentionText(const Kernel& kernel, const AttentionBlocks& plan) : ValueText(kernel), p_(plan), a_(*kernel.attention) {
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::fold) fold_place_[step.reduction] = static_cast<int64_t>(fold_place_.size());
  }

  std::string run() {
    ++depth_;
    find_memory();
    find_block();
    for_each_gather([&](const AttentionStep& step, int64_t offset) {
      line("for (int e = threadIdx.x; e < {}; e += {}) sums[{} + e] = 0;", p_.keys * free_count(step), AttentionBlocks::kThreads, offset);
    });
    if (p_.gathers) {
      line("__syncthreads();");
      turns(0);
      for_each_gather([&](const AttentionStep& step, int64_t offset) { store_gathered(step, offset); });
    } else {
      rows();
    }
    return std::move(text_);
  }

 private:
  int64_t keys() const { return kernel_.extent(a_.key); }
  int64_t all_rows() const { return kernel_.extent(a_.row); }
  int64_t free_count(const AttentionStep& step) const { return trips(kernel_, bits(step.free)); }
  bool divides_keys() const { return p_.key_blocks > 1; }
  std::string key_place() const { return divides_keys() ? "(key - key0)" : "key"; }  // among those of the block
  std::string tile(int index) const { return fmt::format("tiles[{} + row * {} + {}]", index * p_.rows * p_.keys, p_.keys, key_place()); }
  std::string fold(uint16_t r) const { return fmt::format("folds[{} + row]", fold_place_.at(r) * p_.rows); }

  void for_each_gather(const auto& body) {
    int64_t offset = 0;
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::gather) body(step, offset), offset += p_.keys * free_count(step);
  }

  void find_memory() {
    line("EINC_SHARED(shared);");
    line("f32* folds = reinterpret_cast<f32*>(shared);");
    if (p_.slice_bytes() > 0) line("unsigned char* slice = scratch + i64(blockIdx.x) * {};", p_.slice_bytes());
    line("f32* tiles = reinterpret_cast<f32*>({});", p_.tiles_shared ? fmt::format("shared + {}", p_.fold_bytes) : "slice");
    if (p_.gathers) line("f32* sums = reinterpret_cast<f32*>(slice + {});", p_.slice_bytes() - p_.sum_bytes);
    line("const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;");
  }

  void find_block() {
    std::string rest = fmt::format("{}(blockIdx.x)", index_type());
    if (!p_.gathers) {
      line("const {0} first_row = {1} % {2} * {3};", index_type(), rest, p_.row_blocks, p_.rows);
      rest = fmt::format("({} / {})", rest, p_.row_blocks);
    } else if (divides_keys()) {
      line("const {0} key0 = {1} % {2} * {3};", index_type(), rest, p_.key_blocks, p_.keys);
      line("const {0} key_end = key0 + {1} < {2} ? key0 + {1} : {2};", index_type(), p_.keys, keys());
      rest = fmt::format("({} / {})", rest, p_.key_blocks);
    }
    for (size_t k = a_.batch.size(); k-- > 0;) {
      const AxisId a = a_.batch[k];
      axis_[a] = fmt::format("a{}", a);
      line("const {} a{} = {} % {};", index_type(), a, rest, kernel_.extent(a));
      rest = fmt::format("({} / {})", rest, kernel_.extent(a));
    }
  }

  void turns(size_t level) {
    if (level < a_.turns.size()) {
      const AxisId a = a_.turns[level];
      axis_[a] = fmt::format("a{}", a);
      open(fmt::format("for ({0} a{1} = 0; a{1} < {2}; ++a{1})", index_type(), a, kernel_.extent(a)));
      turns(level + 1);
      close();
      return;
    }
    open(fmt::format("for ({0} first_row = 0; first_row < {1}; first_row += {2})", index_type(), all_rows(), p_.rows));
    rows();
    close();
  }

  // --- a block of rows ---

  void rows() {
    if (all_rows() % p_.rows == 0)
      line("const int count = {};", p_.rows);
    else
      line("const int count = first_row + {0} <= {1} ? {0} : int({1} - first_row);", p_.rows, all_rows());
    find_keys();
    if (divides_keys() && !a_.bounds.empty()) line("if (key_count <= 0) continue;");
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::scores) scores(step);
    line("__syncthreads();");
    for (const AttentionLoop& loop : p_.schedule.loops) {
      key_loop(loop);
      line("__syncthreads();");
    }
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::mix) mix(step);
    for_each_gather([&](const AttentionStep& step, int64_t offset) { gather(step, offset); });
    if (p_.gathers) line("__syncthreads();");
  }

  // As keys_of does, of the block's keys.
  void find_keys() {
    if (divides_keys())
      line("{0} first_key = key0, last_key = key_end;", index_type());
    else
      line("{0} first_key = 0, last_key = {1};", index_type(), keys());
    for (const KeyBound& b : a_.bounds) {
      const std::string base = b.base == kNoValue ? "" : " + " + value(b.base);
      const auto at = [&](const char* row) { return fmt::format("({} * ({}) + {}{})", literal(b.factor), row, literal(b.limit), base); };
      const bool first = (b.side == BoundSide::least) == (b.factor >= 0);
      const std::string limit = at(first ? "first_row" : "first_row + count - 1");
      open("");
      if (b.side == BoundSide::least) {
        line("const {0} least = {1} > 0 ? {1} / {2} * {2} : 0;", index_type(), limit, a_.block_keys);
        line("if (least > first_key) first_key = least;");
      } else {
        line("const {0} most = ({1} + {2}) / {2} * {2};", index_type(), limit, a_.block_keys);
        line("if (most < last_key) last_key = most;");
      }
      close();
    }
    line("const int key_count = int(last_key - first_key);");
  }

  void enter_row(const std::string& row) { axis_[a_.row] = fmt::format("(first_row + {})", row); }

  void decode_free(const AttentionStep& step, std::string rest) {
    for (size_t k = step.free.size(); k-- > 0;) {
      const AxisId a = step.free[k];
      axis_[a] = fmt::format("a{}", a);
      line("const {} a{} = {};", index_type(), a, k == 0 ? rest : fmt::format("{} % {}", rest, kernel_.extent(a)));
      rest = fmt::format("({} / {})", rest, kernel_.extent(a));
    }
  }

  void open_loops(const std::vector<AxisId>& axes) {
    for (AxisId a : axes) {
      axis_[a] = fmt::format("a{}", a);
      open(fmt::format("for ({0} a{1} = 0; a{1} < {2}; ++a{1})", index_type(), a, kernel_.extent(a)));
    }
  }

  void scores(const AttentionStep& step) {
    open(fmt::format("for (int e = threadIdx.x; e < count * key_count; e += {})", AttentionBlocks::kThreads));
    line("const int row = e / key_count;");
    line("const {} key = first_key + e % key_count;", index_type());
    enter_row("row");
    axis_[a_.key] = "key";
    line("f32 sum = 0;");
    open_loops(step.over);
    const std::string right = as(step.right, DType::f32), left = as(step.left, DType::f32);  // lines, in an order that C++ leaves open
    line("sum = add_product({}, {}, sum);", left, right);
    for (size_t k = 0; k < step.over.size(); ++k) close();
    line("{} = sum;", tile(p_.schedule.scores_tile.at(step.reduction)));
    close();
  }

  bool made_in(const AttentionLoop& loop, const AttentionStep& step) const {
    return std::find(loop.folds.begin(), loop.folds.end(), step.reduction) != loop.folds.end();
  }

  // A warp folds a row.
  void key_loop(const AttentionLoop& loop) {
    open(fmt::format("for (int row = warp; row < count; row += {})", AttentionBlocks::kThreads / 32));
    enter_row("row");
    for (const auto& [r, place] : fold_place_) results_[r] = fold(r);
    const uint64_t row_scope = ~bit(a_.key);
    hoist_made(loop, row_scope);
    for (uint16_t r : loop.folds) {
      const DType dtype = folded_dtype(kernel_.reductions[r]);
      EINC_CHECK(dtype == DType::f32, "attention folds in f32");
      line("f32 r{} = {};", r, identity(kernel_.reductions[r].fold, dtype));
    }
    open(fmt::format("for ({0} key = first_key + lane; key < last_key; key += 32)", index_type()));
    axis_[a_.key] = "key";
    for (const auto& [r, index] : p_.schedule.scores_tile) results_[r] = tile(index);
    for (ValueId id : loop.read) {
      const DType dtype = kernel_.values[id].dtype;
      line("const {} v{} = {};", register_type(dtype), id,
           convert_text(tile(p_.schedule.kept_tile.at(id)), DType::f32, register_dtype(dtype)));
      scopes_.back()[id] = fmt::format("v{}", id);
    }
    hoist_made(loop, ~uint64_t{0});
    for (uint16_t r : loop.folds)
      line("r{} = {};", r,
           combine(kernel_.reductions[r].fold, DType::f32, fmt::format("r{}", r), as(kernel_.reductions[r].value, DType::f32)));
    for (ValueId id : loop.kept) line("const f32 kept{} = {};", id, as(id, DType::f32));
    for (ValueId id : loop.kept) line("{} = kept{};", tile(p_.schedule.kept_tile.at(id)), id);
    close();
    finish_folds(loop);
    close();
  }

  void hoist_made(const AttentionLoop& loop, uint64_t entered) {
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (loop.made[id] && (axes_of_[id] & ~entered) == 0 && kernel_.values[id].kind != ScalarKind::constant) value(id);
  }

  void finish_folds(const AttentionLoop& loop) {
    if (loop.folds.empty()) return;
    open("for (int lanes = 16; lanes > 0; lanes >>= 1)");
    for (uint16_t r : loop.folds) {
      const std::string own = fmt::format("r{}", r);
      line("{} = {};", own,
           combine(kernel_.reductions[r].fold, DType::f32, own, fmt::format("__shfl_xor_sync(0xffffffffu, {}, lanes)", own)));
    }
    close();
    open("if (lane == 0)");
    for (uint16_t r : loop.folds) {
      line("{} = r{};", fold(r), r);
      results_[r] = fmt::format("r{}", r);
    }
    for (const AttentionStep& step : a_.steps)
      if (made_in(loop, step))
        for (const Store& s : step.stores) store(s);
    close();
  }

  std::string left_tile(const AttentionStep& step) const {
    const auto kept = p_.schedule.kept_tile.find(step.left);
    return tile(kept != p_.schedule.kept_tile.end() ? kept->second : p_.schedule.scores_tile.at(kernel_.values[step.left].slot));
  }

  void mix(const AttentionStep& step) {
    const int64_t free = free_count(step);
    open(fmt::format("for (int e = threadIdx.x; e < count * {}; e += {})", free, AttentionBlocks::kThreads));
    line("const int row = e / {};", free);
    decode_free(step, fmt::format("(e % {})", free));
    line("f32 sum = 0;");
    open(fmt::format("for ({} key = first_key; key < last_key; ++key)", index_type()));
    axis_[a_.key] = "key";
    const std::string right = as(step.right, DType::f32);
    line("sum = add_product({}, {}, sum);", left_tile(step), right);
    close();
    enter_row("row");
    for (const auto& [r, place] : fold_place_) results_[r] = fold(r);
    results_[step.reduction] = "sum";
    for (const Store& s : step.stores) store(s);
    close();
  }

  void gather(const AttentionStep& step, int64_t offset) {
    const int64_t free = free_count(step);
    open(fmt::format("for (int e = threadIdx.x; e < key_count * {}; e += {})", free, AttentionBlocks::kThreads));
    line("const {} key = first_key + e / {};", index_type(), free);
    decode_free(step, fmt::format("(e % {})", free));
    line("f32 sum = sums[{} + {} * {} + e % {}];", offset, key_place(), free, free);
    open("for (int row = 0; row < count; ++row)");
    enter_row("row");
    const std::string right = as(step.right, DType::f32);
    line("sum = add_product({}, {}, sum);", left_tile(step), right);
    close();
    line("sums[{} + {} * {} + e % {}] = sum;", offset, key_place(), free, free);
    close();
  }

  void store_gathered(const AttentionStep& step, int64_t offset) {
    const int64_t free = free_count(step);
    const std::string count = divides_keys() ? fmt::format("(key_end - key0) * {}", free) : std::to_string(keys() * free);
    open(fmt::format("for (int e = threadIdx.x; e < {}; e += {})", count, AttentionBlocks::kThreads));
    line("const {} key = {}e / {};", index_type(), divides_keys() ? "key0 + " : "", free);
    axis_[a_.key] = "key";
    decode_free(step, fmt::format("(e % {})", free));
    line("const f32 sum = sums[{} + e];", offset);
    results_[step.reduction] = "sum";
    for (const Store& s : step.stores) store(s);
    close();
  }

  const AttentionBlocks& p_;
  const Attention& a_;
  std::map<uint16_t, int64_t> fold_place_;
};

}  // namespace

std::string attention_text(const Kernel& kernel, const AttentionBlocks& plan) { return AttentionText(kernel, plan).run(); }

}  // namespace einc
