// SPDX-License-Identifier: Apache-2.0
// A turn fills one of three tiles of each operand by copies that nobody waits for (cp.async) and multiplies the tiles that were filled two
// turns before: one barrier a turn, since what is filled now was multiplied in the turn before. A warp loads fragments of its rows and
// columns by ldmatrix, which transposes 16-bit elements on the way; of tf32, for which it cannot, they are read one by one.
#include <algorithm>

#include "compiler/codegen/cuda/product_tiles_text.h"
#include "compiler/codegen/cuda/value_text.h"
#include "compiler/gpu_plan/thread_plan.h"

namespace einc {
namespace {

// Lane 4 * group + quad of a warp holds, of each 16 x 8 tile of sums, rows group and group + 8 at columns 2 * quad and 2 * quad + 1.
class ProductText : ValueText {
 public:
  explicit ProductText(const ProductTiles& tiles)
      : ValueText(tiles.kernel),
        t_(tiles),
        c_(*tiles.kernel.contraction),
        element_(storage_type(t_.dtype)),
        short_(bytes_of(t_.dtype) == 2) {}

  std::string run() {
    ++depth_;
    find_memory();
    find_tile(c_.batch, {t_.row_tiles(), t_.rows}, {t_.column_tiles(), t_.columns});
    line("f32 sums[{}][{}][4] = {{}};", t_.warp_rows() / 16, t_.warp_columns() / 8);
    const int64_t steps = (kernel_.extent(t_.depth) + t_.step() - 1) / t_.step();
    const int ahead = ProductTiles::kBuffers - 1;
    // What is filled now was multiplied in the turn before, of which the barrier is the end.
    open(fmt::format("for (int turn = 0; turn < {}; ++turn)", steps + ahead));
    open(fmt::format("if (turn >= {})", ahead));
    line("cp_async_wait<{}>();", ahead - 1);
    line("__syncthreads();");
    close();
    open(fmt::format("if (turn < {})", steps));
    line("const {} first = {}(turn) * {};", index_type(), index_type(), t_.step());
    fill("left", t_.left, c_.left, t_.row, t_.rows, "row0");
    fill("right", t_.right, c_.right, t_.column, t_.columns, "column0");
    close();
    line("cp_async_commit();");
    line("if (turn < {}) continue;", ahead);
    multiply(ahead);
    close();
    finish();
    return std::move(text_);
  }

 private:
  void find_memory() {
    line("EINC_SHARED(shared);");
    line("{0}* left = reinterpret_cast<{0}*>(shared);", element_);
    line("{}* right = left + {};", element_, ProductTiles::kBuffers * t_.elements(t_.left, t_.rows));
    line("const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;");
    line("const int warp_row = warp / {} * {}, warp_column = warp % {} * {};", t_.warps_across(), t_.warp_rows(), t_.warps_across(),
         t_.warp_columns());
  }

  // --- operands in shared memory: zeros where they pass the end

  void fill(const std::string& name, const ProductTiles::Operand& operand, ValueId id, AxisId wide, int width, const char* origin) {
    const int vector = operand.copied ? t_.vector() : 1, inner = operand.by_depth ? t_.step() : width;
    const int pieces = width * t_.step() / vector, threads = t_.threads();
    open("");
    line("{}* tile = {} + turn % {} * {};", element_, name, ProductTiles::kBuffers, t_.elements(operand, width));
    // Places that are computed would take all registers (196 of 32 elements with a window of one channel, sm_80).
    line("#pragma unroll{}", operand.copied ? "" : " 4");
    open(fmt::format("for (int i = 0; i < {}; ++i)", (pieces + threads - 1) / threads));
    line("const int e = threadIdx.x + i * {};", threads);
    if (pieces % threads != 0) line("if (e >= {}) break;", pieces);
    line("const int beside = e % {} * {}, apart = e / {};", inner / vector, vector, inner / vector);
    line("const {} at = {} + {}, deep = first + {};", index_type(), origin, operand.by_depth ? "apart" : "beside",
         operand.by_depth ? "beside" : "apart");
    axis_[wide] = "at", axis_[t_.depth] = "deep";
    std::string inside;
    if (kernel_.extent(wide) % width != 0) inside = fmt::format("at < {}", kernel_.extent(wide));
    if (kernel_.extent(t_.depth) % t_.step() != 0)
      inside += fmt::format("{}deep < {}", inside.empty() ? "" : " && ", kernel_.extent(t_.depth));
    const std::string place = fmt::format("tile[apart * {} + beside]", t_.pitch(operand, width));
    if (operand.copied)
      copy(place, id, inside);
    else
      compute(place, id, inside);
    close(), close();
    axis_[wide].clear(), axis_[t_.depth].clear();
  }

