// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/contraction_tiles.h"

#include "compiler/lower/flatten.h"

namespace einc {
namespace {

constexpr int64_t kFewestSums = 8, kLeastDepth = 4, kLeastWork = 1 << 12;

}  // namespace

std::optional<ContractionTiles> tile_cuda_contraction(const Kernel& kernel) {
  if (!kernel.contraction || kernel.axes.size() + 3 > 64) return std::nullopt;
  const DType dtype = kernel.reductions[kernel.contraction->reduction].dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return std::nullopt;
  ContractionTiles t;
  t.kernel = kernel;
  const FlatContraction flat = flatten_contraction(t.kernel);
  t.row = flat.row, t.column = flat.column, t.depth = flat.depth, t.batches = flat.batches;
  const int64_t m = t.kernel.extent(t.row), n = t.kernel.extent(t.column), k = t.kernel.extent(t.depth);
  if (m < kFewestSums || n < kFewestSums || k < kLeastDepth || m * n * k < kLeastWork) return std::nullopt;
  if (dtype == DType::f64) t.tile_rows = t.tile_columns = 32, t.thread_rows = t.thread_columns = 2;
  return t;
}

}  // namespace einc
