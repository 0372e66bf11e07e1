// SPDX-License-Identifier: Apache-2.0
// Which elementwise values of the forward are made again where the backward wants them, instead of being kept from one to the other:
// those beyond a minimal cut between what only the forward can make and what the backward reads, where cutting a value costs
// its bytes (the formulation of PyTorch's min-cut rematerialisation; a minimal cut is a maximal flow's). Of equal cuts the last one, so
// that no more is made again than saves memory.
#pragma once
#include <vector>

#include "compiler/fuse/reader_lists.h"
#include "compiler/lower/bound_graph.h"

namespace einc {

// What is worth it: values of at least so many bytes, which contractions read only where each of their rows, columns and depth is at least
// `extent`, so that they run in tiles, which read each element about once.
struct RecomputeLimits {
  int64_t bytes = 64 << 10, extent = 16;
  bool contractions = true;  // whether they may compute what they read
  bool operator==(const RecomputeLimits&) const = default;
};

// `stored`: nodes whose values must be in memory whatever this finds (roots, what kernels formed already read). `readers`: per node the
// computed nodes that read it, through views. A value found is computed inside each kernel that reads it.
std::vector<bool> find_recomputed(const BoundGraph& graph, const std::vector<bool>& stored, const std::vector<bool>& free,
                                  const ReaderLists& readers, const RecomputeLimits& limits);

}  // namespace einc
