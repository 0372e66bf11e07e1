// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/attention_products_text.h"

#include <algorithm>

namespace einc {

AttentionProductsText::AttentionProductsText(const Kernel& kernel, const AttentionTiles& tiles)
    : ValueText(kernel),
      t_(tiles),
      a_(*kernel.attention),
      element_(storage_type(t_.dtype)),
      short_(bytes_of(t_.dtype) == 2),
      mma_(short_ ? "mma_m16n8k16_" + element_ : "mma_m16n8k8_tf32") {
  if (wide_) index_ = "i64";
}

void AttentionProductsText::open_sets() {
  line("#pragma unroll");
  open(fmt::format("for (int m = 0; m < {}; ++m)", t_.sets));
}

void AttentionProductsText::find_memory() {
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

void AttentionProductsText::find_block() {
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

void AttentionProductsText::copy(size_t k, const std::string& first, int rows, const std::string& to) {
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
std::string AttentionProductsText::swizzled_place(const AttentionTiles::Tile& tile, int rows) {
  constexpr int64_t row = AttentionTiles::kSwizzledRow;
  const std::string part = tile.width > row ? fmt::format("column / {} * {} + ", row, row * rows) : "";
  return fmt::format("{}(row + i) * {} + ((column / 8 ^ (row + i)) & 7) * 8", part, row);
}

void AttentionProductsText::load_own() {
  if (!a_.turns.empty()) line("__syncthreads();");
  for (size_t k = 0; k < t_.tiles.size(); ++k)
    if (t_.tiles[k].own) copy(k, "own0", t_.block(), fmt::format("tile{}", k));
  line("cp_async_commit();");
}

void AttentionProductsText::copy_vectors(const std::string& first, const std::string& turn) {
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

bool AttentionProductsText::is_read(size_t k, Pass pass) const {
  if (t_.tiles[k].own) return false;
  const auto reads = [&](const AttentionTiles::Product& p) { return p.other == static_cast<int>(k); };
  if (pass == Pass::products && std::any_of(t_.results.begin(), t_.results.end(), reads)) return true;
  return std::any_of(t_.scores.begin(), t_.scores.end(), reads);
}

void AttentionProductsText::load_other(const std::string& first, Pass pass, const std::string& turn) {
  for (size_t k = 0; k < t_.tiles.size(); ++k)
    if (is_read(k, pass)) copy(k, first, t_.step, fmt::format("tile{} + ({}) * {}", k, turn, t_.step * t_.pitch(t_.tiles[k])));
  if (!t_.vectors.empty()) copy_vectors(first, turn);
  line("cp_async_commit();");
}

// The next tile is on its way while this one is used. Behind the barrier all warps have used what it takes the place of.
void AttentionProductsText::over_tiles(const std::function<void()>& body, Pass pass) {
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

void AttentionProductsText::otherwise() {
  --depth_;
  scopes_.pop_back();
  line("}} else {{");
  ++depth_;
  scopes_.emplace_back();
}

void AttentionProductsText::scores(Pass pass) {
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
    line("ldmatrix_x4(y, tile{0} + (turn * {1} + j * 16 + (lane & 7) + (lane >> 4) * 8) * {2} + k * {3} + (lane >> 3 & 1) * {4});", p.other,
         t_.step, t_.pitch(other), t_.depth(), t_.vector());
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
void AttentionProductsText::group_scores(Pass pass) {
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

std::string AttentionProductsText::other_operand(const AttentionTiles::Product& p) const {
  const int64_t parts = t_.tiles[static_cast<size_t>(p.other)].width / AttentionTiles::kSwizzledRow;
  return fmt::format("operand{} + turn * {}", p.other, parts * rows_of_operand(t_.step));
}

void AttentionProductsText::group_results() {
  line("wgmma_begin();");
  for (size_t k = 0; k < t_.results.size(); ++k) {
    const AttentionTiles::Product& p = t_.results[k];
    const ValueId left = left_of(k);
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

bool AttentionProductsText::is_needed(uint16_t r, Pass pass) const {
  const std::vector<uint64_t> needs = reductions_of_values(kernel_);
  if (pass == Pass::folds)
    return std::any_of(t_.folds.begin(), t_.folds.end(), [&](uint16_t f) { return needs[kernel_.reductions[f].value] >> r & 1; });
  return std::any_of(t_.lefts.begin(), t_.lefts.end(), [&](ValueId left) { return needs[left] >> r & 1; });
}

void AttentionProductsText::multiply() {
  if (t_.wgmma) return group_results();
  for (size_t k = 0; k < t_.results.size(); ++k) multiply(t_.results[k], left_of(k));
}

void AttentionProductsText::multiply(const AttentionTiles::Product& p, ValueId left) {
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
void AttentionProductsText::multiply_tf32(const AttentionTiles::Product& p, ValueId left) {
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

void AttentionProductsText::round_to_tf32(const char* registers) {
  if (short_) return;
  line("#pragma unroll");
  line("for (int i = 0; i < 4; ++i) {0}[i] = to_tf32({0}[i]);", registers);
}

}  // namespace einc
