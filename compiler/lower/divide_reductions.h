// SPDX-License-Identifier: Apache-2.0
// Sums (and extremes, products) over so much that threads should share them, in kernels with few points of their own: each
// becomes a kernel that reduces parts, as many as the shapes say, and the kernel itself reduces what those have left. What
// threads do changes no result; a long sum also loses less to rounding.
#pragma once
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

struct DividedKernel {
  static constexpr uint16_t kParts = UINT16_MAX;
  Kernel kernel;
  std::vector<uint16_t> buffers;  // per buffer: which of the given kernel's it is, or kParts
  std::vector<Parts> parts;

  // The kernel's own buffers, none of parts.
  static DividedKernel whole(Kernel kernel);
  // Hands one of its buffers, of reduced parts, the place behind those that it has.
  void add_parts(uint16_t buffer);
  // Leaves out what no store needs.
  void prune();
};

// The kernels in the order they run, the given one last (alone when there is nothing to divide).
std::vector<DividedKernel> divide_reductions(Kernel kernel, const KernelTarget& target = {});
// Each of a list but attention, and what hands over parts already.
void divide_reductions(KernelList& list, const KernelTarget& target);

// Bytes from the start of the place of parts to the end of a kernel's, and to that of all.
int64_t bytes_of_parts(const GraphKernel& k);
int64_t parts_bytes(const KernelList& list);

}  // namespace einc
