// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/kernel_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/attention_text.h"
#include "compiler/codegen/cuda/attention_tiles.h"
#include "compiler/codegen/cuda/contraction_text.h"
#include "compiler/codegen/cuda/product_tiles.h"
#include "compiler/codegen/cuda/scatter_text.h"
#include "compiler/codegen/cuda/stage_text.h"
#include "compiler/codegen/cuda/value_text.h"
#include "compiler/lower/transposes.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

bool writes(const Kernel& kernel, uint16_t buffer) {
  const auto into = [&](const Store& s) { return s.buffer == buffer; };
  for (const Stage& stage : kernel.stages)
    if (std::any_of(stage.stores.begin(), stage.stores.end(), into)) return true;
  if (kernel.attention)
    for (const AttentionStep& step : kernel.attention->steps)
      if (std::any_of(step.stores.begin(), step.stores.end(), into)) return true;
  return false;
}

std::string parameters_of(const Kernel& kernel) {
  std::string text;
  for (uint16_t b = 0; b < kernel.buffers.size(); ++b)
    text += fmt::format("{}{}* b{}, ", writes(kernel, b) ? "" : "const ", storage_type(kernel.buffers[b].dtype), b);
  return text;
}

std::string_view kind_of(const Kernel& kernel, const ThreadPlan& plan) {
  const bool held = plan.keeps != KeptLoads::none;
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

std::string declarations_of(const Kernel& kernel) {
  std::string text = fmt::format("  table += blockIdx.y * {};\n", kernel.buffers.size());
  for (uint16_t b = 0; b < kernel.buffers.size(); ++b) {
    const std::string type = fmt::format("{}{}*", writes(kernel, b) ? "" : "const ", storage_type(kernel.buffers[b].dtype));
    text += fmt::format("  {0} b{1} = reinterpret_cast<{0}>(table[{1}]);\n", type, b);
  }
  return text;
}

CudaGrid grid_of(int64_t blocks, uint32_t x, uint32_t y) {
  EINC_CHECK(blocks < INT32_MAX, "a launch of {} blocks", blocks);
  CudaGrid grid;
  grid.blocks[0] = static_cast<uint32_t>(std::max<int64_t>(blocks, 1));
  grid.threads = {x, y, 1};
  return grid;
}

}  // namespace

CudaFunction cuda_function(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products) {
  CudaFunction f;
  f.parameters = parameters_of(kernel);
  f.from_table = declarations_of(kernel);
  if (const auto tiles = kernel.attention ? tile_attention_for_tensor_cores(kernel, gpu, f32_products) : std::nullopt) {
    f.kind = "attention on tensor cores";
    f.threads = AttentionTiles::kThreads;
    f.grid = grid_of(tiles->blocks(), static_cast<uint32_t>(f.threads), 1);
    f.grid.shared_bytes = static_cast<uint32_t>(tiles->shared_bytes());
    f.body = attention_tiles_text(kernel, *tiles);
    return f;
  }
  if (kernel.attention) {
    const AttentionBlocks plan = plan_attention_blocks(kernel, gpu);
    f.kind = "attention";
    f.threads = AttentionBlocks::kThreads;
    f.grid = grid_of(plan.blocks(), static_cast<uint32_t>(f.threads), 1);
    f.grid.shared_bytes = static_cast<uint32_t>(plan.shared_bytes());
    f.scratch_bytes = plan.blocks() * plan.slice_bytes();
    if (f.scratch_bytes > 0) f.parameters += "unsigned char* scratch, ";
    f.body = attention_text(kernel, plan);
    return f;
  }
  if (const auto tiles = tile_product(kernel, gpu, f32_products)) {
    f.kind = "tiles of a product on tensor cores";
    f.threads = tiles->threads();
    f.grid = grid_of(tiles->blocks(), static_cast<uint32_t>(f.threads), 1);
    f.grid.shared_bytes = static_cast<uint32_t>(tiles->shared_bytes());
    f.body = product_tiles_text(*tiles);
    return f;
  }
  if (const auto tiles = tile_cuda_contraction(kernel)) {
    f.kind = "tiles of a product";
    f.threads = tiles->threads();
    f.grid = grid_of(tiles->blocks(), static_cast<uint32_t>(f.threads), 1);
    f.body = contraction_text(*tiles);
    return f;
  }
  if (const auto scatter = plan_scatter(kernel, gpu)) {
    f.kind = "scatter";
    f.threads = scatter->threads;
    f.grid = grid_of(scatter->blocks(), static_cast<uint32_t>(f.threads), 1);
    f.body = scatter_text(kernel, *scatter);
    return f;
  }
  const std::optional<Kernel> tiled = tile_transposes(kernel);
  const Kernel& planned = tiled ? *tiled : kernel;
  const ThreadPlan plan = plan_threads(planned, gpu);
  const bool column = plan.kind == CudaTeam::column;
  f.kind = plan.tiles.empty() ? kind_of(planned, plan) : "tiles that transpose";
  f.threads = plan.block_threads;
  f.grid = grid_of(plan.blocks, column ? 32 : static_cast<uint32_t>(f.threads), column ? static_cast<uint32_t>(plan.team) : 1);
  f.body = stages_text(planned, plan);
  return f;
}

std::string definition(const CudaFunction& function, const std::string& name, BufferPassing passing) {
  const bool by_table = passing == BufferPassing::by_table;
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}({}const u64* step, const u64* keys, Fault* fault, i32 launch) {{\n{}{}}}\n",
      function.threads, name, by_table ? "const u64* table, " : function.parameters, by_table ? function.from_table : "", function.body);
}

}  // namespace einc