  void copy(const std::string& place, ValueId id, std::string inside) {
    const Scalar& v = kernel_.values[id];
    const std::string from = index(v.index), holds = guard(v);
    if (!holds.empty()) inside += (inside.empty() ? "" : " && ") + holds;
    if (inside.empty()) return line("cp_async16(&{}, b{} + ({}));", place, v.slot, from);
    line("const bool inside = {};", inside);
    line("cp_async16(&{}, b{} + (inside ? {} : 0), inside ? 16 : 0);", place, v.slot, from);
  }

  void compute(const std::string& place, ValueId id, const std::string& inside) {
    line("f32 x = 0;");
    if (!inside.empty()) open(fmt::format("if ({})", inside));
    line("x = {};", as(id, DType::f32));
    if (!inside.empty()) close();
    line("{} = {};", place, short_ ? fmt::format("to_{}(x)", element_) : "x");
  }

  // --- products

  void multiply(int ahead) {
    line("const {}* rows = left + (turn - {}) % {} * {};", element_, ahead, ProductTiles::kBuffers, t_.elements(t_.left, t_.rows));
    line("const {}* columns = right + (turn - {}) % {} * {};", element_, ahead, ProductTiles::kBuffers, t_.elements(t_.right, t_.columns));
    line("#pragma unroll");
    open(fmt::format("for (int k = 0; k < {}; k += {})", t_.step(), t_.multiplied()));
    line("u32 x[{}][4], y[{}][4];", t_.warp_rows() / 16, t_.warp_columns() / 16);
    load_rows();
    load_columns();
    line("#pragma unroll");
    open(fmt::format("for (int i = 0; i < {}; ++i)", t_.warp_rows() / 16));
    line("#pragma unroll");
    open(fmt::format("for (int j = 0; j < {}; ++j)", t_.warp_columns() / 16));
    const std::string mma = short_ ? "mma_m16n8k16_" + element_ : "mma_m16n8k8_tf32";
    line("{}(sums[i][2 * j], x[i], y[j]);", mma);
    line("{}(sums[i][2 * j + 1], x[i], y[j] + 2);", mma);
    close(), close(), close();
  }

  void load_rows() {
    const int pitch = t_.pitch(t_.left, t_.rows), v = t_.vector();
    open_fragments("i", t_.warp_rows());
    if (t_.left.by_depth)
      line("ldmatrix_x4(x[i], rows + (warp_row + i * 16 + (lane & 15)) * {} + k + (lane >> 4) * {});", pitch, v);
    else if (short_)
      line("ldmatrix_x4_trans(x[i], rows + (k + (lane & 7) + (lane >> 4) * 8) * {} + warp_row + i * 16 + (lane >> 3 & 1) * 8);", pitch);
    else
      line(
          "for (int e = 0; e < 4; ++e) x[i][e] = __float_as_uint(rows[(k + quad + e / 2 * 4) * {} + warp_row + i * 16 + group + e % 2 * "
          "8]);",
          pitch);
    round("x[i]");
    close();
  }

