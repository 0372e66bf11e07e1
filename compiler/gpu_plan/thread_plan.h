// SPDX-License-Identifier: Apache-2.0
// How the points and stages of a kernel are divided among a GPU's threads.
#pragma once
#include "compiler/lower/kernel.h"
#include "compiler/lower/transposes.h"
#include "runtime/base/gpu_shape.h"

namespace einc {

inline constexpr int64_t kWarpLoop = 1024;     // elements of a stage that a warp does
inline constexpr int64_t kSumRegisters = 184;  // words of sums over rows, and of a row, that a warp's thread holds: else a block has a row

// Who does an outer point: one thread; `team` lanes of a warp or the threads of a block, which divide its stages' loops; or, where
// neighbouring points are neighbours in memory, `team` threads of a block of 32 points side by side.
enum class CudaTeam : uint8_t { thread, warp, block, column };

// A store of a stage that goes through a tile in shared memory, so that its neighbours are written side by side.
struct TileStore {
  size_t stage = 0, store = 0;
  TransposedAxes axes;
};

// Sums over all rows that a kernel of rows keeps in its threads' registers at most.
inline constexpr int64_t kColumnSums = 1 << 14;
// Parts of a sum of squares are a few kilobytes, those of a bias' gradient hundreds, which would leave the L2 cache if all layers' were
// kept.
inline constexpr int64_t kOwnParts = 1 << 16;  // bytes

// Of what the stages of a kernel load of a row: nothing stays in registers; what is the row's own; or also what all rows read alike, as
// the weights of a norm, which the caches hold.
enum class KeptLoads : uint8_t { none, of_row, all };

struct ThreadPlan {
  CudaTeam kind = CudaTeam::thread;
  int team = 1;                             // threads of a point
  int block_threads = 1;                    // of a block
  std::vector<AxisId> outer;                // points, neighbours last
  std::vector<std::vector<AxisId>> stages;  // per stage: its loops, neighbours last
  // A load or store of `pack` neighbours along this axis at once: the last of `outer` or of stages.
  std::optional<AxisId> pack_axis;
  int pack = 1;
  // Of rows that start at any element: how far after a whole pack a row's first element lies, modulo `pack`. The packs of a row are those
  // of memory, its first and last are in part its own.
  std::optional<Affine> row_start;
  // Rows whose elements stay in registers from stage to stage: steps of a thread through a row; 0: loops.
  int64_t row_steps = 0;
  KeptLoads keeps = KeptLoads::none;  // of what several stages load of a row: that is loaded once
  // Of rows in registers: loads of the row that only one stage needs, which stores, too. They come with the first that are kept, so that no
  // step waits for memory behind the store of the step before.
  std::vector<ValueId> ahead;
  // Of rows that are too long for registers: loads that a block keeps in shared memory, pack after pack of the row. A thread reads only the
  // packs that it has put there itself.
  std::vector<ValueId> in_shared;
  std::vector<TileStore> tiles;  // of blocks
  int64_t points = 1, blocks = 1;

  int teams() const { return block_threads / team; }
  int64_t shared_bytes(const Kernel& kernel) const;             // that `in_shared` takes
  int64_t row_bytes(const Kernel& kernel, ValueId load) const;  // one load's share
  // Blocks that share a processor at least: while one waits for its row another one computes.
  int blocks_together() const { return in_shared.empty() ? 1 : 2; }
  // Whether neighbours there lie in a pack, and whether a value is loaded so.
  bool lies_in_packs(const Kernel& kernel, uint16_t buffer, const Subscript& index) const;
  bool loads_pack(const Kernel& kernel, ValueId value) const;
  // Packs of loops over these axes; elements where they are not packed.
  int64_t packs_of(const Kernel& kernel, const std::vector<AxisId>& axes) const;
};

ThreadPlan plan_threads(const Kernel& kernel, const GpuShape& gpu);

// An index's distance from the start of a whole pack, where the packed axis is 0: coefficients and constant modulo `pack`.
Affine start_in_pack(const Affine& index, AxisId axis, int pack);

// Whether neighbours along an axis are neighbours in the largest load that a value is made of.
bool lies_along(const Kernel& kernel, ValueId value, AxisId axis);

// The element that a load or store at `axis + 1` means is the next one in memory, and a pack of `width` neighbours is aligned.
bool packs(const Kernel& kernel, uint16_t buffer, const Subscript& index, AxisId axis, int width);

}  // namespace einc
