// SPDX-License-Identifier: Apache-2.0
// How long a kernel keeps one core of a processor busy, in cycles, by its own plan: the vectors that its loops fill, elements that lie
// apart and are read one by one, sums whose additions wait for one another, tiles at the edges of a product, panels that are filled first.
// What memory beyond the first caches takes is not in it.
#pragma once
#include "compiler/lower/processor_plan.h"

namespace einc {

// Cycles that are not worth a second thread: steps of examples take as long for 1024 to 8192 (Zen 4, neighbouring cores).
inline constexpr double kSmallLaunch = 4096;

struct KernelCycles {
  double slowdown = 1;  // of the products of a contraction in tiles: their cycles over those at the peak of the microkernel
  double others = 0;    // cycles of all else; of products that are no tiles too
  bool in_tiles = false;
};

// Of a kernel with stages: neither of attention nor of a scan.
KernelCycles kernel_cycles(const Kernel& kernel, const ProcessorPlan& plan, const Processor& processor);

// What one core does for the whole kernel, attention at the peak of its products, and no less than its bytes take from the second cache.
double cycles_of_one_core(const Kernel& kernel, const ProcessorPlan& plan, const Processor& processor);

// FLOPs of f32 products in a cycle at their peak: two vectors of multiply-adds, or two halves.
inline double peak_flops_per_cycle(const Processor& processor) {
  return 2.0 * 2.0 * processor.vector_bits / 32 / processor.vector_cycles();
}

}  // namespace einc
