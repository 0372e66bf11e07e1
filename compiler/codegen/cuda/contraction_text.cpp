// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/contraction_text.h"

#include "compiler/codegen/cuda/value_text.h"
#include "compiler/gpu_plan/thread_plan.h"

namespace einc {
namespace {

class ContractionText : ValueText {
 public:
  explicit ContractionText(const ContractionTiles& tiles)
      : ValueText(tiles.kernel), t_(tiles), c_(*tiles.kernel.contraction), sums_(kernel_.reductions[c_.reduction].dtype) {}

  std::string run() {
    ++depth_;
    const std::string_view type = register_type(sums_);
    line("__shared__ {} left[{}][{}], right[{}][{}];", type, t_.tile_depth, t_.tile_rows + 1, t_.tile_depth, t_.tile_columns + 1);
    find_tile(c_.batch, {t_.row_tiles(), t_.tile_rows}, {t_.column_tiles(), t_.tile_columns});
    line("const int across = threadIdx.x % {0}, down = threadIdx.x / {0};", t_.tile_columns / t_.thread_columns);
    line("{} sums[{}][{}] = {{}};", type, t_.thread_rows, t_.thread_columns);
    open(fmt::format("for ({0} first = 0; first < {1}; first += {2})", index_type(), kernel_.extent(t_.depth), t_.tile_depth));
    fill("left", c_.left, t_.row, t_.tile_rows, "row0");
    fill("right", c_.right, t_.column, t_.tile_columns, "column0");
    line("__syncthreads();");
    multiply();
    line("__syncthreads();");
    close();
    finish();
    return std::move(text_);
  }

 private:
  // The tile of an operand: zeros where it passes the end.
  void fill(const std::string& tile, ValueId operand, AxisId wide, int width, const std::string& origin) {
    const int elements = width * t_.tile_depth;
    const bool by_depth = lies_along(kernel_, operand, t_.depth);
    open(fmt::format("for (int e = threadIdx.x; e < {}; e += {})", elements, t_.threads()));
    if (by_depth)
      line("const int k = e % {0}, i = e / {0};", t_.tile_depth);
    else
      line("const int i = e % {0}, k = e / {0};", width);
    axis_[wide] = "at", axis_[t_.depth] = "deep";
    line("const {} at = {} + i, deep = first + k;", index_type(), origin);
    line("{} x = 0;", register_type(sums_));
    const bool whole = kernel_.extent(wide) % width == 0 && kernel_.extent(t_.depth) % t_.tile_depth == 0;
    if (!whole) open(fmt::format("if (at < {} && deep < {})", kernel_.extent(wide), kernel_.extent(t_.depth)));
    line("x = {};", as(operand, sums_));
    if (!whole) close();
    line("{}[k][i] = x;", tile);
    close();
    axis_[wide].clear(), axis_[t_.depth].clear();
  }

  void multiply() {
    const int rows = t_.thread_rows, columns = t_.thread_columns;
    line("#pragma unroll");
    open(fmt::format("for (int k = 0; k < {}; ++k)", t_.tile_depth));
    const std::string_view type = register_type(sums_);
    line("{} x[{}], y[{}];", type, rows, columns);
    line("#pragma unroll");
    line("for (int i = 0; i < {}; ++i) x[i] = left[k][down * {} + i];", rows, rows);
    line("#pragma unroll");
    line("for (int j = 0; j < {}; ++j) y[j] = right[k][across + {} * j];", columns, t_.tile_columns / columns);
    line("#pragma unroll");
    open(fmt::format("for (int i = 0; i < {}; ++i)", rows));
    line("#pragma unroll");
    line("for (int j = 0; j < {}; ++j) sums[i][j] = add_product(x[i], y[j], sums[i][j]);", columns);
    close();
    close();
  }

  void finish() {
    line("#pragma unroll");
    open(fmt::format("for (int i = 0; i < {}; ++i)", t_.thread_rows));
    line("#pragma unroll");
    open(fmt::format("for (int j = 0; j < {}; ++j)", t_.thread_columns));
    line("const {} row = row0 + down * {} + i, column = column0 + across + {} * j;", index_type(), t_.thread_rows,
         t_.tile_columns / t_.thread_columns);
    if (kernel_.extent(t_.row) % t_.tile_rows != 0 || kernel_.extent(t_.column) % t_.tile_columns != 0)
      line("if (row >= {} || column >= {}) continue;", kernel_.extent(t_.row), kernel_.extent(t_.column));
    axis_[t_.row] = "row", axis_[t_.column] = "column";
    results_[c_.reduction] = "sums[i][j]";
    // Loads before stores (kernel.h, Stage): a result may alias an operand that a later store of the epilogue needs. What is made of them
    // is left where it is stored: all values at once spilled in AdamW's epilogue (NVRTC 13.0, sm_100).
    const std::vector<bool> needed = needed_by(kernel_, kernel_.stages[1]);
    for (ValueId id = 0; id < kernel_.values.size(); ++id)
      if (needed[id] && kernel_.values[id].kind == ScalarKind::load) value(id);
    for (const Store& s : kernel_.stages[1].stores) store(s);
    close();
    close();
  }

  const ContractionTiles& t_;
  const Contraction& c_;
  const DType sums_;
};

}  // namespace

std::string contraction_text(const ContractionTiles& tiles) { return ContractionText(tiles).run(); }

}  // namespace einc
