// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/gpu_plan.h"

#include <map>

#include "compiler/library/find_products.h"
#include "compiler/lower/transposes.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

std::string_view kind_of(const Kernel& kernel, const ThreadPlan& plan) {
  const bool held = plan.keeps != KeptLoads::none, shared = !plan.in_shared.empty();
  if (!plan.tiles.empty()) return "tiles that transpose";
  if (kernel.part) return plan.kind == CudaTeam::warp ? "rows and sums over them, a row a warp" : "rows and sums over them, a row a block";
  switch (plan.kind) {
    case CudaTeam::thread:
      return "points";
    case CudaTeam::warp:
      if (plan.team < 32) return held ? "a row a part of a warp, in registers" : "a row a part of a warp";
      return held ? "a row a warp, in registers" : "a row a warp";
    case CudaTeam::block:
      return held ? "a row a block, in registers" : shared ? "a row a block, in shared memory" : "a row a block";
    case CudaTeam::column:
      return "columns";
  }
  internal_error(__FILE__, __LINE__, "a team of another kind");
}

template <class... Form>
struct Sized : Form... {
  using Form::operator()...;
};

}  // namespace

GpuPlan gpu_plan_of(GpuForm form, const Kernel& kernel) {
  const auto tiles = [](std::string_view kind, int64_t blocks, int threads, int64_t shared_bytes = 0, int64_t scratch_bytes = 0) {
    return GpuPlan{{}, kind, blocks, static_cast<uint32_t>(threads), 1, shared_bytes, scratch_bytes, 1};
  };
  GpuPlan plan = std::visit(
      Sized{[&](const AttentionTiles& t) {
              GpuPlan made = tiles("attention on tensor cores", t.blocks(), AttentionTiles::kThreads, t.shared_bytes());
              made.blocks_together = t.blocks_together;
              return made;
            },
            [&](const AttentionBlocks& b) {
              return tiles("attention", b.blocks(), AttentionBlocks::kThreads, b.shared_bytes(), b.blocks() * b.slice_bytes());
            },
            [&](const ProductTiles& t) { return tiles("tiles of a product on tensor cores", t.blocks(), t.threads(), t.shared_bytes()); },
            [&](const ContractionTiles& t) { return tiles("tiles of a product", t.blocks(), t.threads()); },
            [&](const ScatterBlocks& s) { return tiles("scatter", s.blocks(), s.threads); },
            [&](const ThreadedLoops& loops) {
              const ThreadPlan& t = loops.threads;
              const bool column = t.kind == CudaTeam::column;
              const Kernel& planned = loops.transposed ? *loops.transposed : kernel;
              GpuPlan made = tiles(kind_of(planned, t), t.blocks, column ? 32 : t.block_threads, t.shared_bytes(planned));
              made.blocks_together = t.blocks_together();
              if (column) made.threads_y = static_cast<uint32_t>(t.team);
              return made;
            }},
      form);
  plan.how = std::move(form);
  return plan;
}

// The first form that takes the kernel.
GpuPlan plan_on_gpu(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products) {
  const auto form = [&]() -> GpuForm {
    if (kernel.attention) {
      if (auto tiles = tile_attention_for_tensor_cores(kernel, gpu, f32_products)) return std::move(*tiles);
      return plan_attention_blocks(kernel, gpu);
    }
    if (auto tiles = tile_product(kernel, gpu, f32_products)) return std::move(*tiles);
    if (auto tiles = tile_cuda_contraction(kernel)) return std::move(*tiles);
    if (auto scatter = plan_scatter(kernel, gpu)) return std::move(*scatter);
    ThreadedLoops loops{tile_transposes(kernel), {}};
    loops.threads = plan_threads(loops.transposed ? *loops.transposed : kernel, gpu);
    return loops;
  };
  return gpu_plan_of(form(), kernel);
}

// Rows and keys that are made or skipped together: of tiles those of a block, or of a warp where it skips tiles by itself. What is counted
// of the kernel (pairs_made) is then what is done.
static void set_pair_blocks(Attention& a, const GpuForm& form) {
  if (const auto* tiles = std::get_if<AttentionTiles>(&form)) {
    const int64_t own = tiles->warps_skip() ? tiles->warp_rows() : tiles->block(), other = tiles->step;
    a.block_rows = tiles->of_keys() ? other : own;
    a.block_keys = tiles->of_keys() ? own : other;
    // Blocks of keys skip rows by these alone (AttentionBoundsText).
    if (tiles->of_keys()) std::erase_if(a.bounds, [](const KeyBound& b) { return b.factor != 0 && b.factor != 1; });
  } else if (const auto* blocks = std::get_if<AttentionBlocks>(&form)) {
    a.block_rows = blocks->rows;
  }
}

void plan_threads_of(const BoundGraph& graph, const GpuShape& gpu, KernelList& list) {
  struct Planned {
    std::shared_ptr<const Kernel> given, kernel;
    std::shared_ptr<const GpuPlan> plan;
  };
  std::map<std::pair<const Kernel*, ProductSums>, Planned> known;
  for (GraphKernel& k : list.kernels) {
    if (k.kernel->scan || k.kernel->collective) continue;
    const ProductSums products = f32_products(graph, k);
    Planned& planned = known[{k.kernel.get(), products}];
    if (!planned.plan) {
      planned = {k.kernel, k.kernel, std::make_shared<GpuPlan>(plan_on_gpu(*k.kernel, gpu, products))};
      if (k.kernel->attention) {
        const auto kernel = std::make_shared<Kernel>(*k.kernel);
        set_pair_blocks(*kernel->attention, planned.plan->how);
        planned.kernel = kernel;
      }
    }
    k.kernel = planned.kernel;
    k.plan = planned.plan;
  }
}

}  // namespace einc
