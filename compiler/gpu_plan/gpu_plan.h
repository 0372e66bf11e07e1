// SPDX-License-Identifier: Apache-2.0
// The pass `threads`: who does what of a kernel on a GPU. A plan says it whole (tiles, blocks, threads, shared memory, copies), so that the
// text of CUDA C++ (codegen/cuda) only prints it. It follows from the kernel, the GPU's shape and how f32 is multiplied, from nothing else.
#pragma once
#include <string>
#include <variant>

#include "compiler/gpu_plan/attention_blocks.h"
#include "compiler/gpu_plan/attention_tiles.h"
#include "compiler/gpu_plan/contraction_tiles.h"
#include "compiler/gpu_plan/product_tiles.h"
#include "compiler/gpu_plan/scatter_blocks.h"
#include "compiler/gpu_plan/thread_plan.h"
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Points and rows by threads, warps, blocks or columns. A kernel that transposes is done as another one, whose outer points are tiles.
struct ThreadedLoops {
  std::optional<Kernel> transposed;
  ThreadPlan threads;
};

using GpuForm = std::variant<AttentionTiles, AttentionBlocks, ProductTiles, ContractionTiles, ScatterBlocks, ThreadedLoops>;

struct GpuPlan {
  GpuForm how;
  std::string_view kind;  // for people: "tiles of a product on tensor cores"
  int64_t blocks = 1;
  uint32_t threads_x = 1, threads_y = 1;  // of a block
  int64_t shared_bytes = 0;               // of a block, beside what its code declares
  int64_t scratch_bytes = 0;              // of global memory that all blocks share
  int blocks_together = 1;                // that share a processor at least: what registers a thread may take
  uint32_t threads() const { return threads_x * threads_y; }
};

GpuPlan plan_on_gpu(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products);

// With the blocks, threads and memory that a form takes.
GpuPlan gpu_plan_of(GpuForm form, const Kernel& kernel);

// One line for each thing that is decided, indented by two spaces.
std::string to_string(const GpuPlan& plan, const Kernel& kernel);

// A plan for each kernel of the list but scans; equal kernels share theirs. Attention then has the blocks of its plan.
void plan_threads_of(const BoundGraph& graph, const GpuShape& gpu, KernelList& list);

}  // namespace einc
