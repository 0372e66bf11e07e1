// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/gpu_times.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/dtype.h"

namespace einc {
namespace {

// Per clock and streaming multiprocessor (CUDA C++ Programming Guide, throughput of native arithmetic instructions): instructions that four
// schedulers start for 32 lanes each, results of exp2, log2 and their like, bytes of shared memory.
constexpr double kIssued = 128, kSpecial = 16, kSharedBytes = 128;
// Instructions around a special function's own: range, scale, what selects. Assumed.
constexpr double kAroundSpecial = 6;

// A library's product besides its launch: until the first blocks have what they multiply and while the last ones store. Its blocks in
// between do so while others multiply. Of GPT-2's products on an H200 (cuBLASLt 13.1, bf16, 16384 rows, widths 768 to 50304, depths 768 to
// 50304) all but the weights' gradients are met to 8 %; those are divided along their depth, and take 10 to 25 % longer. Assumed to be so
// everywhere.
constexpr double kLibrarySeconds = 5e-6;
// What an epilogue reads or writes besides the product's own, a kept input or an operand once more, is not hidden behind the product, and
// passes the memory at half its rate: GELU that keeps its input, its slope, sums of an operand, on the same H200 to 8 %.
constexpr double kEpilogueBandwidth = 0.5;
constexpr double kLeastDepth = 768;  // of a part
struct BlockShape {
  int64_t rows, columns;
};
constexpr std::array kBlocks{BlockShape{128, 256}, BlockShape{256, 128}, BlockShape{128, 128}, BlockShape{128, 64}, BlockShape{64, 64}};
constexpr double kSmallBlock = 128 * 128;  // smaller ones read more than they multiply, and are no faster than their share of it

// One warp instruction of tensor cores is 16 x 8 sums over 32 bytes of the depth: 16 places of 16 bits, 8 of tf32. Counted in sm_90's
// machine code (codegen/cuda/README.md): eight instructions for each in a product's tile with its copies; in attention 443, 521 and 623 for
// a turn of 16 x 64 pairs and 64, 96 and 128 such, which is 11 for each of a lane's pairs and two for each instruction to 8 %.
constexpr double kFlopsOfMma = 2 * 16 * 8 * 32, kInstructionsOfMma = 8;  // FLOPs for an element of one byte
constexpr double kInstructionsOfPair = 11, kInstructionsOfAttentionMma = 2;
constexpr double kRowsOfWarp = 16;  // of attention, at least: each operand of shared memory serves so many
// With wgmma four warps wait for products and then make weights of them, other blocks meanwhile: instructions for each pair besides the
// products, and issue slots that pass for each, at a library's rate of products. From an H200 and kernels of 480 instructions for a turn of
// 16 x 64: heads of 64, 16 x 12 by 1024 rows, causal, 98 us forward, 113 d q, 152 d k and d v, and heads of 128, 4 x 16 by 4096, 700, 849
// and 1363 us, are met to 12 %; where sums over keys are two results of 128, 25 % low. A turn has 286 since, and the first three take 97,
// 107 and 139 us: waiting has taken most of their place.
constexpr double kInstructionsOfGroupPair = 15, kSlotsOfInstruction = 1.1;

double waves(double blocks, double processors) { return std::ceil(blocks / processors) / (blocks / processors); }

// The best of the shapes that a library has. What is deep and has few blocks it divides along the depth, into as many parts as there are
// processors for.
double library_slowdown(const LibraryProduct& p, double processors) {
  double best = 1e9;
  for (const BlockShape& block : kBlocks) {
    const double rows = std::ceil(static_cast<double>(p.rows) / static_cast<double>(block.rows));
    const double columns = std::ceil(static_cast<double>(p.columns) / static_cast<double>(block.columns));
    const double blocks = rows * columns * static_cast<double>(p.batch), size = static_cast<double>(block.rows * block.columns);
    const double edges = rows * columns * size / static_cast<double>(p.rows * p.columns);
    const double parts = std::clamp(std::floor(static_cast<double>(p.depth) / kLeastDepth), 1.0, std::max(1.0, processors / blocks));
    best = std::min(best, edges * waves(blocks * parts, processors) * std::max(1.0, kSmallBlock / size));
  }
  return best;
}

double epilogue_bytes(const LibraryProduct& p) {
  const LibraryEpilogue& e = p.epilogue;
  double elements = 0;
  if (e.input) elements += static_cast<double>(p.rows * p.columns);
  if (e.left_sums) elements += static_cast<double>(p.rows * p.depth);
  if (e.right_sums) elements += static_cast<double>(p.columns * p.depth);
  return elements * bytes_of(p.left.dtype);
}

double pairs_of(const Kernel& kernel, const KernelWork& work) {
  double per_pair = 0;  // products are 2 FLOPs for each pair and place of what they sum or make
  for (const AttentionStep& step : kernel.attention->steps)
    if (step.part == AttentionPart::scores)
      per_pair += 2 * static_cast<double>(trips(kernel, bits(step.over)));
    else if (step.part != AttentionPart::fold)
      per_pair += 2 * static_cast<double>(trips(kernel, bits(step.free)));
  return per_pair > 0 ? static_cast<double>(work.contraction) / per_pair : 0;
}

// Of an element of what tensor cores multiply; 16 bits where the kernel doesn't say.
double operand_bytes(const Kernel& kernel) {
  if (kernel.contraction) return static_cast<double>(bytes_of(kernel.values[kernel.contraction->left].dtype));
  if (kernel.attention)
    for (const AttentionStep& step : kernel.attention->steps)
      if (step.part == AttentionPart::scores) return static_cast<double>(bytes_of(kernel.values[step.left].dtype));
  return 2;
}

bool takes_wgmma(const GpuPlan* plan) {
  const auto* tiles = plan ? std::get_if<AttentionTiles>(&plan->how) : nullptr;
  return tiles && tiles->wgmma;
}

// At the stated clock.
GpuTimes times_at_peak(const Kernel& kernel, const GpuPlan* plan, const KernelWork& work, const LibraryProduct* product,
                       const Device& device, double peak, double vector_peak) {
  const double processors = device.gpu ? device.gpu->processors : 1, clocks = device.clock * processors;
  const auto products = static_cast<double>(work.contraction), special = static_cast<double>(work.transcendental);
  const double plain = static_cast<double>(work.elementwise - work.transcendental + work.reduction) + kAroundSpecial * special;
  GpuTimes t{.vector = 2 * plain / vector_peak};
  if (clocks <= 0) return t.products = products / peak, t;
  t.vector = std::max(t.vector, special / (kSpecial * clocks));
  const bool tensor_cores = peak > vector_peak;
  if (product) {
    t.products = products / (peak * device.sustained_share(product->left.dtype)) * library_slowdown(*product, processors);
  } else if (!tensor_cores) {
    t.products = products / peak;
  } else {
    const double bytes = operand_bytes(kernel);
    const double multiplied = products / (peak * device.warp_products), mma = products * bytes / kFlopsOfMma;
    const double issue_slots = kIssued / 32 * clocks;
    if (takes_wgmma(plan)) {
      t.products = products / (peak * device.sustained_share(DType::bf16));
      t.vector = kSlotsOfInstruction * kInstructionsOfGroupPair * pairs_of(kernel, work) / 32 / issue_slots;
      t.by_turns = true;
    } else if (kernel.attention) {
      // Elements of shared memory are read once for all of the warp's rows: one for two FLOPs of each.
      const double shared = products / 2 * bytes / kRowsOfWarp / (kSharedBytes * clocks);
      t.products = std::max(multiplied, shared);
      t.vector = std::max(special / (kSpecial * clocks),
                          (kInstructionsOfPair * pairs_of(kernel, work) / 32 + kInstructionsOfAttentionMma * mma) / issue_slots);
      t.by_turns = true;
    } else {
      t.products = std::max(multiplied, kInstructionsOfMma * mma / issue_slots);
    }
  }
  return t;
}

}  // namespace

GpuTimes gpu_times(const Kernel& kernel, const GpuPlan* plan, const KernelWork& work, const LibraryProduct* product, const Device& device,
                   double peak, double vector_peak) {
  GpuTimes t = times_at_peak(kernel, plan, work, product, device, peak, vector_peak);
  t.products /= device.sustained_clock, t.vector /= device.sustained_clock;
  if (product && device.clock > 0)
    t.products += kLibrarySeconds + epilogue_bytes(*product) / (device.bandwidth * device.sustained_bandwidth * kEpilogueBandwidth);
  return t;
}

}  // namespace einc
