// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/kernel_text.h"

#include <algorithm>

#include "compiler/codegen/cuda/attention_text.h"
#include "compiler/codegen/cuda/attention_tiles_text.h"
#include "compiler/codegen/cuda/contraction_text.h"
#include "compiler/codegen/cuda/product_tiles_text.h"
#include "compiler/codegen/cuda/scatter_text.h"
#include "compiler/codegen/cuda/stage_text.h"
#include "compiler/codegen/cuda/value_text.h"
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

std::string declarations_of(const Kernel& kernel) {
  std::string text = fmt::format("  table += blockIdx.y * {};\n", kernel.buffers.size());
  for (uint16_t b = 0; b < kernel.buffers.size(); ++b) {
    const std::string type = fmt::format("{}{}*", writes(kernel, b) ? "" : "const ", storage_type(kernel.buffers[b].dtype));
    text += fmt::format("  {0} b{1} = reinterpret_cast<{0}>(table[{1}]);\n", type, b);
  }
  return text;
}

struct BodyText {
  const Kernel& kernel;
  std::string operator()(const AttentionTiles& tiles) const { return attention_tiles_text(kernel, tiles); }
  std::string operator()(const AttentionBlocks& plan) const { return attention_text(kernel, plan); }
  std::string operator()(const ProductTiles& tiles) const { return product_tiles_text(tiles); }
  std::string operator()(const ContractionTiles& tiles) const { return contraction_text(tiles); }
  std::string operator()(const ScatterBlocks& plan) const { return scatter_text(kernel, plan); }
  std::string operator()(const ThreadedLoops& loops) const {
    return stages_text(loops.transposed ? *loops.transposed : kernel, loops.threads);
  }
};

}  // namespace

CudaFunction cuda_function(const Kernel& kernel, const GpuPlan& plan) {
  EINC_CHECK(plan.blocks < INT32_MAX, "a launch of {} blocks", plan.blocks);
  CudaFunction f;
  f.parameters = parameters_of(kernel);
  if (plan.scratch_bytes > 0) f.parameters += "unsigned char* scratch, ";
  f.from_table = declarations_of(kernel);
  f.threads = static_cast<int>(plan.threads());
  f.blocks_together = plan.blocks_together;
  f.grid.blocks[0] = static_cast<uint32_t>(std::max<int64_t>(plan.blocks, 1));
  f.grid.threads = {plan.threads_x, plan.threads_y, 1};
  f.grid.shared_bytes = static_cast<uint32_t>(plan.shared_bytes);
  f.scratch_bytes = plan.scratch_bytes;
  f.body = std::visit(BodyText{kernel}, plan.how);
  return f;
}

std::string definition(const CudaFunction& function, const std::string& name, BufferPassing passing) {
  const bool by_table = passing == BufferPassing::by_table;
  const std::string bounds = function.blocks_together > 1 ? fmt::format("{}, {}", function.threads, function.blocks_together)
                                                          : fmt::format("{}", function.threads);
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}({}const u64* step, const u64* keys, Fault* fault, i32 launch) {{\n{}{}}}\n",
      bounds, name, by_table ? "const u64* table, " : function.parameters, by_table ? function.from_table : "", function.body);
}

}  // namespace einc
