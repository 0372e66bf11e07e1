// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "compiler/gpu_plan/gpu_plan.h"

namespace einc {
namespace {

std::string axes_text(const Kernel& kernel, const std::vector<AxisId>& axes) {
  std::vector<std::string> each;
  for (const AxisId a : axes) each.push_back(fmt::format("a{} ({})", a, kernel.extent(a)));
  return each.empty() ? "one point" : fmt::format("{}", fmt::join(each, ", "));
}

class PlanText {
 public:
  explicit PlanText(const Kernel& kernel) : kernel_(kernel) {}

  void operator()(const AttentionTiles& t) {
    line("{} of {} {} a block, {} a warp, tiles of {} {}; multiplied in {}", t.block(), kernel_.extent(t.own),
         t.of_keys() ? "keys" : "rows", t.warp_rows(), t.step, t.of_keys() ? "rows" : "keys",
         t.dtype == DType::f32 ? "tf32" : to_string(t.dtype));
    for (const AttentionTiles::Tile& tile : t.tiles)
      line("v{} in shared memory, {} elements for each {}", tile.load, tile.width, tile.own == t.of_keys() ? "key" : "row");
    if (t.online) line("maximum and sum of exponentials in one pass");
    if (!t.folds.empty()) line("{} folds in a pass of their own", t.folds.size());
  }
  void operator()(const AttentionBlocks& b) {
    line("{} rows a block at a time, of {}{}", b.rows, kernel_.extent(kernel_.attention->row),
         b.gathers ? ", one range after another" : "");
    if (b.key_blocks > 1) line("{} keys a block, of {}", b.keys, kernel_.extent(kernel_.attention->key));
    line("scores in {}", b.tiles_shared ? "shared memory" : "global memory");
  }
  void operator()(const ProductTiles& t) {
    line("tiles of {} x {} sums, {} of the depth at a time, {} buffers; multiplied in {}", t.rows, t.columns, t.step(),
         ProductTiles::kBuffers, t.dtype == DType::f32 ? "tf32" : to_string(t.dtype));
    line("{} warps of {} x {}", t.warps(), t.warp_rows(), t.warp_columns());
    operand("left", "rows", t.left), operand("right", "columns", t.right);
  }
  void operator()(const ContractionTiles& t) {
    line("tiles of {} x {} sums, {} of the depth at a time; {} x {} a thread", t.tile_rows, t.tile_columns, t.tile_depth, t.thread_rows,
         t.thread_columns);
  }
  void operator()(const ScatterBlocks& s) {
    line("{} of {} rows of the table a block, {} apart; {} of {} points", s.rows, s.table_rows, s.apart(), s.threads, s.points);
  }
  void operator()(const ThreadedLoops& loops) {
    const ThreadPlan& t = loops.threads;
    const Kernel& kernel = loops.transposed ? *loops.transposed : kernel_;
    line("{} a point of {}", t.team > 1 ? fmt::format("{} threads", t.team) : "one thread", axes_text(kernel, t.outer));
    if (t.pack > 1) line("packs of {} along a{}{}", t.pack, *t.pack_axis, t.row_start ? ", which rows share at their ends" : "");
    if (t.row_steps > 0) line("{} steps of each thread through a row in registers", t.row_steps);
    if (t.keeps != KeptLoads::none)
      line("loads of a row are kept for all stages{}", t.keeps == KeptLoads::all ? ", what rows share among them" : "");
    for (const ValueId id : t.ahead) line("v{} is loaded at the row's start", id);
    for (const ValueId id : t.in_shared) line("v{} of a row is kept in shared memory for all stages", id);
    for (const TileStore& s : t.tiles)
      line("stage {} stores through a tile of a{} x a{} in shared memory", s.stage, s.axes.along, s.axes.across);
  }
  std::string text;

 private:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    text += "  " + fmt::format(format, std::forward<T>(arguments)...) + "\n";
  }
  void operand(std::string_view which, std::string_view width, const ProductTiles::Operand& o) {
    line("{} operand {}, neighbours along its {}", which, o.copied ? "copied 16 bytes at a time" : "computed element by element",
         o.by_depth ? "depth" : width);
  }

  const Kernel& kernel_;
};

}  // namespace

std::string to_string(const GpuPlan& plan, const Kernel& kernel) {
  PlanText how(kernel);
  std::visit(how, plan.how);
  const std::string threads =
      plan.threads_y > 1 ? fmt::format("{} x {}", plan.threads_x, plan.threads_y) : fmt::format("{}", plan.threads_x);
  std::string text = fmt::format("  {}: {} blocks of {} threads", plan.kind, plan.blocks, threads);
  if (plan.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory each", plan.shared_bytes);
  if (plan.scratch_bytes > 0) text += fmt::format(", {} bytes of scratch", plan.scratch_bytes);
  return text + "\n" + how.text;
}

}  // namespace einc
