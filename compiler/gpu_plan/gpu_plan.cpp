// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/gpu_plan.h"

#include <map>

#include "compiler/library/find_products.h"
#include "compiler/lower/transposes.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

std::string_view kind_of(const Kernel& kernel, const ThreadPlan& plan) {
  const bool held = plan.keeps != KeptLoads::none;
  if (!plan.tiles.empty()) return "tiles that transpose";
  if (kernel.part) return plan.kind == CudaTeam::warp ? "rows and sums over them, a row a warp" : "rows and sums over them, a row a block";
  switch (plan.kind) {
    case CudaTeam::thread:
      return "points";
    case CudaTeam::warp:
      return held ? "a row a warp, in registers" : "a row a warp";
    case CudaTeam::block:
      return held ? "a row a block, in registers" : "a row a block";
    case CudaTeam::column:
      return "columns";
  }
  internal_error(__FILE__, __LINE__, "a team of another kind");
}

GpuPlan tiles_plan(auto tiles, std::string_view kind, int threads, int64_t shared_bytes = 0) {
  const int64_t blocks = tiles.blocks();
  return {std::move(tiles), kind, blocks, static_cast<uint32_t>(threads), 1, shared_bytes, 0};
}

}  // namespace

// The first form that takes the kernel.
GpuPlan plan_on_gpu(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products) {
  if (kernel.attention) {
    if (auto tiles = tile_attention_for_tensor_cores(kernel, gpu, f32_products)) {
      const int64_t shared = tiles->shared_bytes();
      return tiles_plan(std::move(*tiles), "attention on tensor cores", AttentionTiles::kThreads, shared);
    }
    AttentionBlocks blocks = plan_attention_blocks(kernel, gpu);
    const int64_t shared = blocks.shared_bytes(), scratch = blocks.blocks() * blocks.slice_bytes();
    GpuPlan plan = tiles_plan(std::move(blocks), "attention", AttentionBlocks::kThreads, shared);
    plan.scratch_bytes = scratch;
    return plan;
  }
  if (auto tiles = tile_product(kernel, gpu, f32_products)) {
    const int threads = tiles->threads();
    const int64_t shared = tiles->shared_bytes();
    return tiles_plan(std::move(*tiles), "tiles of a product on tensor cores", threads, shared);
  }
  if (auto tiles = tile_cuda_contraction(kernel)) {
    const int threads = tiles->threads();
    return tiles_plan(std::move(*tiles), "tiles of a product", threads);
  }
  if (auto scatter = plan_scatter(kernel, gpu)) {
    const int threads = scatter->threads;
    return tiles_plan(std::move(*scatter), "scatter", threads);
  }
  ThreadedLoops loops{tile_transposes(kernel), {}};
  const Kernel& planned = loops.transposed ? *loops.transposed : kernel;
  loops.threads = plan_threads(planned, gpu);
  const ThreadPlan& threads = loops.threads;
  const bool column = threads.kind == CudaTeam::column;
  const std::string_view kind = kind_of(planned, threads);
  const int64_t blocks = threads.blocks;
  const auto x = static_cast<uint32_t>(column ? 32 : threads.block_threads), y = static_cast<uint32_t>(column ? threads.team : 1);
  return {std::move(loops), kind, blocks, x, y, 0, 0};
}

void plan_threads_of(const BoundGraph& graph, const GpuShape& gpu, KernelList& list) {
  std::map<std::pair<const Kernel*, ProductSums>, std::shared_ptr<const GpuPlan>> known;
  for (GraphKernel& k : list.kernels) {
    if (k.kernel->scan || k.kernel->collective) continue;
    const ProductSums products = f32_products(graph, k);
    std::shared_ptr<const GpuPlan>& plan = known[{k.kernel.get(), products}];
    if (!plan) plan = std::make_shared<GpuPlan>(plan_on_gpu(*k.kernel, gpu, products));
    k.plan = plan;
  }
}

}  // namespace einc
