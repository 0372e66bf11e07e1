// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/kernel_cycles.h"

#include <algorithm>

#include "compiler/lower/kernel_work.h"
#include "compiler/lower/loop_cycles.h"

namespace einc {
namespace {

constexpr double kTransposed = 4;    // of a vector of a panel: its share of a square's shuffles
constexpr double kTileStart = 10;    // until a tile's first products: addresses, and sums that begin
constexpr double kSecondCache = 16;  // bytes a cycle from it and to it: copies of 64 kB (Zen 4)
constexpr double kLatency = 4;       // until a sum can be added to again

// Tiles of `size` along an extent, the last one maybe smaller.
template <class Cost>
double over_tiles(int64_t extent, int64_t size, const Cost& cost) {
  return static_cast<double>(extent / size) * cost(size) + (extent % size > 0 ? cost(extent % size) : 0.0);
}

class TileCycles {
 public:
  TileCycles(const TiledContraction& tiles, const Processor& processor)
      : t_(tiles), loops_(tiles.kernel, processor), vector_cycles_(processor.vector_cycles()) {}

  double slowdown() const {
    const double m = static_cast<double>(t_.rows()), n = static_cast<double>(t_.columns()), k = static_cast<double>(t_.depths());
    if (t_.microkernel == Microkernel::matrix_tiles) {
      const auto whole = [](int64_t extent, int64_t tile) { return static_cast<double>(round_up(extent, tile)); };
      return whole(t_.rows(), TiledContraction::kTileRows) * whole(t_.columns(), TiledContraction::kTileRows) *
             whole(t_.depths(), TiledContraction::kTileDepth) / (m * n * k);
    }
    const double blocks = static_cast<double>(divide_up(t_.depths(), t_.block_depth));
    const double cycles = over_tiles(t_.rows(), t_.tile_rows, [&](int64_t rows) {
      return over_tiles(divide_up(t_.columns(), t_.lanes), t_.tile_vectors, [&](int64_t vectors) { return tile(rows, vectors, blocks); });
    });
    return std::max(1.0, cycles / (m * n * k / (2 * t_.lanes) * vector_cycles_));
  }

  double others() const {
    const Contraction& c = *t_.kernel.contraction;
    const auto times = [](int64_t extent, int64_t block) { return static_cast<double>(divide_up(extent, block)); };
    double cycles = times(t_.columns(), t_.block_columns) * panel(c.left, t_.left, t_.row) +
                    times(t_.rows(), t_.block_rows) * panel(c.right, t_.right, t_.column);
    if (t_.right == PanelSource::by_depth)  // the left operand's rows are stored as they are read
      cycles += static_cast<double>(t_.batches) * times(t_.rows(), t_.block_rows) * times(t_.columns(), t_.lanes) *
                static_cast<double>(t_.depths()) * kTransposed;
    return cycles + loops_.stage(t_.kernel.stages[1], t_.kernel.outer, {t_.column, t_.lanes, {}, true});
  }

 private:
  // Two products and two loads a cycle; sums come and go between blocks of depth.
  double tile(int64_t rows, int64_t vectors, double blocks) const {
    const double sums = static_cast<double>(rows * vectors) * vector_cycles_,
                 loads = static_cast<double>(rows) + static_cast<double>(vectors) * vector_cycles_;
    return static_cast<double>(t_.depths()) * std::max({sums / 2, loads / 2, kLatency}) + blocks * kTileStart + (blocks - 1) * 1.5 * sums;
  }

  double panel(ValueId operand, PanelSource source, AxisId width) const {
    if (source == PanelSource::in_place) return 0;
    const AxisId lanes = source == PanelSource::by_depth ? t_.depth : width;
    std::vector<AxisId> loops = t_.kernel.contraction->batch;
    loops.push_back(lanes == width ? t_.depth : width);
    loops.push_back(lanes);
    return loops_.panel(operand, loops, {lanes, t_.lanes, {}, true});
  }

  const TiledContraction& t_;
  LoopCycles loops_;
  const double vector_cycles_;
};

double loops_of(const Kernel& kernel, const LoopPlan& plan, const Processor& processor) {
  const LoopCycles loops(kernel, processor);
  double cycles = 0;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const std::optional<AxisId> axis = plan.outer_vector ? plan.outer_vector : plan.stage_vector[s];
    cycles += loops.stage(kernel.stages[s], kernel.outer, {axis, axis ? plan.lanes : 1, plan.turned});
  }
  return cycles;
}

// Products in the time of one of f32: matrix tiles do 16 x 16 x 32 in 16 cycles.
double products_at_once(const ProcessorPlan& plan) {
  if (plan.attention) return plan.attention->has_matrix_tiles() ? 16 : 1;
  if (!plan.tiles) return 1;
  if (plan.tiles->microkernel == Microkernel::matrix_tiles) return 16;
  return plan.tiles->microkernel == Microkernel::bf16_pairs ? 2 : plan.tiles->dtype == DType::f64 ? 0.5 : 1;
}

}  // namespace

KernelCycles kernel_cycles(const Kernel& kernel, const ProcessorPlan& plan, const Processor& processor) {
  if (!plan.tiles) return {1, loops_of(kernel, plan.plan, processor), false};
  const TileCycles cycles(*plan.tiles, processor);
  return {cycles.slowdown(), cycles.others(), true};
}

double cycles_of_one_core(const Kernel& kernel, const ProcessorPlan& plan, const Processor& processor) {
  const KernelWork work = work_of(kernel);
  const double products = static_cast<double>(work.contraction) / peak_flops_per_cycle(processor) / products_at_once(plan);
  const double moved = static_cast<double>(work.bytes_read + work.bytes_written) / kSecondCache;
  double cycles = 0;
  if (plan.attention) {
    cycles = products;
  } else {
    const KernelCycles own = kernel_cycles(kernel, plan, processor);
    cycles = own.others + (own.in_tiles ? own.slowdown * products : 0);
  }
  return std::max(cycles, moved);
}

}  // namespace einc