  void load_columns() {
    const int pitch = t_.pitch(t_.right, t_.columns), v = t_.vector();
    open_fragments("j", t_.warp_columns());
    if (t_.right.by_depth)
      line("ldmatrix_x4(y[j], columns + (warp_column + j * 16 + (lane & 7) + (lane >> 4) * 8) * {} + k + (lane >> 3 & 1) * {});", pitch, v);
    else if (short_)
      line("ldmatrix_x4_trans(y[j], columns + (k + (lane & 15)) * {} + warp_column + j * 16 + (lane >> 4) * 8);", pitch);
    else
      line(
          "for (int e = 0; e < 4; ++e) y[j][e] = __float_as_uint(columns[(k + quad + e % 2 * 4) * {} + warp_column + j * 16 + group + e / "
          "2 * 8]);",
          pitch);
    round("y[j]");
    close();
  }

  void open_fragments(const char* index, int size) {
    line("#pragma unroll");
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", index, size / 16));
    if (!short_) line("#pragma unroll");
  }
  void round(const char* registers) {
    if (short_) return;
    line("#pragma unroll");
    line("for (int e = 0; e < 4; ++e) {0}[e] = to_tf32({0}[e]);", registers);
  }

  // --- what is made of the sums

  void finish() {
    const Stage& stage = kernel_.stages[1];
    const bool pairs = kernel_.extent(t_.column) % 2 == 0 && std::ranges::all_of(stage.stores, [&](const Store& s) {
                         return s.mode == StoreMode::set && packs(kernel_, s.buffer, s.index, t_.column, 2);
                       });
    for (const auto& [index, count] : {std::pair{"i", t_.warp_rows() / 16}, {"j", t_.warp_columns() / 8}, {"h", 2}}) {
      line("#pragma unroll");
      open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", index, count));
    }
    line("const {} row = row0 + warp_row + i * 16 + group + 8 * h;", index_type());
    axis_[t_.row] = "row";
    const std::string first = "column0 + warp_column + j * 8 + quad * 2";
    std::string outside;
    if (kernel_.extent(t_.row) % t_.rows != 0) outside = fmt::format("row >= {}", kernel_.extent(t_.row));
    const bool rest = kernel_.extent(t_.column) % t_.columns != 0;
    if (pairs && rest) outside += fmt::format("{}{} >= {}", outside.empty() ? "" : " || ", first, kernel_.extent(t_.column));
    if (!outside.empty()) line("if ({}) continue;", outside);
    if (pairs)
      for (size_t k = 0; k < stage.stores.size(); ++k)
        line("Vec<{}, 2> pair{};", storage_type(kernel_.buffers[stage.stores[k].buffer].dtype), k);
    line("#pragma unroll");
    open("for (int e = 0; e < 2; ++e)");
    line("const {} column = {} + e;", index_type(), first);
    if (!pairs && rest) line("if (column >= {}) continue;", kernel_.extent(t_.column));
    axis_[t_.column] = "column";
    results_[c_.reduction] = "sums[i][j][2 * h + e]";
    make(stage, pairs);
    close();
    if (pairs) {
      axis_[t_.column] = fmt::format("({})", first);
      for (size_t k = 0; k < stage.stores.size(); ++k)
        line("store_vec(b{} + ({}), pair{});", stage.stores[k].buffer, index(stage.stores[k].index), k);
    }
    close(), close(), close();
  }

  // Loads before stores (kernel.h, Stage): a result may alias an operand that a later store needs.
  void make(const Stage& stage, bool pairs) {
    const std::vector<bool> needed = needed_by(kernel_, stage);
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (needed[id] && kernel_.values[id].kind == ScalarKind::load) value(id);
    for (size_t k = 0; k < stage.stores.size(); ++k) {
      const Store& s = stage.stores[k];
      if (!pairs) {
        store(s);
        continue;
      }
      const DType dtype = kernel_.buffers[s.buffer].dtype;
      line("pair{}.at[e] = {};", k, stored(as(s.value, register_dtype(dtype)), register_dtype(dtype), dtype));
    }
  }

  const ProductTiles& t_;
  const Contraction& c_;
  const std::string element_;
  const bool short_;  // of 16 bits
};

}  // namespace

std::string product_tiles_text(const ProductTiles& tiles) { return ProductText(tiles).run(); }

}  // namespace einc
